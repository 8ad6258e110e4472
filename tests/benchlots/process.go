//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a program that is measured.
type process struct {
	Name    string  `json:"name"`
	CPU     float64 `json:"cpuSeconds"`
	PeakRSS int64   `json:"peakRSSBytes"`
	// Quiet is its use of a core while every machine boots into rescue and
	// nothing is to be done; negative when there was no such time.
	Quiet float64 `json:"quietCores"`

	pid     int
	samples []sample
}

type sample struct {
	at  time.Time
	cpu float64 // seconds so far
}

// look takes a sample. A process that has ended keeps its last one.
func (p *process) look() {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.pid))
	if err != nil {
		return
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		return
	}
	// The name in parentheses may hold anything; utime and stime are the 12th
	// and 13th fields behind it (proc_pid_stat(5)).
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const ticks = 100 // a second; the same on every Linux
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	p.CPU = (user + system) / ticks
	p.samples = append(p.samples, sample{time.Now(), p.CPU})
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			p.PeakRSS = max(p.PeakRSS, kib<<10)
		}
	}
}

// between is the process's use of cores from one time to another, -1 when
// nothing is known.
func (p *process) between(from, to time.Time) float64 {
	var first, last *sample
	for i := range p.samples {
		if s := &p.samples[i]; !s.at.Before(from) && !s.at.After(to) {
			if first == nil {
				first = s
			}
			last = s
		}
	}
	if first == nil || last.at.Sub(first.at) < 3*time.Second {
		return -1
	}
	return (last.cpu - first.cpu) / last.at.Sub(first.at).Seconds()
}

// sample looks at processes every second until the context ends.
func sampleAll(ctx context.Context, all []*process) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		for _, p := range all {
			p.look()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// spawn starts a program with an environment of its own. Its output goes to a
// file; it dies with this process.
func spawn(name, logFile string, env []string, args ...string) (*exec.Cmd, error) {
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd, cmd.Start()
}

// load is the load average of the last minute.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return -1
	}
	first, _, _ := strings.Cut(string(text), " ")
	value, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return -1
	}
	return value
}
