package simulated

import (
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// network is the machine's cable. While it is out, connections are silent.
type network struct {
	mu    sync.Mutex
	up    chan struct{}      // closed while the network is there
	wires map[*wire]struct{} // open connections
}

func newNetwork() *network {
	n := &network{up: make(chan struct{}), wires: map[*wire]struct{}{}}
	close(n.up)
	return n
}

func (n *network) set(up bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.up:
		if !up {
			n.up = make(chan struct{})
		}
	default:
		if up {
			close(n.up)
		}
	}
}

func (n *network) state() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.up
}

func (n *network) cut() {
	n.mu.Lock()
	wires := slices.Collect(maps.Keys(n.wires))
	n.mu.Unlock()
	for _, w := range wires {
		_ = w.reset()
	}
}

func (n *network) keep(w *wire, open bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if open {
		n.wires[w] = struct{}{}
	} else {
		delete(n.wires, w)
	}
}

// wire is a connection over the machine's cable.
type wire struct {
	net.Conn
	b      *boot
	sent   *atomic.Int64 // both ways, over all SSH connections of the boot
	once   sync.Once
	closed chan struct{}
	polite bool // ends with a FIN
}

func newWire(c net.Conn, b *boot, sent *atomic.Int64) *wire {
	w := &wire{Conn: c, b: b, sent: sent, closed: make(chan struct{})}
	b.m.net.keep(w, true)
	return w
}

// wire puts a connection of Talos on the cable.
func (b *boot) wire(c net.Conn) net.Conn {
	w := newWire(c, b, new(atomic.Int64))
	w.polite = true
	return w
}

// Read delivers nothing while the cable is out.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if waitErr := w.pass(n); waitErr != nil {
		return 0, waitErr
	}
	return n, err
}

// Write sends nothing while the cable is out.
func (w *wire) Write(p []byte) (int, error) {
	if err := w.pass(len(p)); err != nil {
		return 0, err
	}
	return w.Conn.Write(p)
}

// pass waits for the cable and counts what goes over it.
func (w *wire) pass(n int) error {
	select {
	case <-w.b.m.net.state():
	case <-w.closed:
		return net.ErrClosed
	}
	if w.b.ctx.Err() != nil {
		return errGone // a dead machine has no last words
	}
	if w.b.m.takeDrop(w.sent.Add(int64(n))) {
		w.b.m.logf("network: connection cut")
		w.Close()
		return net.ErrClosed
	}
	return nil
}

// takeDrop reports whether the connection is to be cut now, once.
func (m *Machine) takeDrop(sent int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.faults.DropSSHAfter == 0 || sent < m.faults.DropSSHAfter {
		return false
	}
	m.faults.DropSSHAfter = 0
	return true
}

// Close ends the connection. SSH is reset, as by a machine that was reset;
// Talos may have said why it closes, which must arrive.
func (w *wire) Close() error {
	if w.polite {
		w.once.Do(func() { close(w.closed) })
		w.b.m.net.keep(w, false)
		return w.Conn.Close()
	}
	return w.reset()
}

func (w *wire) reset() error {
	w.once.Do(func() { close(w.closed) })
	w.b.m.net.keep(w, false)
	if tcp, ok := w.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return w.Conn.Close()
}
