package rig

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ironlot/ironlot/internal/run"
)

// Points at which the proxy holds; all others are the lab's.
const (
	Before = "before" // the worker got the phase's task and did nothing with it
	After  = "after"  // the phase is done and Temporal has not heard of it
	Intent = "intent" // the intent is recorded, the request not sent
)

// Ready is the lab's point before a node is Ready. A fast node comes there
// before its phase does, and is held there all the same.
const Ready = "ready"

// Holds stop each server's run at a point of a phase, until all are opened.
// They are the proxy's Script and the lab's Hold in one.
type Holds struct {
	mu      sync.Mutex
	at      map[int]hold // by server
	servers map[string]int
	phase   map[int]run.Phase // that a worker was given last
	changed chan struct{}
	opened  chan struct{}
}

type hold struct {
	phase   run.Phase
	point   string
	reached int  // how often
	early   bool // is held before its phase has come
}

// NewHolds holds nothing yet.
func NewHolds() *Holds {
	return &Holds{at: map[int]hold{}, servers: map[string]int{}, phase: map[int]run.Phase{}, changed: make(chan struct{}), opened: make(chan struct{})}
}

// Set holds a server's run at a point of a phase.
func (h *Holds) Set(server int, workflow string, phase run.Phase, point string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at[server], h.servers[workflow] = hold{phase: phase, point: point}, server
}

// Open lets everything go on, for good.
func (h *Holds) Open() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.opened:
	default:
		close(h.opened)
	}
}

// Wait waits until every hold was reached.
func (h *Holds) Wait(ctx context.Context) error {
	for {
		h.mu.Lock()
		var missing []string
		for n, one := range h.at {
			if one.reached == 0 {
				missing = append(missing, fmt.Sprintf("server %d in %s (%s), which is in %s", n, one.phase, one.point, h.phase[n]))
			}
		}
		changed := h.changed
		h.mu.Unlock()
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			slices.Sort(missing)
			return fmt.Errorf("not reached: %q: %w", missing, ctx.Err())
		}
	}
}

// Hold is the lab's: a machine or the API on its behalf is at a point.
func (h *Holds) Hold(server int, point string) {
	if h.reach(server, point) {
		<-h.opened
	}
}

// Deliver loses the task of a phase that is held before its effect.
func (h *Holds) Deliver(t Task) bool {
	h.mu.Lock()
	server, known := h.servers[t.Workflow]
	if known {
		h.phase[server] = run.Phase(t.Activity)
		if one := h.at[server]; one.early && one.phase == h.phase[server] {
			h.count(server, one)
		}
	}
	h.mu.Unlock()
	return !known || !h.reach(server, Before)
}

// Answer holds the end of a phase back.
func (h *Holds) Answer(ctx context.Context, t Task) { h.stop(ctx, t, After) }

// Intent holds a worker that has recorded its intent; only the first one.
func (h *Holds) Intent(ctx context.Context, t Task) {
	if t.Attempt == 1 {
		h.stop(ctx, t, Intent)
	}
}

func (h *Holds) stop(ctx context.Context, t Task, point string) {
	h.mu.Lock()
	server, known := h.servers[t.Workflow]
	mine := known && h.at[server].phase == run.Phase(t.Activity)
	h.mu.Unlock()
	if !mine || !h.reach(server, point) {
		return
	}
	select {
	case <-h.opened:
	case <-ctx.Done():
	}
}

// reach reports whether a server's run is to be held where it is.
func (h *Holds) reach(server int, point string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.opened:
		return false
	default:
	}
	one, ok := h.at[server]
	switch {
	case !ok || one.point != point:
		return false
	case one.phase == h.phase[server]:
		h.count(server, one)
		return true
	case point == Ready:
		one.early = true
		h.at[server] = one
		return true
	}
	return false
}

// count notes that a hold was reached. The caller holds the lock.
func (h *Holds) count(server int, one hold) {
	one.reached++
	h.at[server] = one
	close(h.changed)
	h.changed = make(chan struct{})
}
