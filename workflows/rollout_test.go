package workflows

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/run"
)

// states makes nodes of letters: q queued, w at work, s stuck, r Ready, a
// aborted.
func states(letters string) []run.NodeState {
	state := map[rune]run.State{'q': run.Queued, 'w': run.Running, 's': run.Stuck, 'r': run.Ready, 'a': run.Aborted}
	var nodes []run.NodeState
	for i, letter := range letters {
		nodes = append(nodes, run.NodeState{Name: "n" + string(rune('0'+i)), State: state[letter]})
	}
	return nodes
}

func atMost(n int) *int { return &n }

func TestRolloutDecides(t *testing.T) {
	t.Parallel()
	paused := &run.Pause{Reason: "lunch"}
	for name, c := range map[string]struct {
		rollout run.Rollout
		nodes   string
		paused  *run.Pause
		waived  run.Waiver
		next    []int
		stops   string // a part of it
		held    string // a part of it
	}{
		"all at once":                    {nodes: "qqq", next: []int{0, 1, 2}},
		"nothing left":                   {nodes: "rws", next: nil},
		"room for one":                   {rollout: run.Rollout{Parallel: 2}, nodes: "rwqq", next: []int{2}},
		"no room":                        {rollout: run.Rollout{Parallel: 1}, nodes: "wqq", next: nil},
		"a stuck one takes no room":      {rollout: run.Rollout{Parallel: 1}, nodes: "sqq", next: []int{1}},
		"paused":                         {nodes: "wqq", paused: paused, next: nil, held: "lunch"},
		"paused with nothing left":       {nodes: "ws", paused: paused, next: nil},
		"canaries first":                 {rollout: run.Rollout{Canary: 2}, nodes: "qqq", next: []int{0, 1}},
		"canaries within parallel":       {rollout: run.Rollout{Canary: 2, Parallel: 1}, nodes: "qqq", next: []int{0}},
		"a canary at work":               {rollout: run.Rollout{Canary: 2}, nodes: "rwqq", next: nil},
		"canaries Ready":                 {rollout: run.Rollout{Canary: 2}, nodes: "rrqq", next: []int{2, 3}},
		"a canary is stuck":              {rollout: run.Rollout{Canary: 2}, nodes: "rsqq", next: nil, held: "canary n1 is stuck"},
		"a canary is aborted":            {rollout: run.Rollout{Canary: 2}, nodes: "arqq", next: nil, stops: "canary n0 is aborted"},
		"an aborted canary is accepted":  {rollout: run.Rollout{Canary: 2}, nodes: "arqq", waived: run.Waiver{Canary: true}, next: []int{2, 3}},
		"more canaries than nodes":       {rollout: run.Rollout{Canary: 9}, nodes: "rq", next: []int{1}},
		"as many stuck as allowed":       {rollout: run.Rollout{MaxStuck: atMost(2)}, nodes: "sswq", next: []int{3}},
		"too many stuck":                 {rollout: run.Rollout{MaxStuck: atMost(1), Parallel: 1}, nodes: "sswq", next: nil, stops: "2 nodes are stuck, and the lot goes on with at most 1"},
		"none may be stuck":              {rollout: run.Rollout{MaxStuck: atMost(0), Parallel: 1}, nodes: "swq", next: nil, stops: "1 nodes are stuck"},
		"paused already":                 {rollout: run.Rollout{MaxStuck: atMost(0)}, nodes: "swq", paused: paused, next: nil, held: "lunch"},
		"stuck ones are accepted":        {rollout: run.Rollout{MaxStuck: atMost(0)}, nodes: "swq", waived: run.Waiver{Stuck: 1}, next: []int{2}},
		"one more than accepted":         {rollout: run.Rollout{MaxStuck: atMost(0), Parallel: 1}, nodes: "sswq", waived: run.Waiver{Stuck: 1}, stops: "2 nodes are stuck"},
		"too many stuck, all is started": {rollout: run.Rollout{MaxStuck: atMost(0)}, nodes: "ssw"},
	} {
		r := rollout{Rollout: c.rollout, nodes: states(c.nodes), paused: c.paused, waived: c.waived}
		require.Equal(t, c.next, r.next(), name)
		require.Equal(t, c.stops == "", r.stops() == "", "%s: %s", name, r.stops())
		require.Contains(t, r.stops(), c.stops, name)
		require.Equal(t, c.held == "", r.held() == "", "%s: %s", name, r.held())
		require.Contains(t, r.held(), c.held, name)
	}
}

// TestResumeAcceptsWhatIsThere: a resumed lot does not pause again for the
// reason that it was paused for, and does for one node more.
func TestResumeAcceptsWhatIsThere(t *testing.T) {
	t.Parallel()
	for _, nodes := range []string{"asq", "arq", "ssq", "rsq"} {
		r := rollout{Rollout: run.Rollout{Canary: 1, MaxStuck: atMost(0)}, nodes: states(nodes)}
		if strings.HasPrefix(nodes, "s") {
			r.Canary = 0
		}
		require.NotEmpty(t, r.stops(), nodes)
		r.waived = r.waive()
		require.Empty(t, r.stops(), nodes)
		require.NotEmpty(t, r.next(), nodes)
		r.nodes = append(r.nodes, states("sss")...)
		require.NotEmpty(t, r.stops(), nodes)
	}
}

// TestManyNodesTogetherBeatLessOften: whoever watches over a few nodes learns
// of a dead worker within 30 s.
func TestManyNodesTogetherBeatLessOften(t *testing.T) {
	t.Parallel()
	for together, c := range map[int]struct {
		rollout rollout
		timeout time.Duration
	}{
		3:    {rollout{nodes: states("qqq")}, 30 * time.Second},
		2:    {rollout{Rollout: run.Rollout{Parallel: 2}, nodes: states("qqq")}, 30 * time.Second},
		1000: {rollout{nodes: make([]run.NodeState, 1000)}, 100 * time.Second},
		300:  {rollout{Rollout: run.Rollout{Parallel: 300}, nodes: make([]run.NodeState, 9000)}, 30 * time.Second},
		9000: {rollout{nodes: make([]run.NodeState, 9000)}, 5 * time.Minute},
	} {
		require.Equal(t, together, c.rollout.together())
		require.Equal(t, c.timeout, table()[0].options(run.NodeInput{Together: together}).HeartbeatTimeout, together)
	}
}

// TestRolloutTellsWhyNodesWait: the first cause that holds a node, and for whom
// it waits. One that has a place waits for nothing.
func TestRolloutTellsWhyNodesWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rollout run.Rollout
		kinds   string // as kinds makes a lot of them
		nodes   string
		paused  *run.Pause
		want    []string
	}{
		"nobody waits":          {kinds: "www", nodes: "wrs"},
		"a place is free":       {rollout: run.Rollout{Parallel: 2}, kinds: "www", nodes: "wqq"},
		"no place":              {rollout: run.Rollout{Parallel: 1}, kinds: "www", nodes: "wqq", want: []string{"parallel [] [] 1 [1 2]"}},
		"a canary":              {rollout: run.Rollout{Canary: 2}, kinds: "wwww", nodes: "rwqq", want: []string{"canary [n1] [] 0 [2 3]"}},
		"a stuck canary":        {rollout: run.Rollout{Canary: 2}, kinds: "wwww", nodes: "wsqq", want: []string{"canary [n0 n1] [n1] 0 [2 3]"}},
		"the bootstrap":         {kinds: "bcw", nodes: "wqq", want: []string{"bootstrap [n0] [] 0 [1 2]"}},
		"the stuck bootstrap":   {kinds: "bcw", nodes: "sqq", want: []string{"bootstrap [n0] [n0] 0 [1 2]"}},
		"control planes":        {kinds: "bccw", nodes: "rwwq", want: []string{"control-planes [n1 n2] [] 0 [3]"}},
		"a chain":               {rollout: run.Rollout{Parallel: 1}, kinds: "bccw", nodes: "rwqq", want: []string{"parallel [] [] 1 [2]", "control-planes [n1 n2] [] 0 [3]"}},
		"canaries before waves": {rollout: run.Rollout{Canary: 1}, kinds: "cww", nodes: "wqq", want: []string{"canary [n0] [] 0 [1 2]"}},
		"paused":                {rollout: run.Rollout{Canary: 1}, kinds: "cww", nodes: "wqq", paused: &run.Pause{Reason: "lunch"}, want: []string{"paused [] [] 0 [1 2]"}},
		"paused, nobody waits":  {kinds: "cww", nodes: "wwr", paused: &run.Pause{Reason: "lunch"}},
	} {
		r := rollout{Rollout: c.rollout, nodes: states(c.nodes), paused: c.paused, order: orderOf(kinds(c.kinds).Nodes)}
		var got []string
		for _, w := range r.waits() {
			got = append(got, fmt.Sprint(w.Cause, " ", w.For, " ", w.Stuck, " ", w.Room, " ", w.Nodes))
		}
		require.Equal(t, c.want, got, name)
		if r.held() != "" {
			require.NotEmpty(t, got, "%s: who is held up waits", name)
		}
	}
}
