//go:build linux

package linux

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mount is a line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
type mount struct {
	device  string // major:minor
	point   string
	fsType  string
	source  string
	options map[string]string // of the superblock
}

func (h *Host) mounts() ([]mount, error) {
	b, err := os.ReadFile(h.path("proc/self/mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("mounts: %w", err)
	}
	var out []mount
	for line := range strings.Lines(string(b)) {
		if m, ok := parseMount(line); ok {
			out = append(out, m)
		}
	}
	return out, nil
}

func parseMount(line string) (mount, bool) {
	left, right, found := strings.Cut(line, " - ")
	l, r := strings.Fields(left), strings.Fields(right)
	if !found || len(l) < 6 || len(r) < 2 {
		return mount{}, false
	}
	m := mount{device: l[2], point: unescape(l[4]), fsType: r[0], source: unescape(r[1]), options: map[string]string{}}
	if len(r) > 2 {
		for option := range strings.SplitSeq(r[2], ",") {
			key, value, _ := strings.Cut(option, "=")
			// overlay repeats lowerdir+ for each layer
			if old := m.options[key]; old != "" {
				value = old + ":" + value
			}
			m.options[key] = unescape(value)
		}
	}
	return m, true
}

// unescape undoes the kernel's octal escapes of blanks and backslashes.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// covering is the mount that a path lies on: the last one whose mount point
// is the longest above it.
func covering(mounts []mount, path string) (mount, bool) {
	var best mount
	found := false
	for _, m := range mounts {
		if below(path, m.point) && (!found || len(m.point) >= len(best.point)) {
			best, found = m, true
		}
	}
	return best, found
}

func below(path, dir string) bool {
	return dir == "/" && filepath.IsAbs(path) || path == dir || strings.HasPrefix(path, dir+"/")
}

// swaps lists the devices and files in /proc/swaps.
func (h *Host) swaps() []string {
	var out []string
	first := true
	for line := range strings.Lines(h.text("proc/swaps")) {
		if fields := strings.Fields(line); !first && len(fields) > 0 {
			out = append(out, unescape(fields[0]))
		}
		first = false
	}
	return out
}
