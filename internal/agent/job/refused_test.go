package job_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/job"
	"github.com/ironlot/ironlot/internal/fault"
)

func TestOtherBoot(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t)
	_, err := job.Open(h, "another")
	if fault.ClassOf(err) != fault.RescueLost {
		t.Errorf("another boot: %v", err)
	}
}

func TestForeignDirectory(t *testing.T) {
	t.Parallel()
	h := hosttest.New(t)
	dir := h.RAMDir()
	if err := errors.Join(os.Remove(dir), os.Symlink("/", dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := job.Open(h, h.Boot); fault.ClassOf(err) != fault.NeedsOperator {
		t.Errorf("a link instead of the directory: %v", err)
	}
}

func TestKeysAndSpecs(t *testing.T) {
	t.Parallel()
	l := newLab(t, quick)
	for _, key := range []string{"", ".", "..", "../x", "a/b", "a b", "a\nb", "-a", ".a", "ä", strings.Repeat("k", 129)} {
		if _, err := l.jobs.Start(t.Context(), key, stageSpec()); fault.ClassOf(err) != fault.NeedsOperator {
			t.Errorf("key %q: %v", key, err)
		}
		if _, err := l.jobs.Status(t.Context(), key); fault.ClassOf(err) != fault.NeedsOperator {
			t.Errorf("status of key %q: %v", key, err)
		}
	}
	for _, spec := range []api.JobSpec{
		{}, {Kind: "dance"}, {Kind: api.Stage}, {Kind: api.Write, Stage: &api.StageSpec{}},
		{Kind: api.Stage, Stage: &api.StageSpec{}, Write: &api.WriteSpec{}},
	} {
		if _, err := l.jobs.Start(t.Context(), "k", spec); fault.ClassOf(err) != fault.NeedsOperator {
			t.Errorf("spec %+v: %v", spec, err)
		}
	}
	for name, call := range map[string]func() error{
		"status": func() error { _, err := l.jobs.Status(t.Context(), "none"); return err },
		"cancel": func() error { _, err := l.jobs.Cancel(t.Context(), "none"); return err },
		"follow": func() error {
			return l.jobs.Follow(t.Context(), "none", func(api.JobStatus) error { return nil })
		},
		"run": func() error { return l.jobs.Run(t.Context(), "none", quick) },
	} {
		if err := call(); fault.ClassOf(err) != fault.NeedsOperator || !strings.Contains(err.Error(), `no job "none"`) {
			t.Errorf("%s of no job: %v", name, err)
		}
	}
	if l.starts.Load() != 0 {
		t.Error("something was started")
	}
}

func TestSpawnFails(t *testing.T) {
	t.Parallel()
	l := newLab(t, quick)
	works := l.Start
	l.Start = func(...string) error { return errors.New("no room") }
	if _, err := l.jobs.Start(t.Context(), "k", stageSpec()); fault.ClassOf(err) != fault.Transient || !strings.Contains(err.Error(), "no room") {
		t.Fatalf("%v", err)
	}
	l.Start = works
	if status, err := l.jobs.Start(t.Context(), "k", stageSpec()); err != nil || status.Attached {
		t.Errorf("the key is burnt: %+v, %v", status, err)
	}
	follow(t, l.jobs, "k")
}
