package qemu

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// errMonitor says that QEMU went away before it answered.
var errMonitor = errors.New("QEMU's monitor is closed")

// monitor speaks QMP, QEMU's machine protocol: one JSON value a line, answers
// in the order of the commands, events in between (QEMU QMP specification).
type monitor struct {
	conn io.ReadWriteCloser

	mu      sync.Mutex // held from a command to its place in line
	waiting chan chan answer
	closed  chan struct{}
}

type answer struct {
	data json.RawMessage
	err  error
}

// message is anything that QEMU says.
type message struct {
	Event string `json:"event"`
	Data  struct {
		Reason string `json:"reason"`
	} `json:"data"`
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class string `json:"class"`
		Desc  string `json:"desc"`
	} `json:"error"`
}

func newMonitor(conn io.ReadWriteCloser) *monitor {
	return &monitor{conn: conn, waiting: make(chan chan answer, 16), closed: make(chan struct{})}
}

// listen gives out answers and events until QEMU is gone.
func (m *monitor) listen(event func(name, reason string)) {
	defer m.conn.Close()
	defer close(m.closed)
	for said := json.NewDecoder(m.conn); ; {
		var msg message
		if said.Decode(&msg) != nil {
			return
		}
		switch {
		case msg.Event != "":
			event(msg.Event, msg.Data.Reason)
		case msg.Error != nil:
			m.give(answer{err: fmt.Errorf("QEMU refuses: %s (%s)", msg.Error.Desc, msg.Error.Class)})
		case msg.Return != nil:
			m.give(answer{data: msg.Return})
		}
	}
}

func (m *monitor) give(a answer) {
	select {
	case one := <-m.waiting:
		one <- a
	default: // an answer that nobody asked for
	}
}

// command has QEMU do something. It must not be called by what listens.
func (m *monitor) command(name string, arguments, result any) error {
	line, err := json.Marshal(struct {
		Execute   string `json:"execute"`
		Arguments any    `json:"arguments,omitempty"`
	}{name, arguments})
	if err != nil {
		return err
	}
	mine := make(chan answer, 1)
	m.mu.Lock()
	select {
	case m.waiting <- mine:
		_, err = m.conn.Write(append(line, '\n'))
	case <-m.closed:
		err = errMonitor
	}
	m.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	select {
	case a := <-mine:
		if a.err != nil || result == nil {
			return a.err
		}
		return json.Unmarshal(a.data, result)
	case <-m.closed:
		return fmt.Errorf("%s: %w", name, errMonitor)
	}
}

// DiskCount is what a guest did to a disk during one boot, as QEMU counted.
type DiskCount struct {
	Writes  int64 // requests that write, zeros included
	Written int64 // bytes of these
}

// counts asks what was done to the disks, by their drive's name.
func (m *monitor) counts() (map[string]DiskCount, error) {
	var all []struct {
		Device string `json:"device"`
		Stats  struct {
			Writes  int64 `json:"wr_operations"`
			Written int64 `json:"wr_bytes"`
		} `json:"stats"`
	}
	if err := m.command("query-blockstats", nil, &all); err != nil {
		return nil, err
	}
	counts := map[string]DiskCount{}
	for _, one := range all {
		counts[one.Device] = DiskCount{Writes: one.Stats.Writes, Written: one.Stats.Written}
	}
	return counts, nil
}

// limit slows the writes to a drive down from now on; zeros lift that.
func (m *monitor) limit(drive string, writesPerSecond, bytesPerSecond int64) error {
	return m.command("block_set_io_throttle", map[string]any{
		"device": drive, "bps": 0, "bps_rd": 0, "bps_wr": bytesPerSecond, "iops": 0, "iops_rd": 0, "iops_wr": writesPerSecond,
	}, nil)
}
