//go:build linux

package main

import (
	"context"
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
	PeakRSS int64   `json:"peakRSSBytes"` // of one that forks: the largest sum of their shares, see family
	// Quiet is its use of a core while every machine boots into rescue and
	// nothing is to be done; negative when there was no such time.
	Quiet float64 `json:"quietCores"`

	pid     int
	forks   bool // its children are measured with it
	samples []sample
}

type sample struct {
	at  time.Time
	cpu float64 // seconds so far
}

// look takes a sample. A process that has ended keeps its last one.
func (p *process) look() {
	cpu, memory, err := p.use()
	if err != nil {
		return
	}
	p.CPU, p.PeakRSS = cpu, max(p.PeakRSS, memory)
	p.samples = append(p.samples, sample{time.Now(), cpu})
}

// use is the process's processor time so far, in seconds, and its memory in
// bytes.
func (p *process) use() (cpu float64, memory int64, err error) {
	if p.forks {
		const every = 10 // looks; the kernel walks all of their pages
		return family(p.pid, len(p.samples)%every == 0)
	}
	t, err := timesOf(p.pid)
	if err != nil {
		return 0, 0, err
	}
	memory, err = memoryOf(p.pid, "status", "VmHWM:")
	return t.own, memory, err
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
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Env = env
	return cmd, launch(cmd, logFile)
}

// launch starts a command whose output goes to a file; it dies with this
// process.
func launch(cmd *exec.Cmd, logFile string) error {
	log, err := os.Create(logFile)
	if err != nil {
		return err
	}
	defer log.Close()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Start()
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
