//go:build linux

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"
)

// result is what was measured.
type result struct {
	Server         string  `json:"server"` // Temporal's, and its store
	Nodes          int     `json:"nodes"`
	MachineSeconds float64 `json:"machineSeconds"`
	Spread         float64 `json:"spread"`
	Seed           uint64  `json:"seed"`
	ProviderRate   float64 `json:"providerRate,omitempty"` // 0: the worker's default
	Cores          int     `json:"cores"`
	LoadBefore     float64 `json:"loadBefore"` // average of a minute
	LoadAfter      float64 `json:"loadAfter"`

	MakespanSeconds float64    `json:"makespanSeconds"` // of the lot's workflow
	StarterSeconds  float64    `json:"starterSeconds"`  // of `starter provision`
	AloneSeconds    float64    `json:"aloneSeconds"`    // of the slowest machine
	Ratio           float64    `json:"ratio"`
	Waits           []waitTime `json:"waits"`
	Idle            spread     `json:"idleSeconds"` // without the start
	Longest         longest    `json:"longestWait"`
	Late            spread     `json:"lateSeconds"` // of the machines themselves
	Straight        int        `json:"straight"`    // machines that went their way once
	Processes       []*process `json:"processes"`   // the lab is the last one
	Taken           taken      `json:"coresTaken"`
	Beside          beside     `json:"beside"`
	NodeEvents      spread     `json:"nodeEvents"`
	NodeBytes       spread     `json:"nodeBytes"`
	LotEvents       []int64    `json:"lotEvents"` // of each of its runs
	LotBytes        []int64    `json:"lotBytes"`
}

type waitTime struct {
	Name    string `json:"name"`
	Seconds spread `json:"seconds"`
}

// spread is how values lie.
type spread struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	values = slices.Sorted(slices.Values(values))
	at := func(share float64) float64 { return values[int(math.Ceil(share*float64(len(values))))-1] }
	return spread{Median: at(0.5), P99: at(0.99), Max: at(1)}
}

// judge takes from the machines how long they waited.
func (r *result) judge(machines []*machine) {
	var slowest time.Duration
	var went []*machine
	var asked, rescue time.Time // the last reboot, the first boot
	for _, m := range machines {
		slowest = max(slowest, m.own)
		if !m.straight() {
			continue
		}
		went = append(went, m)
		if m.asked[0].After(asked) {
			asked = m.asked[0]
		}
		if rescue.IsZero() || m.rescue[0].Before(rescue) {
			rescue = m.rescue[0]
		}
	}
	r.Straight = len(went)
	r.AloneSeconds = slowest.Seconds()
	r.Ratio = r.MakespanSeconds / r.AloneSeconds
	over := func(of func(*machine) time.Duration) spread {
		var values []float64
		for _, m := range went {
			values = append(values, of(m).Seconds())
		}
		return spreadOf(values)
	}
	for _, w := range append([]wait{start()}, waits()...) {
		r.Waits = append(r.Waits, waitTime{w.name, over(w.of)})
	}
	r.Longest = longestOf(machines)
	r.Idle, r.Late = over((*machine).idle), over((*machine).late)
	for _, p := range r.Processes {
		p.Quiet = p.between(asked.Add(time.Second), rescue)
	}
	r.Taken = takenOf(r.Processes, r.Cores)
}

// print tells a person.
func (r *result) print(out io.Writer) {
	fmt.Fprintf(out, "%d simulated nodes, %.0f s of machine time each ±%.0f %% (seed %d), %d cores, load %.1f before and %.1f after.\n%s.\n\n",
		r.Nodes, r.MachineSeconds, 100*r.Spread, r.Seed, r.Cores, r.LoadBefore, r.LoadAfter, r.Server)
	t := table{tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)}
	t.row("makespan", fmt.Sprintf("%.1f s", r.MakespanSeconds), fmt.Sprintf("%.3f × the %.1f s of the slowest machine alone", r.Ratio, r.AloneSeconds))
	t.row("starter provision", fmt.Sprintf("%.1f s", r.StarterSeconds), "with rendering and sealing the configs")
	t.row("machines that went straight", fmt.Sprintf("%d", r.Straight), "of which the rest is told")
	t.end()
	fmt.Fprintln(out)
	t.row("a machine waits for Ironlot", "median", "p99", "max")
	for i, w := range r.Waits {
		t.seconds(w.Name, w.Seconds)
		if i == 0 {
			t.row("", "", "", "")
		}
	}
	t.seconds("idle: all of these but the start", r.Idle)
	t.row("", "", "", "")
	t.seconds("the machine itself was late", r.Late)
	t.end()
	fmt.Fprintln(out)
	t.row("", "CPU", "peak RSS", "while machines boot")
	for _, p := range r.Processes {
		quiet := "not known"
		if p.Quiet >= 0 {
			quiet = fmt.Sprintf("%.0f %% of a core", 100*p.Quiet)
		}
		t.row(p.Name, fmt.Sprintf("%.1f s", p.CPU), fmt.Sprintf("%.0f MB", float64(p.PeakRSS)/1e6), quiet)
	}
	t.end()
	if r.Longest.machine >= 0 {
		fmt.Fprintf(out, "\nthe longest wait: %.2f s of node %s, %s", r.Longest.Seconds, r.Longest.Node, r.Longest.Name)
	}
	fmt.Fprintf(out, "\nall %d cores were taken for %.0f s, a share of %.0f %% by the lab\n", r.Cores, r.Taken.Seconds, 100*r.Taken.Lab)
	fmt.Fprintf(out, "beside them: %.1f s of processor time of other programs and of the kernel, %.1f s taken by the host\n", r.Beside.Others, r.Beside.Stolen)
	fmt.Fprintf(out, "history: a node %.0f events, %.1f KB (median; at most %.0f, %.1f KB); the lot %d events, %d bytes\n",
		r.NodeEvents.Median, r.NodeBytes.Median/1e3, r.NodeEvents.Max, r.NodeBytes.Max/1e3, r.LotEvents, r.LotBytes)
}

type table struct{ w *tabwriter.Writer }

func (t table) row(cells ...string) {
	for _, c := range cells {
		fmt.Fprintf(t.w, "%s\t", c)
	}
	fmt.Fprintln(t.w)
}

func (t table) seconds(name string, s spread) {
	t.row(name, fmt.Sprintf("%.2f s", s.Median), fmt.Sprintf("%.2f s", s.P99), fmt.Sprintf("%.2f s", s.Max))
}

func (t table) end() { _ = t.w.Flush() }
