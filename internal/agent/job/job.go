// Package job runs the agent's long work detached from whoever asked for it:
// one job at a time on a machine, a directory for each key in RAM. Whoever
// asks again with the same key attaches to the job that is there.
//
//	RAMDir/lock             held by the job that runs (flock), holds its key
//	RAMDir/start.lock       held while a job is being started
//	RAMDir/fence            the run that has the machine, and its pass (api.Fence)
//	RAMDir/jobs/KEY/spec    what is asked for (api.JobSpec)
//	RAMDir/jobs/KEY/begun   there once a process, named in it, has begun: a key runs once
//	RAMDir/jobs/KEY/status  how it is doing (api.JobStatus without log)
//	RAMDir/jobs/KEY/log     what it did (api.LogEntry, a line each)
//	RAMDir/jobs/KEY/cancel  there once somebody wants it stopped
//
// The kernel drops a lock with its process, so a job that was killed is told
// from one that runs by nothing but its lock.
package job

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
)

// Work does a job's work. It stops in a safe state when the context ends.
type Work func(ctx context.Context, h host.Host, spec api.JobSpec, rep report.Reporter) (api.JobResult, error)

const (
	// tick is how often files are looked at for what is soon to come. A stat of
	// a file in RAM costs microseconds, and unlike inotify there is no small
	// limit of watchers a machine.
	tick = 20 * time.Millisecond
	// slowestTick is how often for a change of a job that takes long already.
	slowestTick = 50 * time.Millisecond
	// cancelTick is how often a job looks whether it is to end.
	cancelTick = 200 * time.Millisecond
	// beginWait is how long a new process may take to begin.
	beginWait = 20 * time.Second
	// lockWait is how long a job tries to get the machine's lock, which
	// others hold for an instant to see whether it is held.
	lockWait = 2 * time.Second
	// idleWait is how long a machine's lock may be held by a job that has
	// told its end.
	idleWait = 500 * time.Millisecond
	// statusLog is how many log entries a status carries.
	statusLog = 50
)

// Jobs are the jobs of a machine's current boot.
type Jobs struct{ host host.Host }

// Open gives the jobs of this boot. Another boot than the expected one is
// RescueLost.
func Open(h host.Host, bootID string) (*Jobs, error) {
	now, err := h.BootID()
	if err != nil {
		return nil, err
	}
	if now != bootID {
		return nil, fault.Lost("the machine is in boot %s, not in the expected boot %q", now, bootID)
	}
	if err := ownDir(h.RAMDir()); err != nil {
		return nil, fault.Operator("run the agent as root, and remove what is in the way", "the agent's directory cannot be made: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(h.RAMDir(), "jobs"), 0o700); err != nil {
		return nil, fault.Operator("free some room in RAM", "the jobs' directory cannot be made: %w", err)
	}
	return &Jobs{host: h}, nil
}

// CheckKey refuses keys that are no plain file names: 1 to 128 letters,
// digits, dots, dashes and underscores, starting with a letter or digit.
func CheckKey(key string) error {
	ok := key != "" && len(key) <= 128
	for i, r := range key {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		ok = ok && (letter || i > 0 && (r == '.' || r == '-' || r == '_'))
	}
	if !ok {
		return fault.Operator("use 1 to 128 letters, digits, dots, dashes and underscores, the first a letter or digit", "%.140q is no job key", key)
	}
	return nil
}

// checkSpec refuses a spec that does not say one thing.
func checkSpec(s api.JobSpec) error {
	set := map[api.Kind]bool{api.DiskPrep: s.DiskPrep != nil, api.Stage: s.Stage != nil, api.Write: s.Write != nil}
	known, count := set[s.Kind], 0
	for _, is := range set {
		if is {
			count++
		}
	}
	if !known || count != 1 {
		return fault.Operator("give the kind (disk-prep, stage or write) and the one request of that kind", "the request for a job of kind %q does not fit its kind", s.Kind)
	}
	return nil
}

func (j *Jobs) dir(key string, elem ...string) string {
	return filepath.Join(append([]string{j.host.RAMDir(), "jobs", key}, elem...)...)
}

func (j *Jobs) machineLock() string { return filepath.Join(j.host.RAMDir(), "lock") }
func (j *Jobs) startLock() string   { return filepath.Join(j.host.RAMDir(), "start.lock") }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// put replaces a file whole, readable by its owner only.
func put(path string, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}

func get(path string, value any) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, value)
}

// unknown says that there is no such job.
func unknown(key string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Operator("start it", "there is no job %q on this boot", key)
	}
	return fault.Retry("the files of job %q cannot be read: %w", key, err)
}

// wait sleeps for a tick.
func wait(ctx context.Context) error {
	return pause.For(ctx, tick)
}

// waitAfter sleeps for a tick that is the longer the longer a job has taken.
func waitAfter(ctx context.Context, started time.Time) error {
	return pause.For(ctx, min(max(tick, time.Since(started)/100), slowestTick))
}
