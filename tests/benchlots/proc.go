//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// times are what /proc/PID/stat tells of a process; processor times are in
// seconds.
type times struct {
	parent int
	own    float64
	reaped float64 // of its children that have ended
}

func timesOf(pid int) (times, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return times{}, err
	}
	// The name in parentheses may hold anything. Behind it come the state, the
	// parent and, from the 12th on, utime, stime, cutime and cstime
	// (proc_pid_stat(5)).
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 15 {
		return times{}, fmt.Errorf("/proc/%d/stat has %d fields behind the name", pid, len(fields))
	}
	n, err := seconds(fields[11:15])
	if err != nil {
		return times{}, err
	}
	parent, err := strconv.Atoi(fields[1])
	return times{parent: parent, own: n[0] + n[1], reaped: n[2] + n[3]}, err
}

// seconds reads processor times, which the kernel tells in ticks.
func seconds(fields []string) ([]float64, error) {
	const ticks = 100 // a second; the same on every Linux
	var all []float64
	for _, field := range fields {
		value, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil, err
		}
		all = append(all, value/ticks)
	}
	return all, nil
}

// memoryOf reads a number of kB from a file of /proc/PID, in bytes.
func memoryOf(pid int, file, key string) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, key); ok {
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			return kib << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/%s does not tell %s", pid, file, key)
}

// family is what a process and its children use, those that have ended
// included: processor time in seconds, and, where it is asked for, bytes of
// memory. What several share counts once, each has its part of it (Pss,
// proc_pid_smaps(5)).
func family(pid int, memory bool) (cpu float64, bytes int64, err error) {
	head, err := timesOf(pid)
	if err != nil {
		return 0, 0, err
	}
	cpu = head.own + head.reaped
	members := []int{pid}
	for _, child := range children(pid) {
		if t, err := timesOf(child); err == nil { // else it has just ended
			cpu += t.own + t.reaped
			members = append(members, child)
		}
	}
	for _, member := range members {
		if !memory {
			break
		}
		if pss, err := memoryOf(member, "smaps_rollup", "Pss:"); err == nil { // as above
			bytes += pss
		}
	}
	return cpu, bytes, nil
}

func children(pid int) []int {
	var found []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is well formed
	for _, path := range stats {
		child, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if t, err := timesOf(child); err == nil && t.parent == pid {
			found = append(found, child)
		}
	}
	return found
}
