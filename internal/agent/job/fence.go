package job

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
)

// Claim makes the machine one run's for the rest of this boot. A foreign job
// at work is named in the answer and keeps the machine, unless it is the one
// to evict: that one is stopped first.
func (j *Jobs) Claim(ctx context.Context, c api.Claim) (api.Claimed, error) {
	if err := CheckKey(c.Fence.Run); err != nil {
		return api.Claimed{}, err
	}
	if c.Evict != "" {
		if _, err := j.Cancel(ctx, c.Evict); err != nil {
			return api.Claimed{}, err
		}
	}
	starting, err := j.starting(ctx)
	if err != nil {
		return api.Claimed{}, err
	}
	defer starting.release()
	running, err := j.atWork(ctx)
	if err != nil {
		return api.Claimed{}, err
	}
	if running != "" && !strings.HasPrefix(running, c.Fence.Run+"-") {
		return api.Claimed{Running: running}, nil
	}
	return api.Claimed{}, j.setFence(c.Fence)
}

// atWork is the key of the job at work, empty when there is none.
func (j *Jobs) atWork(ctx context.Context) (string, error) {
	if j.Idle(ctx) == nil {
		return "", nil
	}
	holder, err := os.ReadFile(j.machineLock())
	if err != nil {
		return "", fault.Retry("the machine's lock cannot be read: %w", err)
	}
	return string(holder), nil
}

// admit refuses a new job of a run that does not have the machine, and of a
// pass that is over. The caller holds the start lock.
func (j *Jobs) admit(f *api.Fence) error {
	if f == nil {
		return nil
	}
	var kept api.Fence
	err := get(j.fence(), &kept)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return j.setFence(*f)
	case err != nil:
		return fault.Retry("the machine's fence cannot be read: %w", err)
	case kept.Run != f.Run:
		return fault.Operator("look at that run; this one has lost the machine", "the machine was taken over by the run %s on this boot, so it starts nothing for the run %s", kept.Run, f.Run)
	case f.Pass < kept.Pass:
		return fault.Operator("look at the run's status: it has gone on", "the run %s is in its pass %d on this machine, so it starts nothing for pass %d", f.Run, kept.Pass, f.Pass)
	case f.Pass == kept.Pass:
		return nil
	}
	return j.setFence(*f)
}

func (j *Jobs) setFence(f api.Fence) error {
	if err := put(j.fence(), f); err != nil {
		return fault.Retry("the machine's fence cannot be written: %w", err)
	}
	return nil
}

func (j *Jobs) fence() string { return filepath.Join(j.host.RAMDir(), "fence") }
