//go:build linux

package main

import (
	"slices"
	"time"
)

const (
	// takenOver is how long the use of the cores is averaged.
	takenOver = 5 * time.Second
	// takenFrom is the share of the cores from which they count as taken: what the
	// kernel does for the network is nobody's.
	takenFrom = 0.9
)

// taken is how long the programs together took nearly all of the cores: a node
// that waits then waits for the computer.
type taken struct {
	Seconds float64 `json:"seconds"`
	Lab     float64 `json:"labShare"` // of the processor time in these
}

// takenOf looks at what processes, of which the last one is the lab, used of so
// many cores.
func takenOf(all []*process, cores int) taken {
	var t taken
	var used, lab float64
	first, last := sampled(all)
	for from := first; !from.Add(takenOver).After(last); from = from.Add(takenOver) {
		var sum, own float64
		for _, p := range all {
			own = p.at(from.Add(takenOver)) - p.at(from)
			sum += own
		}
		if sum >= takenFrom*float64(cores)*takenOver.Seconds() {
			t.Seconds += takenOver.Seconds()
			used, lab = used+sum, lab+own
		}
	}
	if used > 0 {
		t.Lab = lab / used
	}
	return t
}

// sampled is from when to when processes were looked at.
func sampled(all []*process) (first, last time.Time) {
	for _, p := range all {
		for _, s := range p.samples {
			if first.IsZero() || s.at.Before(first) {
				first = s.at
			}
			if s.at.After(last) {
				last = s.at
			}
		}
	}
	return first, last
}

// at is the process's processor time until a time, in seconds: between two
// samples in proportion, and beside them that of the nearest.
func (p *process) at(t time.Time) float64 {
	if len(p.samples) == 0 {
		return 0
	}
	i, exact := slices.BinarySearchFunc(p.samples, t, func(s sample, t time.Time) int { return s.at.Compare(t) })
	switch {
	case exact:
		return p.samples[i].cpu
	case i == 0:
		return p.samples[0].cpu
	case i == len(p.samples):
		return p.samples[i-1].cpu
	}
	before, after := p.samples[i-1], p.samples[i]
	return before.cpu + (after.cpu-before.cpu)*t.Sub(before.at).Seconds()/after.at.Sub(before.at).Seconds()
}
