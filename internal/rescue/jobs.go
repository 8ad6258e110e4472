package rescue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
)

// Inspect asks the agent for the machine's inventory. Nothing is changed.
func (s *Session) Inspect(ctx context.Context) (api.Inventory, error) {
	return call[api.Inventory](ctx, s, nil, "inspect", "--output", "json")
}

// StartJob starts the job with this key, or attaches to it when it is there
// already on this boot. The job goes on whatever happens to the session. A
// job that had failed before is in the status, not in the error.
func (s *Session) StartJob(ctx context.Context, bootID, key string, spec api.JobSpec) (api.JobStatus, error) {
	words, err := jobWords("start", bootID, key)
	if err != nil {
		return api.JobStatus{}, err
	}
	kind, err := word("kind of job", string(spec.Kind))
	if err != nil {
		return api.JobStatus{}, err
	}
	return call[api.JobStatus](ctx, s, spec, append(words, kind)...)
}

// JobStatus asks how a job is doing.
func (s *Session) JobStatus(ctx context.Context, bootID, key string) (api.JobStatus, error) {
	return s.jobCall(ctx, "status", bootID, key)
}

// CancelJob stops a job in a safe state and gives its last status.
func (s *Session) CancelJob(ctx context.Context, bootID, key string) (api.JobStatus, error) {
	return s.jobCall(ctx, "cancel", bootID, key)
}

// Claim asks for the machine on behalf of a run: from then on it starts no
// job of another run on this boot. A foreign job at work is in the answer.
func (s *Session) Claim(ctx context.Context, bootID string, c api.Claim) (api.Claimed, error) {
	words, err := jobWords("claim", bootID, c.Fence.Run)
	if err != nil {
		return api.Claimed{}, err
	}
	return call[api.Claimed](ctx, s, c, words...)
}

func (s *Session) jobCall(ctx context.Context, verb, bootID, key string) (api.JobStatus, error) {
	words, err := jobWords(verb, bootID, key)
	if err != nil {
		return api.JobStatus{}, err
	}
	return call[api.JobStatus](ctx, s, nil, words...)
}

// FollowJob gives each status of a job to a function until the job has
// ended, and returns the last one with the whole log. A dropped connection is
// ErrTransport; the job goes on and can be followed again.
func (s *Session) FollowJob(ctx context.Context, bootID, key string, onStatus func(api.JobStatus)) (api.JobStatus, error) {
	var last api.JobStatus
	words, err := jobWords("follow", bootID, key)
	if err != nil {
		return last, err
	}
	c, err := s.provenCommand(ctx, nil, words...)
	if err != nil {
		return last, err
	}
	var log []api.LogEntry // each line carries what is new
	c.onLine = func(line []byte) error {
		status, err := s.followed(c, line)
		if err != nil {
			return err
		}
		last, log = status, append(log, status.Log...)
		onStatus(status)
		return nil
	}
	err = s.exec(ctx, c)
	last.Log = log
	if last.State != "" && last.State != api.JobRunning {
		return last, nil // the job's end is known, however the connection ended
	}
	var failed *CommandError
	if err == nil || errors.As(err, &failed) {
		err = s.noAnswer(c, failed)
	}
	return last, err
}

// followed decodes a line of follow: a job's status, or an answer that says
// why there is none.
func (s *Session) followed(c command, line []byte) (api.JobStatus, error) {
	var status api.JobStatus
	if err := json.Unmarshal(line, &status); err != nil {
		return status, fault.Operator("check that the worker and its agent are of one version",
			"%s at %s sent a line that is no job status", c.name, s.target.addr())
	}
	if status.State == "" && status.Error != nil {
		return status, status.Error.Err()
	}
	return status, nil
}

// Reset asks the agent to reset the machine through SysRq. The agent answers
// before the machine goes, and lets it go once the answer is here, which ends
// this call; ErrTransport means that nothing is known. That the boot is gone
// is for the caller to prove.
func (s *Session) Reset(ctx context.Context, bootID string) error {
	boot, err := word("boot ID", bootID)
	if err != nil {
		return err
	}
	c, err := s.provenCommand(ctx, nil, "reset", "--boot-id", boot)
	if err != nil {
		return err
	}
	ctx, heard := context.WithCancel(ctx)
	defer heard()
	c.open = ctx.Done()
	var line []byte
	c.onLine = func(l []byte) error {
		line = bytes.Clone(l)
		heard()
		return nil
	}
	err = s.exec(ctx, c)
	var failed *CommandError
	if line == nil && err != nil && !errors.As(err, &failed) {
		return err
	}
	_, err = answered[json.RawMessage](s, c, line, failed)
	return err
}

func jobWords(verb, bootID, key string) ([]string, error) {
	boot, err := word("boot ID", bootID)
	if err != nil {
		return nil, err
	}
	k, err := word("job key", key)
	if err != nil {
		return nil, err
	}
	return []string{"job", verb, "--key", k, "--boot-id", boot}, nil
}
