package scwapi

import (
	"fmt"
	"slices"
)

// AddFault puts a fault in force.
func (a *API) AddFault(f Fault) error {
	if err := f.Check(); err != nil {
		return err
	}
	if f.Operation != "" && !slices.Contains(a.operations, f.Operation) {
		return fmt.Errorf("there is no operation %q, use the SDK's name of one, such as RebootServer", f.Operation)
	}
	a.faults.add(f)
	return nil
}

// ClearFaults ends all faults and lets go of every status that is stuck.
func (a *API) ClearFaults() {
	a.faults.clear()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unstick()
}

// unstick makes stuck changes due now. The caller holds the lock.
func (a *API) unstick() {
	for _, s := range a.servers {
		for i := range s.pending {
			if s.pending[i].stuck {
				s.pending[i].stuck = false
				s.pending[i].at = a.now()
			}
		}
	}
}

func (a *API) listFaults(*request) (any, *problem) {
	return map[string]any{"faults": a.faults.snapshot()}, nil
}

func (a *API) addFault(r *request) (any, *problem) {
	var f Fault
	if p := r.decode(&f); p != nil {
		return nil, p
	}
	if err := a.AddFault(f); err != nil {
		return nil, invalid("fault", err.Error())
	}
	return f, nil
}

func (a *API) clearFaults(*request) (any, *problem) {
	a.faults.clear()
	a.unstick()
	return nil, nil
}

// Counters say what a server was asked to do.
type Counters struct {
	Reboots map[string]int `json:"reboots"` // accepted, by boot type as sent
	Starts  int            `json:"starts"`
	Stops   int            `json:"stops"`
	Refused int            `json:"refused"` // actions that were not accepted
	Ignored int            `json:"ignored"` // accepted and not passed on, by fault
	Failed  int            `json:"failed"`  // commands that the machine answered with an error
}

// Counters gives a server's counters; false when there is no such server.
func (a *API) Counters(serverID string) (Counters, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.find(serverID)
	if s == nil {
		return Counters{}, false
	}
	return s.counted(), true
}

func (a *API) listCounters(*request) (any, *problem) {
	type row struct {
		ID       string   `json:"id"`
		Name     string   `json:"name"`
		Counters Counters `json:"counters"`
	}
	rows := make([]row, 0, len(a.servers))
	for _, s := range a.servers {
		rows = append(rows, row{ID: s.ID, Name: s.Name, Counters: s.counted()})
	}
	return map[string]any{"servers": rows, "note": fmt.Sprintf("%d simulated servers", len(rows))}, nil
}
