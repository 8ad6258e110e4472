package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/ironlot/ironlot/internal/run"
)

// PhaseTimes are the times of a phase over a lot's nodes, proved passes only.
type PhaseTimes struct {
	Phase  run.Phase     `json:"phase"`
	Median time.Duration `json:"median"`
	Max    time.Duration `json:"max"`
	Node   string        `json:"node"` // that took longest
}

// Phases gives each phase's times, the slowest median first.
func (l Lot) Phases() []PhaseTimes {
	var all []PhaseTimes
	for _, phase := range run.Phases() {
		var took []time.Duration
		t := PhaseTimes{Phase: phase}
		for _, n := range l.Nodes {
			for _, p := range n.Passes {
				if p.Phase != phase || p.Outcome != Proved {
					continue
				}
				d := p.Took(n.Read)
				if took = append(took, d); d > t.Max || t.Node == "" {
					t.Max, t.Node = d, n.Node.Name
				}
			}
		}
		if len(took) > 0 {
			t.Median = median(took)
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b PhaseTimes) int { return cmp.Compare(b.Median, a.Median) })
	return all
}

// Deviation is a node whose pass through a phase took much longer than the
// lot's median, whether it was proved, failed or goes on.
type Deviation struct {
	Node   string        `json:"node"`
	Phase  run.Phase     `json:"phase"`
	Took   time.Duration `json:"took"`
	Median time.Duration `json:"median"`
}

const (
	// A deviation is worth a look when it is both twice the median and
	// longer than it by this much.
	deviates    = 2
	deviatesFor = 5 * time.Second
)

// Deviations lists the nodes that are not like the others, the worst first.
func (l Lot) Deviations() []Deviation {
	medians := map[run.Phase]time.Duration{}
	for _, t := range l.Phases() {
		medians[t.Phase] = t.Median
	}
	var all []Deviation
	for _, n := range l.Nodes {
		for _, p := range n.Passes {
			m, known := medians[p.Phase]
			if d := p.Took(n.Read); known && p.Outcome != Canceled && d > deviates*m && d > m+deviatesFor {
				all = append(all, Deviation{n.Node.Name, p.Phase, d, m})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Deviation) int { return cmp.Compare(b.Took-b.Median, a.Took-a.Median) })
	return all
}

// FirstFailure is the first pass of the lot that failed, nil when none did.
func (l Lot) FirstFailure() (node string, first *Pass) {
	for _, n := range l.Nodes {
		for i, p := range n.Passes {
			if p.Outcome == Failed && (first == nil || p.Ended.Before(first.Ended)) {
				node, first = n.Node.Name, &n.Passes[i]
			}
		}
	}
	return node, first
}

// States counts the nodes by state.
func (l Lot) States() map[run.State]int {
	count := map[run.State]int{}
	for _, n := range l.Nodes {
		count[n.State]++
	}
	return count
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
