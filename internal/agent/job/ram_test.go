//go:build linux

package job_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/job"
	"github.com/ironlot/ironlot/internal/agent/looptest"
	"github.com/ironlot/ironlot/internal/fault"
)

// TestFullRAM: each file that there is no room for is told of, and nothing is
// started.
func TestFullRAM(t *testing.T) {
	t.Parallel()
	for options, want := range map[string]struct {
		class fault.Class
		text  string
	}{
		"nr_inodes=1": {fault.NeedsOperator, "the jobs' directory cannot be made: "},
		"nr_inodes=2": {fault.Transient, "the lock for starting a job cannot be taken: "},
		"nr_inodes=3": {fault.Transient, "the machine's lock cannot be looked at: "},
		"nr_inodes=4": {fault.Transient, `the directory of job "k" cannot be made: `},
	} {
		t.Run(options, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, quick)
			looptest.SmallRAM(t, l.RAMDir(), options)
			jobs, err := job.Open(l, l.Boot)
			if err == nil {
				_, err = jobs.Start(t.Context(), "k", stageSpec())
			}
			if fault.ClassOf(err) != want.class || err == nil || !strings.Contains(err.Error(), want.text) || !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("%v, want %q", err, want.text)
			}
			if l.starts.Load() != 0 {
				t.Error("something was started")
			}
		})
	}
}
