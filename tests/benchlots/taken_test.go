//go:build linux

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTaken(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_000_000, 0)
	// using makes a process that uses so many cores in each second.
	using := func(cores ...float64) *process {
		p := &process{samples: []sample{{at: begin, cpu: 7}}}
		for i, c := range cores {
			p.samples = append(p.samples, sample{begin.Add(time.Duration(i+1) * time.Second), p.samples[i].cpu + c})
		}
		return p
	}
	idle, half, whole := []float64{0, 0, 0, 0, 0}, []float64{0.5, 0.5, 0.5, 0.5, 0.5}, []float64{1, 1, 1, 1, 1}
	join := func(parts ...[]float64) (all []float64) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for name, c := range map[string]struct {
		worker, lab *process
		want        taken
	}{
		"nothing was looked at": {&process{}, &process{}, taken{}},
		"idle":                  {using(idle...), using(idle...), taken{}},
		"one core of two":       {using(whole...), using(idle...), taken{}},
		"both cores":            {using(whole...), using(whole...), taken{Seconds: 5, Lab: 0.5}},
		"both for a while":      {using(join(idle, whole, whole, half)...), using(join(whole, whole, whole, whole)...), taken{Seconds: 10, Lab: 0.5}},
		"the worker's end":      {using(whole...), using(join(whole, whole)...), taken{Seconds: 5, Lab: 0.5}},
	} {
		got := takenOf([]*process{c.worker, c.lab}, 2)
		require.InDelta(t, c.want.Seconds, got.Seconds, 1e-9, name)
		require.InDelta(t, c.want.Lab, got.Lab, 1e-9, name)
	}
	require.InDelta(t, 7.25, using(1, 1).at(begin.Add(250*time.Millisecond)), 1e-9)
	require.InDelta(t, 7, using(1, 1).at(begin.Add(-time.Hour)), 1e-9, "what it has used before is not counted")
	require.InDelta(t, 9, using(1, 1).at(begin.Add(time.Hour)), 1e-9)
}
