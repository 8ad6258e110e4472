package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/ironlot/ironlot/internal/run"
)

// script says what the phases of the lots in TestCommands do.
type script struct {
	mu      sync.Mutex
	mended  map[string]bool     // lots whose stuck node was mended
	blocked map[string]struct{} // lots that were seen to block
}

// phase: node-2 of a lot named stuck… gets stuck in write until mended;
// every node of a lot named block… stays in wait-ssh.
func (s *script) phase(ctx context.Context, in run.PhaseInput, p run.Phase) error {
	s.mu.Lock()
	mended := s.mended[in.Node.Lot]
	block := strings.HasPrefix(in.Node.Lot, "block") && p == run.WaitSSH
	if block {
		s.blocked[in.Node.Lot] = struct{}{}
	}
	s.mu.Unlock()
	if block {
		return beatUntilDone(ctx)
	}
	if strings.HasPrefix(in.Node.Lot, "stuck") && in.Node.Name == "node-2" && p == run.Write && !mended {
		remedy := "replace the disk"
		if in.Node.Lot == "stuck-told" {
			remedy = commandsInRemedy
		}
		return needsOperator("the disk S1 reads back other bytes at offset 512", remedy)
	}
	return nil
}

func (s *script) mend(lot string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mended[lot] = true
}

func (s *script) isBlocked(lot string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.blocked[lot]
	return ok
}

// proved is what a phase leaves behind: lots named written… write a disk, those
// named kept… find every node Ready and leave it alone.
func proved(f run.Facts, lot string, p run.Phase) run.Facts {
	switch {
	case strings.HasPrefix(lot, "written") && p == run.Write:
		f.System, f.Touched, f.Written = &run.Disk{Serial: "S-" + lot}, true, &run.Written{}
		f.Staged = &run.Staged{DataSHA256: "data-" + lot}
	case strings.HasPrefix(lot, "kept") && p == run.Preflight:
		f.Applied = &run.Applied{ConfigSHA256: "config-" + lot, Already: true}
		f.Ready = &run.NodeReady{At: time.Now(), TalosVersion: "v1.13.8"}
	}
	return f
}
