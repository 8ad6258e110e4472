package job

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/flock"
)

// Start starts a job, or attaches to the one that has this key, whatever
// state that is in: a new attempt after a failure takes a new key. It returns
// when the job has begun. Another job at work is Transient.
func (j *Jobs) Start(ctx context.Context, key string, spec api.JobSpec) (api.JobStatus, error) {
	if err := errors.Join(CheckKey(key), checkSpec(spec)); err != nil {
		return api.JobStatus{}, err
	}
	starting, err := j.starting(ctx)
	if err != nil {
		return api.JobStatus{}, err
	}
	defer starting.release()
	if exists(j.dir(key)) {
		status, err := j.look(key)
		status.Attached = true
		return status, err
	}
	if err := j.Idle(ctx); err != nil {
		return api.JobStatus{}, err
	}
	if err := j.admit(spec.Fence); err != nil {
		return api.JobStatus{}, err
	}
	if err := j.create(key, spec); err != nil {
		return api.JobStatus{}, err
	}
	bootID, err := j.host.BootID()
	if err == nil {
		err = j.host.Spawn(ctx, "job", "run", "--key", key, "--boot-id", bootID)
	}
	if err == nil {
		err = j.begun(ctx, key)
	}
	if err != nil {
		j.discard(key)
		return api.JobStatus{}, fault.Retry("job %q could not be started: %w", key, err)
	}
	return j.look(key)
}

func (j *Jobs) starting(ctx context.Context) (*lock, error) {
	l, err := takeLock(ctx, j.startLock(), 2*beginWait)
	switch {
	case errors.Is(err, flock.ErrHeld):
		return nil, fault.Retry("another call is starting a job: %w", err)
	case err != nil:
		return nil, fault.Retry("the lock for starting a job cannot be taken: %w", err)
	}
	return l, nil
}

// Idle is Transient and names the job at work, if there is one. A job whose
// end has just been told gets a moment to give the machine's lock back.
func (j *Jobs) Idle(ctx context.Context) error {
	for start := time.Now(); ; {
		held, err := isHeld(j.machineLock())
		if err != nil {
			return fault.Retry("the machine's lock cannot be looked at: %w", err)
		}
		if !held {
			return nil
		}
		if time.Since(start) > idleWait {
			holder, _ := os.ReadFile(j.machineLock())
			return fault.Retry("another job is running on this machine: %q", holder)
		}
		if err := wait(ctx); err != nil {
			return err
		}
	}
}

// create makes the job's directory, whole or not at all.
func (j *Jobs) create(key string, spec api.JobSpec) error {
	tmp, err := os.MkdirTemp(filepath.Dir(j.dir(key)), ".new-")
	if err == nil {
		err = put(filepath.Join(tmp, "spec"), spec)
	}
	if err == nil {
		err = os.Rename(tmp, j.dir(key))
	}
	if err != nil {
		return fault.Retry("the directory of job %q cannot be made: %w", key, err)
	}
	return nil
}

// begun waits for the new process to begin, or to say why it does not.
func (j *Jobs) begun(ctx context.Context, key string) error {
	for start := time.Now(); !exists(j.dir(key, "status")); {
		if time.Since(start) > beginWait {
			return fault.Retry("its process did not begin within %s", beginWait)
		}
		if err := wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// discard takes a job away that has not begun, so that its key can be used
// again; a process that comes late finds nothing to do. One that began in
// this moment stays.
func (j *Jobs) discard(key string) {
	if f, err := os.OpenFile(j.dir(key, "begun"), os.O_CREATE|os.O_EXCL, 0o600); err == nil {
		_ = f.Close()
		_ = os.RemoveAll(j.dir(key))
	}
}
