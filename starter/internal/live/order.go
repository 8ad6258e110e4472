package live

import (
	"cmp"
	"slices"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// order puts the nodes that a person wants to see first: stuck ones, those
// whose phase is tried again, those at work, then what has ended or has not
// begun. Among equals the lot's order stays, so that rows keep their place.
func order(nodes []track.Node) []track.Node {
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b track.Node) int { return cmp.Compare(rank(a), rank(b)) })
	return sorted
}

func rank(n track.Node) int {
	if n.Earlier {
		return 6 // it is nothing that this run does
	}
	if n.Newer != nil {
		return 3 // how it ended holds no longer
	}
	switch n.State {
	case run.Stuck:
		return 0
	case run.Running:
		if tries(n) > 1 {
			return 1
		}
		return 2
	case run.Aborted, run.Refused:
		return 3
	case run.Queued:
		return 4
	default:
		return 5
	}
}

// tally counts a lot's nodes by state, and those at work by phase.
type tally struct {
	states map[run.State]int
	phases map[run.Phase]int
	newer  int // nodes whose server another lot has, or had, since
}

func count(nodes []track.Node) tally {
	t := tally{states: map[run.State]int{}, phases: map[run.Phase]int{}}
	for _, n := range nodes {
		t.states[n.State]++
		if n.Newer != nil {
			t.newer++
		}
		if n.State == run.Running && n.Phase != "" {
			t.phases[n.Phase]++
		}
	}
	return t
}
