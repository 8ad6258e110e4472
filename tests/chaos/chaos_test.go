package chaos

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/testenv"
	"github.com/ironlot/ironlot/tests/rig"
)

// peaceful lets everything pass through the proxy.
func peaceful() rig.Script { return rig.NewHolds() }

// tally is what a chaos run has seen.
type tally struct {
	lots, runs, ready, stuck, rewinds, rebootsRescue, rebootsNormal int
	longest                                                         time.Duration
}

// TestChaos provisions a lot again and again while things break, and holds
// every run against what must never happen.
func TestChaos(t *testing.T) {
	dir := t.TempDir()
	bin, err := rig.Build(dir)
	if err != nil {
		testenv.Lacks(t, err.Error())
	}
	t.Logf("repeat with: %s", chosen.replay())
	server, err := rig.Temporal(bin.Temporal, bin.Dir, "temporal")
	require.NoError(t, err)
	t.Cleanup(func() { server.Kill() })
	base := bases.Next()
	r := rig.New(t, bin, server.Address(), peaceful(), lab.Options{Base: base, Lot: "chaos", Servers: chosen.nodes, Seed: chosen.seed, SwapNames: true, Speed: 100})
	s := newStorm(r, chosen.seed)
	sum := tally{}
	for began := time.Now(); sum.lots == 0 || time.Since(began) < chosen.duration; {
		s.round(t, &sum, time.Until(began.Add(chosen.duration)))
	}
	report := fmt.Sprintf("seed %d: %d lots, %d runs of %d nodes: %d Ready, %d stuck; %d times back, %d reboots into rescue, %d into Talos; longest run %s. Struck: %s",
		chosen.seed, sum.lots, sum.runs, chosen.nodes, sum.ready, sum.stuck, sum.rewinds, sum.rebootsRescue, sum.rebootsNormal, sum.longest.Round(time.Second), s)
	t.Log(report)
}

// round provisions the whole lot once.
func (s *storm) round(t *testing.T, sum *tally, left time.Duration) {
	t.Helper()
	before := s.observe()
	inputs := s.r.Inputs(func(n *run.Node) {
		n.Reprovision, n.Rescue.Fresh = true, true
		n.Timeouts = run.Timeouts{RescueBoot: 20 * time.Second, NormalBoot: 20 * time.Second, Ready: 40 * time.Second, Apply: 40 * time.Second, Unreachable: 20 * time.Second}
	})
	for _, in := range inputs {
		s.r.Start(in)
	}
	end := time.Now().Add(max(left, 5*time.Second))
	for !s.over(inputs) {
		if time.Now().Before(end) {
			require.NoError(t, s.strike())
		} else {
			s.calm()
		}
		time.Sleep(s.pause()) // the pace of the storm
	}
	s.calm()
	sum.lots++
	for i, in := range inputs {
		s.prove(t, sum, i, in, before[i])
	}
}

// over reports whether every run has settled.
func (s *storm) over(inputs []run.NodeInput) bool {
	for _, in := range inputs {
		if st := s.r.Status(in.Node.ID()); !st.State.Final() && st.State != run.Stuck {
			return false
		}
	}
	return true
}

// observed is what a server had seen before a round.
type observed struct {
	boots   int
	reboots map[string]int
	resets  int
}

func (s *storm) observe() []observed {
	var all []observed
	for _, server := range s.r.Fleet.Servers() {
		all = append(all, observed{len(server.Machine.Boots()), server.Counters().Reboots, s.resets[server.Name]})
	}
	return all
}

// prove holds a run against what must never happen: two writers, writes on a
// boot that is not the run's, more images than boots, reboots that nothing
// asked for, a stuck run without a reason.
func (s *storm) prove(t *testing.T, sum *tally, i int, in run.NodeInput, before observed) {
	t.Helper()
	server := s.r.Fleet.Servers()[i]
	status := s.r.Settled(in.Node.ID())
	where := fmt.Sprintf("%s, seed %d (%s)\n%+v\n%s", in.Node.Name, chosen.seed, chosen.replay(), status, s.r.LogTail())
	sum.runs++
	sum.rewinds += status.Rewinds
	sum.longest = max(sum.longest, status.Ended.Sub(status.Started))
	known := map[string]bool{}
	for _, id := range status.Facts.SeenBoots {
		known[id] = true
	}
	if b := status.Facts.Rescue; b != nil {
		known[b.BootID] = true
	}
	for _, b := range server.Machine.Boots()[before.boots:] {
		for _, d := range b.Disks {
			require.Zero(t, d.Refused, "two writers on boot %s of %s", b.ID, where)
			if d.Opens > 0 {
				require.True(t, known[b.ID], "a disk was written on boot %s, which the run does not know: %s", b.ID, where)
			}
		}
		if w := status.Facts.Written; w != nil {
			require.Less(t, b.Data, 2*w.BytesWritten, "the image was written more than once on boot %s of %s", b.ID, where)
		}
	}
	asked := server.Counters().Reboots
	rescue, normal := asked["rescue"]-before.reboots["rescue"], asked["normal"]-before.reboots["normal"]
	sum.rebootsRescue, sum.rebootsNormal = sum.rebootsRescue+rescue, sum.rebootsNormal+normal
	require.LessOrEqual(t, rescue+normal, 2+status.Rewinds, "more reboots than boots that were needed: %s", where)
	switch status.State {
	case run.Ready:
		sum.ready++
		require.Equal(t, "talos", string(server.Machine.State()), where)
	case run.Stuck:
		sum.stuck++
		require.NotEmpty(t, status.Problem.Message, where)
		require.NotEmpty(t, status.Problem.Remedy, where)
		require.NotEmpty(t, status.Problem.Erased, where)
		require.NoError(t, s.r.Update(in.Node.ID(), run.UpdateAbort, run.AbortRequest{Reason: "chaos"}))
		s.r.Eventually("it is aborted", func() bool { return s.r.Status(in.Node.ID()).State.Final() })
	default:
		t.Fatalf("the run is %s: %s", status.State, where)
	}
}
