//go:build linux

package main

import (
	"context"
	"os"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
)

// longest is the longest wait of one machine in one place.
type longest struct {
	Node    string  `json:"node"`
	Name    string  `json:"name"` // of the wait
	Seconds float64 `json:"seconds"`

	machine int // its index
}

// longestOf looks at the machines that went straight; the index is -1 when none did.
func longestOf(machines []*machine) longest {
	most := longest{machine: -1}
	for i, m := range machines {
		if !m.straight() {
			continue
		}
		for _, w := range waits() {
			if took := w.of(m).Round(time.Millisecond).Seconds(); most.machine < 0 || took > most.Seconds {
				most = longest{Name: w.name, Seconds: took, machine: i}
			}
		}
	}
	return most
}

// save writes a run's history as the Temporal CLI exports it.
func (s *site) save(ctx context.Context, workflowID, file string) error {
	var all historypb.History
	events := s.client.GetWorkflowHistory(ctx, workflowID, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return err
		}
		all.Events = append(all.Events, event)
	}
	out, err := temporalproto.CustomJSONMarshalOptions{Indent: "  "}.Marshal(&all)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(out, '\n'), 0o600)
}
