//go:build linux

package main

import (
	"fmt"
	"os"
	"strings"
)

// beside is what took the cores beside what is measured: with much of it, the
// numbers are of another computer.
type beside struct {
	Others float64 `json:"othersSeconds"` // processor time of other programs and of the kernel's own threads
	Stolen float64 `json:"stolenSeconds"` // what the host of a virtual machine gave to others
}

// cores is what all cores did since they were started, in seconds.
type cores struct{ busy, stolen float64 }

// coresNow reads the first line of /proc/stat: user, nice, system, idle, iowait,
// irq, softirq and steal (proc_stat(5)).
func coresNow() (cores, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return cores{}, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return cores{}, fmt.Errorf("/proc/stat begins with %q", line)
	}
	t, err := seconds(fields[1:9])
	if err != nil {
		return cores{}, err
	}
	return cores{busy: t[0] + t[1] + t[2] + t[5] + t[6], stolen: t[7]}, nil
}

// besideOf is what was taken between two looks, without what processes used.
func besideOf(from, to cores, all []*process) beside {
	b := beside{Others: to.busy - from.busy, Stolen: to.stolen - from.stolen}
	for _, p := range all {
		if n := len(p.samples); n > 0 {
			b.Others -= p.samples[n-1].cpu - p.samples[0].cpu
		}
	}
	b.Others = max(0, b.Others) // processes and cores are not read at the same moment
	return b
}
