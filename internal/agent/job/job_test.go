package job_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/job"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// lab is a host whose jobs run in goroutines of this process.
type lab struct {
	*hosttest.Host
	jobs   *job.Jobs
	starts atomic.Int32
	atWork atomic.Int32
	most   atomic.Int32 // jobs at work at once
	done   sync.WaitGroup
}

// newLab makes a lab whose jobs do this work.
func newLab(t *testing.T, work job.Work) *lab {
	t.Helper()
	l := &lab{Host: hosttest.New(t)}
	jobs, err := job.Open(l, l.Boot)
	if err != nil {
		t.Fatal(err)
	}
	l.jobs = jobs
	counted := func(ctx context.Context, h host.Host, spec api.JobSpec, rep report.Reporter) (api.JobResult, error) {
		l.starts.Add(1)
		l.most.Store(max(l.most.Load(), l.atWork.Add(1)))
		defer l.atWork.Add(-1)
		return work(ctx, h, spec, rep)
	}
	l.Start = func(args ...string) error {
		key := args[3] // job run --key KEY --boot-id ID
		l.done.Go(func() { _ = l.jobs.Run(context.Background(), key, counted) })
		return nil
	}
	t.Cleanup(l.done.Wait)
	return l
}

func stageSpec() api.JobSpec {
	return api.JobSpec{Kind: api.Stage, Stage: &api.StageSpec{Image: run.Image{URL: "https://example.org/secret"}}}
}

func quick(context.Context, host.Host, api.JobSpec, report.Reporter) (api.JobResult, error) {
	return api.JobResult{Stage: &run.Staged{Format: "raw"}}, nil
}

// blocking works until it is let go or stopped.
func blocking(letGo chan struct{}) job.Work {
	return func(ctx context.Context, _ host.Host, _ api.JobSpec, _ report.Reporter) (api.JobResult, error) {
		select {
		case <-letGo:
			return quick(ctx, nil, api.JobSpec{}, nil)
		case <-ctx.Done():
			return api.JobResult{}, ctx.Err()
		}
	}
}

func follow(t *testing.T, j *job.Jobs, key string) []api.JobStatus {
	t.Helper()
	var all []api.JobStatus
	err := j.Follow(t.Context(), key, func(s api.JobStatus) error {
		all = append(all, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSuccess(t *testing.T) {
	t.Parallel()
	letGo := make(chan struct{})
	l := newLab(t, func(_ context.Context, _ host.Host, spec api.JobSpec, rep report.Reporter) (api.JobResult, error) {
		report.Log(rep, "saw", "first")
		rep.Progress(api.Progress{Step: "half", Done: 1, Total: 2})
		<-letGo
		report.Log(rep, "did", spec.Stage.Image.URL)
		return api.JobResult{Stage: &run.Staged{Format: "zstd"}}, nil
	})
	status, err := l.jobs.Start(t.Context(), "k1", stageSpec())
	if err != nil || status.State != api.JobRunning || status.Attached || status.Key != "k1" || status.Kind != api.Stage || status.BootID != l.Boot {
		t.Fatalf("started: %+v, %v", status, err)
	}
	again, err := l.jobs.Start(t.Context(), "k1", stageSpec())
	if err != nil || !again.Attached || again.State != api.JobRunning {
		t.Fatalf("attached: %+v, %v", again, err)
	}
	go func() { close(letGo) }()
	all := follow(t, l.jobs, "k1")
	last := all[len(all)-1]
	if last.State != api.JobSucceeded || last.Result == nil || last.Result.Stage.Format != "zstd" || last.Ended.IsZero() {
		t.Errorf("the last status is %+v", last)
	}
	var texts []string
	for _, s := range all {
		for _, e := range s.Log {
			texts = append(texts, e.Text)
		}
	}
	if strings.Join(texts, " ") != "first https://example.org/secret" {
		t.Errorf("all logs together: %q", texts)
	}
	if status, err = l.jobs.Status(t.Context(), "k1"); err != nil || status.State != api.JobSucceeded || len(status.Log) != 2 {
		t.Errorf("afterwards: %+v, %v", status, err)
	}
	if l.starts.Load() != 1 {
		t.Errorf("%d starts", l.starts.Load())
	}
	info, err := os.Stat(filepath.Join(l.RAMDir(), "jobs/k1/spec"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the spec, which may hold a secret URL, has mode %v, %v", info.Mode(), err)
	}
}

// TestTwoStartsAtOnce has many callers start the same key and others: one
// job runs, the others attach or are told which one does.
func TestTwoStartsAtOnce(t *testing.T) {
	t.Parallel()
	letGo := make(chan struct{})
	l := newLab(t, blocking(letGo))
	var same, other, refused atomic.Int32
	var group sync.WaitGroup
	for i := range 12 {
		group.Go(func() {
			key := "a"
			if i%3 == 2 {
				key = "b"
			}
			status, err := l.jobs.Start(t.Context(), key, stageSpec())
			switch {
			case err != nil && fault.ClassOf(err) == fault.Transient && strings.Contains(err.Error(), "another job is running"):
				refused.Add(1)
			case err != nil:
				t.Error(err)
			case status.Key == "a":
				same.Add(1)
			default:
				other.Add(1)
			}
		})
	}
	group.Wait()
	if l.starts.Load() != 1 || l.most.Load() != 1 || same.Load()+other.Load()+refused.Load() != 12 || same.Load() > 0 && other.Load() > 0 {
		t.Errorf("starts %d, at once %d; a %d, b %d, refused %d", l.starts.Load(), l.most.Load(), same.Load(), other.Load(), refused.Load())
	}
	close(letGo)
}

func TestFailureStays(t *testing.T) {
	t.Parallel()
	l := newLab(t, func(context.Context, host.Host, api.JobSpec, report.Reporter) (api.JobResult, error) {
		return api.JobResult{}, fault.Operator("look at it", "the disk is broken").WithTail("tail")
	})
	if _, err := l.jobs.Start(t.Context(), "k", stageSpec()); err != nil {
		t.Fatal(err)
	}
	follow(t, l.jobs, "k")
	// At once: the job's process may still be on its way out.
	status, err := l.jobs.Start(t.Context(), "k", stageSpec())
	if err != nil || !status.Attached || status.State != api.JobFailed || status.Result != nil {
		t.Fatalf("again: %+v, %v", status, err)
	}
	if e := status.Error; e == nil || e.Class != fault.NeedsOperator || e.Message != "the disk is broken" || e.Remedy != "look at it" || e.Tail != "tail" {
		t.Errorf("the error is told as %+v", status.Error)
	}
	if n := len(status.Log); n == 0 || status.Log[n-1].Event != "failed" || status.Log[n-1].Text != "the disk is broken" {
		t.Errorf("the log ends with %+v", status.Log)
	}
	if l.starts.Load() != 1 {
		t.Error("a failed job was started again under its key")
	}
	if status, err = l.jobs.Start(t.Context(), "k2", stageSpec()); err != nil || status.Attached {
		t.Errorf("a new key: %+v, %v", status, err)
	}
	follow(t, l.jobs, "k2")
}

func TestCancel(t *testing.T) {
	t.Parallel()
	l := newLab(t, blocking(make(chan struct{})))
	if _, err := l.jobs.Start(t.Context(), "k", stageSpec()); err != nil {
		t.Fatal(err)
	}
	status, err := l.jobs.Cancel(t.Context(), "k")
	if err != nil || status.State != api.JobCanceled || status.Error == nil || status.Error.Class != fault.Aborted {
		t.Fatalf("canceled: %+v, %v", status, err)
	}
	if err := l.jobs.Idle(t.Context()); err != nil {
		t.Errorf("after the cancellation: %v", err)
	}
	if again, err := l.jobs.Cancel(t.Context(), "k"); err != nil || again.State != api.JobCanceled {
		t.Errorf("canceled twice: %+v, %v", again, err)
	}
}

func TestDoAndIdle(t *testing.T) {
	t.Parallel()
	l := newLab(t, quick)
	status, err := l.jobs.Do(t.Context(), "hand", stageSpec(), func(ctx context.Context, h host.Host, spec api.JobSpec, rep report.Reporter) (api.JobResult, error) {
		if err := l.jobs.Idle(t.Context()); err == nil || !strings.Contains(err.Error(), `"hand"`) {
			t.Errorf("while it works: %v", err)
		}
		if _, err := l.jobs.Start(ctx, "other", stageSpec()); fault.ClassOf(err) != fault.Transient || !strings.Contains(err.Error(), `"hand"`) {
			t.Errorf("another start while it works: %v", err)
		}
		return quick(ctx, h, spec, rep)
	})
	if err != nil || status.State != api.JobSucceeded {
		t.Fatalf("%+v, %v", status, err)
	}
	if err := l.jobs.Idle(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestEndIsSeenAtOnce measures what an activity waits for nothing.
func TestEndIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	letGo := make(chan struct{})
	l := newLab(t, blocking(letGo))
	if _, err := l.jobs.Start(t.Context(), "k", stageSpec()); err != nil {
		t.Fatal(err)
	}
	var last api.JobStatus
	var seen time.Time
	err := l.jobs.Follow(t.Context(), "k", func(s api.JobStatus) error {
		if s.State == api.JobRunning && last.State == "" {
			close(letGo)
		}
		last, seen = s, time.Now()
		return nil
	})
	if err != nil || last.State != api.JobSucceeded {
		t.Fatalf("%+v, %v", last, err)
	}
	// 50 ms on an idle machine; a loaded one running tests is not idle.
	if delay := seen.Sub(last.Ended); delay > time.Second {
		t.Errorf("the end was seen %s late", delay)
	}
}
