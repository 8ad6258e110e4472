package job

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
)

// beat is how often Follow tells at least, and how often it looks whether the
// job's process is still there.
const beat = time.Second

// Status tells how a job is doing, with its last log entries.
func (j *Jobs) Status(ctx context.Context, key string) (api.JobStatus, error) {
	if err := CheckKey(key); err != nil {
		return api.JobStatus{}, err
	}
	if !exists(j.dir(key)) {
		return api.JobStatus{}, unknown(key, fs.ErrNotExist)
	}
	status, err := j.look(key)
	if err != nil || status.State != api.JobLost {
		return status, err
	}
	// Between its directory and its lock a job that is being started looks
	// lost: look again when nobody is starting one.
	starting, err := j.starting(ctx)
	if err != nil {
		return api.JobStatus{}, err
	}
	defer starting.release()
	return j.look(key)
}

// look reads a job's status and log. A running job without its lock is lost.
func (j *Jobs) look(key string) (api.JobStatus, error) {
	status, err := j.state(key)
	if err != nil {
		return status, err
	}
	if status.State == api.JobRunning && !j.holds(key) {
		// It may have ended in between: its end is written before the lock
		// is given back.
		if status, err = j.state(key); err == nil && status.State == api.JobRunning {
			status = j.lost(status)
		}
	}
	entries, _, readErr := readLog(j.dir(key, "log"), 0)
	if len(entries) > statusLog {
		entries = entries[len(entries)-statusLog:]
	}
	status.Log = entries
	return status, errors.Join(err, readErr)
}

// state reads the status file; without one the job has not begun and counts
// as running until its lock is looked at.
func (j *Jobs) state(key string) (api.JobStatus, error) {
	var status api.JobStatus
	err := get(j.dir(key, "status"), &status)
	if !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return status, unknown(key, err)
		}
		return status, nil
	}
	var spec api.JobSpec
	if err := get(j.dir(key, "spec"), &spec); err != nil {
		return status, unknown(key, err)
	}
	bootID, err := j.host.BootID()
	return api.JobStatus{Key: key, Kind: spec.Kind, BootID: bootID, State: api.JobRunning}, err
}

// holds reports whether a process holds the machine's lock for this job.
func (j *Jobs) holds(key string) bool {
	if held, err := isHeld(j.machineLock()); err != nil || !held {
		return false
	}
	holder, err := os.ReadFile(j.machineLock())
	return err == nil && string(holder) == key
}

// lost is what is told of a job whose process is gone.
func (j *Jobs) lost(s api.JobStatus) api.JobStatus {
	s.State = api.JobLost
	err := fault.Retry("the process of job %q is gone and left no result", s.Key)
	if out, readErr := os.ReadFile(filepath.Join(j.host.RAMDir(), "agent.log")); readErr == nil {
		err = err.WithTail(string(out[max(0, len(out)-2048):]))
	}
	s.Error = api.ErrorFrom(err)
	return s
}

// Follow gives a job's status to emit whenever its state or progress changes and
// at least every second, until the job has ended. Each carries the log entries that were not
// given before, so that all together are the whole log.
func (j *Jobs) Follow(ctx context.Context, key string, emit func(api.JobStatus) error) error {
	first, err := j.Status(ctx, key)
	if err != nil {
		return err
	}
	f := &follower{jobs: j, key: key, started: first.Started}
	for status := first; ; {
		if err := f.emit(status, emit); err != nil || status.State != api.JobRunning {
			return err
		}
		if status, err = f.next(ctx); err != nil {
			return err
		}
	}
}

// follower remembers what was given of a job.
type follower struct {
	jobs    *Jobs
	key     string
	started time.Time // the job
	offset  int64     // in the log
	seen    os.FileInfo
	told    time.Time
}

func (f *follower) emit(status api.JobStatus, emit func(api.JobStatus) error) error {
	var err error
	if status.Log, f.offset, err = readLog(f.jobs.dir(f.key, "log"), f.offset); err != nil {
		return err
	}
	f.told = time.Now()
	return emit(status)
}

// next waits for something new to tell.
func (f *follower) next(ctx context.Context) (api.JobStatus, error) {
	for {
		if err := waitAfter(ctx, f.started); err != nil {
			return api.JobStatus{}, err
		}
		if f.changed() || time.Since(f.told) >= beat {
			return f.jobs.look(f.key)
		}
	}
}

// changed looks at the status file, which is replaced at every change. Log
// entries come with it, or with the next beat.
func (f *follower) changed() bool {
	info, err := os.Stat(f.jobs.dir(f.key, "status"))
	if err != nil {
		return false
	}
	same := f.seen != nil && os.SameFile(info, f.seen) && info.ModTime().Equal(f.seen.ModTime())
	f.seen = info
	return !same
}

// readLog reads the whole lines of a log from an offset on.
func readLog(path string, offset int64) ([]api.LogEntry, int64, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, offset, nil
	}
	if err != nil {
		return nil, offset, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.NewSectionReader(f, offset, 1<<62))
	if err != nil {
		return nil, offset, err
	}
	b = b[:bytes.LastIndexByte(b, '\n')+1] // a line that is being written waits
	var entries []api.LogEntry
	for line := range bytes.Lines(b) {
		var e api.LogEntry
		if json.Unmarshal(line, &e) == nil {
			entries = append(entries, e)
		}
	}
	return entries, offset + int64(len(b)), nil
}

// Cancel asks a job to stop, waits until it has, and tells how it ended. A
// job that has ended already stays as it is.
func (j *Jobs) Cancel(ctx context.Context, key string) (api.JobStatus, error) {
	status, err := j.Status(ctx, key)
	if err != nil || status.State != api.JobRunning {
		return status, err
	}
	if err := os.WriteFile(j.dir(key, "cancel"), nil, 0o600); err != nil {
		return status, fault.Retry("job %q cannot be told to stop: %w", key, err)
	}
	for status.State == api.JobRunning {
		if err := wait(ctx); err != nil {
			return status, fault.Retry("job %q has not stopped yet: %w", key, err)
		}
		if status, err = j.look(key); err != nil {
			return status, err
		}
	}
	return status, nil
}
