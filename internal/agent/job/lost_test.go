package job_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
)

// TestASignalIsNoWish: a system that shuts down stops jobs as well, and their
// runs go on.
func TestASignalIsNoWish(t *testing.T) {
	t.Parallel()
	l := newLab(t, quick)
	ctx, signal := context.WithCancelCause(t.Context())
	status, err := l.jobs.Do(ctx, "k", stageSpec(), func(ctx context.Context, h host.Host, spec api.JobSpec, rep report.Reporter) (api.JobResult, error) {
		signal(errors.New("terminated"))
		return blocking(nil)(ctx, h, spec, rep)
	})
	if err == nil || status.State != api.JobCanceled || status.Error.Class != fault.Transient || !strings.Contains(status.Error.Message, "terminated") {
		t.Errorf("%+v, %v", status, err)
	}
}

// TestLost leaves what a killed job leaves: a status that says running, and
// no lock. A new key is free to start.
func TestLost(t *testing.T) {
	t.Parallel()
	l := newLab(t, quick)
	dir := filepath.Join(l.RAMDir(), "jobs", "dead")
	spec, _ := json.Marshal(stageSpec())
	running, _ := json.Marshal(api.JobStatus{Key: "dead", Kind: api.Stage, State: api.JobRunning, BootID: l.Boot, Started: time.Now()})
	err := errors.Join(os.Mkdir(dir, 0o700),
		os.WriteFile(filepath.Join(dir, "spec"), spec, 0o600),
		os.WriteFile(filepath.Join(dir, "begun"), nil, 0o600),
		os.WriteFile(filepath.Join(dir, "status"), running, 0o600),
		os.WriteFile(filepath.Join(dir, "log"), []byte(`{"event":"did","text":"whole"}`+"\n"+`{"event":"did","te`), 0o600),
		os.WriteFile(filepath.Join(l.RAMDir(), "lock"), []byte("dead"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		status, err := l.jobs.Start(t.Context(), "dead", stageSpec())
		if err != nil || status.State != api.JobLost || status.Error == nil || len(status.Log) != 1 {
			t.Fatalf("lost: %+v, %v", status, err)
		}
	}
	if all := follow(t, l.jobs, "dead"); all[len(all)-1].State != api.JobLost {
		t.Errorf("followed: %+v", all)
	}
	if err := l.jobs.Run(t.Context(), "dead", quick); err == nil {
		t.Error("a key ran twice")
	}
	if _, err := l.jobs.Start(t.Context(), "next", stageSpec()); err != nil {
		t.Error(err)
	}
	follow(t, l.jobs, "next")
}
