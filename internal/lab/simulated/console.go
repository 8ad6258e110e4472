package simulated

import (
	"fmt"
	"time"
)

// Console is what the machine has printed so far.
func (m *Machine) Console() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.console...)
}

func (m *Machine) lastWords() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.console) == 0 {
		return ""
	}
	return m.console[len(m.console)-1]
}

// maxConsole bounds what is kept of a console.
const maxConsole = 500

func (m *Machine) logf(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	m.mu.Lock()
	m.console = append(m.console, line)
	if len(m.console) > maxConsole {
		m.console = m.console[1:]
	}
	m.mu.Unlock()
	if m.opts.Log != nil {
		m.opts.Log(fmt.Sprintf("%s %s: %s", time.Now().UTC().Format(time.TimeOnly), m.opts.Name, line))
	}
}
