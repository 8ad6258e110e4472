package show

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/size"
	"github.com/ironlot/ironlot/starter/internal/track"
)

func start() time.Time { return time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC) }

// fleet is a lot with a node in every state.
func fleet() track.Lot {
	record := func(p run.Phase, from, to time.Duration, text string) run.PhaseRecord {
		r := run.PhaseRecord{Phase: p, Started: start().Add(from), Summary: text}
		if to > 0 {
			r.Ended = start().Add(to)
		}
		return r
	}
	node := func(name string, state run.State, phase run.Phase) track.Node {
		return track.Node{
			Node:       run.Node{Lot: "rack-1", Name: name, ServerName: "metal-" + name, ServerID: "id-" + name, Zone: "fr-par-2"},
			WorkflowID: "provision/scaleway/id-" + name, State: state, Phase: phase,
		}
	}
	ready := node("a", run.Ready, run.WaitReady)
	ready.Status = &run.Status{
		State: run.Ready, Started: start(), Ended: start().Add(187 * time.Second),
		Facts: run.Facts{
			Ready:   &run.NodeReady{NodeName: "a", TalosVersion: "v1.13.8"},
			System:  &run.Disk{Serial: "S1", Model: "SSD", Size: 480e9},
			Written: &run.Written{BytesWritten: 320e6, BytesVerified: 4453302272, MBPerSecond: 410},
		},
		Timeline: []run.PhaseRecord{
			record(run.Preflight, 0, time.Second, "fits"),
			record(run.Write, time.Second, 31*time.Second, "written"),
			record(run.Write, 40*time.Second, 70*time.Second, "written"),
			record(run.WaitReady, 70*time.Second, 187*time.Second, "Ready"),
		},
	}
	working := node("bb", run.Running, run.Write)
	working.Progress = &run.Progress{Step: "write", Done: 1200e6, Total: 4453302272, Rate: 212.4e6}
	working.Status = &run.Status{State: run.Running, Started: start(), Timeline: []run.PhaseRecord{record(run.Write, 0, 0, "")}}
	working.Attempt = 1
	trying := node("c", run.Running, run.WaitSSH)
	trying.Attempt, trying.Failure = 3, "the host\x1b[2J does not answer"
	trying.Progress = &run.Progress{Step: "dial"}
	stuck := node("d", run.Stuck, run.DiskPrep)
	stuck.Reason = "two disks are alike"
	stuck.Status = &run.Status{State: run.Stuck, Started: start(), Problem: &run.Problem{
		Phase: run.DiskPrep, Class: "NeedsOperator", Message: "two disks are alike", Remedy: "name a serial", Erased: "nothing.", Tail: "sda\nsdb\x07",
	}, Timeline: []run.PhaseRecord{{Phase: run.DiskPrep, Started: start(), Ended: start().Add(time.Second), Class: "NeedsOperator", Error: "two disks are alike"}}}
	refused := node("e", run.Refused, "")
	refused.Reason = "another run holds it"
	return track.Lot{Name: "rack-1", Open: true, Lab: true, Nodes: []track.Node{ready, working, trying, stuck, refused, node("f", run.Queued, "")}}
}

func TestPlainWritesChangesOnly(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := &Plain{Out: &out}
	l := fleet()
	require.NoError(t, v.Show(l, start()))
	require.Equal(t, 6, strings.Count(out.String(), "\n"))
	require.Contains(t, out.String(), "2026-12-01T12:00:00Z  d   stuck    disk-prep      two disks are alike  [simulated]\n")

	out.Reset()
	l.Nodes[1].Progress.Done++
	require.NoError(t, v.Show(l, start()))
	require.Empty(t, out.String(), "a byte more is no news")
	l.Nodes[1].Phase = run.SysrqReset
	require.NoError(t, v.Show(l, start()))
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
}

func TestJSONEvents(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := &Events{Encode: json.NewEncoder(&out).Encode}
	require.NoError(t, v.Show(fleet(), start()))
	var event Event
	decoder := json.NewDecoder(&out)
	require.NoError(t, decoder.Decode(&event))
	require.Equal(t, Event{Event: "node", Time: start(), Lot: "rack-1", Node: "a", State: run.Ready, Phase: run.WaitReady, Simulated: true}, event)
	require.NoError(t, decoder.Decode(&event))
	require.EqualValues(t, 1200e6, event.Progress.Done)
}

const results = `NODE  SERVER    STATE    TOTAL  PREFLIGHT  REBOOT-RESCUE  WAIT-SSH  DISK-PREP  STAGE  WRITE       SYSRQ-RESET  BOOT-NORMAL  APPLY-CONFIG  WAIT-READY
a     metal-a   ready    3m07s  1.0s                                                  1m00s (2×)                                          1m57s
bb    metal-bb  running  30.0s                                                        30.0s…
c     metal-c   running
d     metal-d   stuck    30.0s                                      1.0s
e     metal-e   refused
f     metal-f   queued
`

const resultsDown = `NODE           a           bb        c        d        e        f
SERVER         metal-a     metal-bb  metal-c  metal-d  metal-e  metal-f
STATE          ready       running   running  stuck    refused  queued
TOTAL          3m07s       30.0s              30.0s
PREFLIGHT      1.0s
REBOOT-RESCUE
WAIT-SSH
DISK-PREP                                     1.0s
STAGE
WRITE          1m00s (2×)  30.0s…
SYSRQ-RESET
BOOT-NORMAL
APPLY-CONFIG
WAIT-READY     1m57s
`

const resultsBrief = `NODE  STATE    TOTAL  PHASE            SERVER    SLOWEST PHASE
a     ready    3m07s                   metal-a   wait-ready 1m57s
bb    running  30.0s  write 30.0s…     metal-bb  write 30.0s…
c     running         wait-ssh         metal-c
d     stuck    30.0s  disk-prep 1.0s   metal-d   disk-prep 1.0s
e     refused                          metal-e
f     queued                           metal-f
g     aborted  30.0s  write 2.0s (2×)  metal-g   write 2.0s (2×)
`

const resultsBriefest = `NODE  STATE    TOTAL  PHASE
a     ready    3m07s
bb    running  30.0s  write 30.0s…
c     running         wait-ssh
d     stuck    30.0s  disk-prep 1.0s
e     refused
f     queued
g     aborted  30.0s  write 2.0s (2×)
`

// rack is fleet and an aborted node.
func rack() track.Lot {
	l := fleet()
	aborted := l.Nodes[3]
	aborted.Node.Name, aborted.Node.ServerName, aborted.State, aborted.Phase = "g", "metal-g", run.Aborted, run.Write
	pass := run.PhaseRecord{Phase: run.Write, Started: start(), Ended: start().Add(time.Second)}
	aborted.Status = &run.Status{State: run.Aborted, Started: start(), Timeline: []run.PhaseRecord{pass, pass}}
	l.Nodes = append(l.Nodes, aborted)
	return l
}

func TestResults(t *testing.T) {
	t.Parallel()
	require.Equal(t, results, Results(fleet(), start().Add(30*time.Second), 0))
	require.Equal(t, results, Results(fleet(), start().Add(30*time.Second), 200))
	require.Equal(t, resultsDown, Results(fleet(), start().Add(30*time.Second), 80))
	require.Equal(t, resultsBrief, Results(rack(), start().Add(30*time.Second), 66))
	require.Equal(t, resultsBriefest, Results(rack(), start().Add(30*time.Second), 40))
	require.Equal(t, `
d is stuck in disk-prep: two disks are alike
  what to do: name a serial
  erased: nothing.
  then: `+"`starter retry rack-1 d`, with `--batch LOT.YAML`"+` when you have corrected the lot file
  or: `+"`starter abort rack-1 d`"+`

e is refused: another run holds it
`, Stops(fleet()))

	result := ResultOf(fleet(), "http://ui", start().Add(30*time.Second))
	require.InDelta(t, 60, result.Nodes[0].Phases[run.Write], 0.001)
	require.InDelta(t, 187, result.Nodes[0].Seconds, 0.001)
	require.Equal(t, "name a serial", result.Nodes[3].Remedy)
	require.Nil(t, result.Nodes[5].Phases)
}

func TestLists(t *testing.T) {
	t.Parallel()
	lots := []track.Summary{
		{Lot: "rack-1", State: run.Stuck, Nodes: 12, Counts: track.Counts{Ready: 9, Running: 1, Stuck: 2}, Started: start(), RunID: "r1",
			Stuck: &track.StuckNode{Node: "w-2", Reason: "two disks\x1b are alike"}, Simulated: true},
		{Lot: "b", State: run.Aborted, Nodes: 3, Counts: track.Counts{Ready: 1, Aborted: 1, Refused: 1}, Started: start(), Ended: start().Add(time.Minute)},
	}
	require.Equal(t, `LOT     STATE    READY  RUNNING  QUEUED  STUCK  OTHER  STARTED              TOOK   WHY
rack-1  stuck    9/12   1                2             2026-12-01 12:00:00  2m00s  first stuck is w-2: two disks are alike
b       aborted  1/3                            2      2026-12-01 12:00:00  1m00s
`+Simulated+"\n", Lots(lots, start().Add(2*time.Minute), false, 0))
	for line := range strings.Lines(Lots(lots, start(), false, 60)) {
		require.True(t, len([]rune(line)) <= 61 || line == Simulated+"\n", line)
	}
	require.Contains(t, Lots(lots, start(), false, 60), "\nlot rack-1: first stuck is w-2: two disks are alike\n", "a reason is not cut")
	require.Contains(t, Lots(lots, start(), true, 60), "r1", "wide is not cut")

	items := []track.Item{{Node: "a", Server: "metal-a", TalosVersion: "v1.13.8", ImageDataSHA256: "0123456789abcdef", Lot: "rack-1", Ready: start(),
		SystemDisk: &run.Disk{Serial: "S1"}, SecondaryDisks: []run.Disk{{Serial: "S2"}, {WWN: "W3"}}, RunID: "r2",
		Newer: &track.NewerRun{Lot: "rack-2", State: run.Stuck}}}
	require.Equal(t, `NODE  SERVER   TALOS    IMAGE DATA    SYSTEM DISK  READY                LOT     NEWER RUN
a *   metal-a  v1.13.8  0123456789ab  S1           2026-12-01 12:00:00  rack-1  stuck, lot rack-2
`, Inventory(items, false, 0))
	require.Contains(t, Inventory(items, true, 0), "S2, ")
}

func TestDetail(t *testing.T) {
	t.Parallel()
	l := fleet()
	text := Detail(l, l.Nodes[0], start())
	require.True(t, strings.HasPrefix(text, Simulated))
	for _, want := range []string{
		"disk      S1 (SSD, 447.0 GiB)\n",
		"written   305.2 MiB, 4.1 GiB read back, 391.0 MiB/s\n",
		"preflight   2026-12-01T12:00:00Z  1.0s   fits\n",
	} {
		require.Contains(t, text, want)
	}
	text = Detail(l, l.Nodes[3], start())
	require.NotContains(t, text, "\nuntil ")
	require.Contains(t, text, "NeedsOperator: two disks are alike")
	require.Contains(t, text, "end of the remote output:\n  | sda\n  | sdb\n")
	require.NotContains(t, text, "\x07")

	l.NoWorker = true
	require.Contains(t, Detail(l, l.Nodes[2], start()), "No worker answers")
}

// TestDetailTellsHowLong what a node does can last, as long as that is to come.
func TestDetailTellsHowLong(t *testing.T) {
	t.Parallel()
	l := fleet()
	n := l.Nodes[0]
	n.State, n.Progress = run.Running, &run.Progress{Step: "waiting for SSH"}
	require.NotContains(t, Detail(l, n, start()), "\nuntil ", "a worker of an earlier version says nothing of it")
	n.Progress.Until = start().Add(29 * time.Minute)
	require.Contains(t, Detail(l, n, start()), "doing     waiting for SSH\nuntil     2026-12-01T12:29:00Z at the latest (in 29m00s)\n")
	require.NotContains(t, Detail(l, n, n.Progress.Until), "\nuntil ")
	n.State = run.Ready
	require.NotContains(t, Detail(l, n, start()), "\nuntil ")
}

func TestWrap(t *testing.T) {
	t.Parallel()
	text := "\nd is stuck in disk-prep: two disks are alike\n  what to do: name a serial\n"
	require.Equal(t, text, Wrap(text, 0))
	require.Equal(t, text, Wrap(text, 80))
	require.Equal(t, "\nd is stuck in\n    disk-prep: two\n    disks are alike\n  what to do:\n      name a serial\n", Wrap(text, 20))
}

// TestWhatIsCopiedStaysWhole at every width: commands, paths, IDs, addresses.
func TestWhatIsCopiedStaysWhole(t *testing.T) {
	t.Parallel()
	whole := []string{
		"/home/me/rack-1/lot-of-a-long-name.yaml", "provision/scaleway/68bd0fe3-a9ee-4270-8df2-47917b46d829", "https://factory.talos.dev/image/3765-79/v1.13.8/metal-amd64.raw.zst",
		"`starter retry rack-1 w-1 --batch lot.yaml --another-disk`,", "(`--batch LOT.YAML`)",
	}
	text := "  what to do: in the file " + strings.Join(whole, " it's so ") + " and the end: it's 5` or so\n"
	for width := 1; width < 200; width++ {
		wrapped := Wrap(text, width)
		for _, w := range whole {
			require.Contains(t, wrapped, w, width)
		}
		require.Equal(t, strings.Fields(text), strings.Fields(wrapped), "nothing is lost")
		for line := range strings.Lines(wrapped) {
			if strings.Contains(strings.TrimSpace(line), " ") && !strings.Contains(line, "`") {
				require.LessOrEqual(t, len(line)-1, width)
			}
		}
	}
	require.Equal(t, "a  b\n    c\n", Wrap("a  b c\n", 8), "columns stay columns")
	require.Equal(t, "\n", Wrap("\n", 8))
}

func TestUnits(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{"0.0s": -time.Second, "59.9s": 59900 * time.Millisecond, "1m00s": time.Minute, "1h02m": 62 * time.Minute} {
		require.Equal(t, want, Duration(d))
	}
	for want, n := range map[string]int64{"999 B": 999, "1.0 KiB": 1024, "4.1 GiB": 4453302272, "1.0 MiB": 1<<20 - 1} {
		require.Equal(t, want, size.Text(n))
	}
	require.Equal(t, "wait, waits for etcd; kubelet", Progress(&run.Progress{Step: "wait", Unmet: []string{"etcd", "kubelet"}}))
	for want, c := range map[string]run.DiskChoice{
		"serial S1": {Serial: "S1"},
		"the smallest of 400 GB (372.5 GiB) or more": {Smallest: true, MinSize: 400e9},
		"the only one of 2 TB (1.8 TiB) or less":     {MaxSize: 2e12},
		"WWN 0x5000":                                 {WWN: "0x5000"},
		"by-id ata-X":                                {ByID: "ata-X"},
	} {
		require.Equal(t, want, Choice(c))
	}
}
