//go:build linux

package main

import (
	"context"
	"os"
	"time"

	"github.com/ironlot/ironlot/internal/history"
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
	out, err := history.Export(ctx, s.client, workflowID, "")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(out, '\n'), 0o600)
}
