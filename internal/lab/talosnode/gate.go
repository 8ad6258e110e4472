package talosnode

import (
	"context"
	"net"
	"sync"

	"github.com/ironlot/ironlot/internal/listen"
)

// gate owns the node's port for its whole life and gives connections to
// whatever serves at the moment. While nothing does it resets them, as apid's
// port was seen to do, or refuses them.
type gate struct {
	addr   string
	refuse bool
	wire   func(net.Conn) net.Conn // may be nil

	mu       sync.Mutex
	listener net.Listener
	serving  *handover
	loops    sync.WaitGroup
}

// openGate takes the port, serving nothing yet.
func openGate(addr string, refuse bool, wire func(net.Conn) net.Conn) (*gate, error) {
	g := &gate{addr: addr, refuse: refuse, wire: wire}
	if err := g.listen(); err != nil {
		return nil, err
	}
	g.addr = g.listener.Addr().String()
	if refuse {
		g.unlisten()
	}
	return g, nil
}

// serve starts giving connections to a new listener.
func (g *gate) serve() (net.Listener, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.listener == nil {
		if err := g.listen(); err != nil {
			return nil, err
		}
	}
	g.serving = &handover{addr: g.listener.Addr(), conns: make(chan net.Conn), done: make(chan struct{})}
	return g.serving, nil
}

// shut serves nothing from now on.
func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.serving != nil {
		_ = g.serving.Close()
		g.serving = nil
	}
	if g.refuse {
		g.unlisten()
	}
}

// close gives the port back.
func (g *gate) close() {
	g.shut()
	g.mu.Lock()
	g.unlisten()
	g.mu.Unlock()
	g.loops.Wait()
}

func (g *gate) listen() error {
	l, err := listen.TCP(context.Background(), g.addr)
	if err != nil {
		return err
	}
	g.listener = l
	g.loops.Go(func() { g.accept(l) })
	return nil
}

func (g *gate) unlisten() {
	if g.listener != nil {
		_ = g.listener.Close()
		g.listener = nil
	}
}

func (g *gate) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		g.mu.Lock()
		to := g.serving
		g.mu.Unlock()
		if to == nil {
			reset(c)
		} else if c = g.wired(c); !to.give(c) {
			reset(c)
		}
	}
}

func (g *gate) wired(c net.Conn) net.Conn {
	if g.wire == nil {
		return c
	}
	return g.wire(c)
}

// reset ends a connection with a TCP reset.
func reset(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}

// handover is the listener of one server behind the gate.
type handover struct {
	addr  net.Addr
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (h *handover) give(c net.Conn) bool {
	select {
	case h.conns <- c:
		return true
	case <-h.done:
		return false
	}
}

// Accept waits for a connection.
func (h *handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close ends the handover; connections that were given stay.
func (h *handover) Close() error {
	h.once.Do(func() { close(h.done) })
	return nil
}

// Addr is the node's address.
func (h *handover) Addr() net.Addr { return h.addr }
