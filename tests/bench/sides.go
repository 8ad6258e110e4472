//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
)

// box is a machine to measure on.
type box interface {
	// sh runs a command of the shell as root. Lines of its standard error
	// are given to told as they come; it may be nil.
	sh(ctx context.Context, command string, told func(line string)) (string, error)
	// names are what the commands have to know.
	names() names
	// dirty fills the disk with what an earlier life left.
	dirty(ctx context.Context) error
	// limits measures each part of the work alone.
	limits(ctx context.Context) (limits, error)
}

// names are a machine's.
type names struct {
	get    string // downloads the URL behind it to standard output
	url    string // of the zst file
	sha256 string // of the zst file
	agent  string // with its settings
	ram    string // directory in RAM, for the raw image
	staged string // where the agent stages
	disk   string // kernel name
	serial string
	verify string // what the agent reads back
}

// result is one run of one side.
type result struct {
	stage, write time.Duration
	ram          int64 // bytes that the raw image takes in RAM
	written      int64 // bytes that the disk was given to write, zeroing left out
	steps        map[string]time.Duration
}

func (r result) total() time.Duration { return r.stage + r.write }

// String is a line for who watches.
func (r result) String() string {
	return fmt.Sprintf("stage %.2f s, write %.2f s, RAM %d MB, written %d MB", r.stage.Seconds(), r.write.Seconds(), r.ram/1e6, r.written/1e6)
}

// byHand is the way that people take.
func byHand(ctx context.Context, b box) (r result, err error) {
	n := b.names()
	raw := n.ram + "/talos.raw"
	if r.stage, err = timed(ctx, b, fmt.Sprintf("set -o pipefail; %s %s | zstd -dcq > %s", n.get, n.url, raw)); err != nil {
		return r, err
	}
	if r.ram, err = allocated(ctx, b, raw); err != nil {
		return r, err
	}
	before, err := sectors(ctx, b)
	if err != nil {
		return r, err
	}
	if r.write, err = timed(ctx, b, fmt.Sprintf("dd if=%s of=/dev/%s bs=4M oflag=direct 2>/dev/null", raw, n.disk)); err != nil {
		return r, err
	}
	after, err := sectors(ctx, b)
	if err != nil {
		return r, err
	}
	r.written = 512 * (after - before)
	_, err = b.sh(ctx, "rm "+raw, nil)
	return r, err
}

// byAgent is Ironlot's way.
func byAgent(ctx context.Context, b box) (r result, err error) {
	n, clock := b.names(), newClock()
	staged, err := job(ctx, b, clock, fmt.Sprintf("%s stage --url %s --sha256 %s -o json", n.agent, n.url, n.sha256))
	if err != nil {
		return r, err
	}
	r.stage = clock.stop()
	if staged.Stage == nil {
		return r, fmt.Errorf("the agent does not say what it has staged")
	}
	if r.ram, err = allocated(ctx, b, n.staged+"/image.raw"); err != nil {
		return r, err
	}
	before, err := sectors(ctx, b)
	if err != nil {
		return r, err
	}
	clock.start()
	done, err := job(ctx, b, clock, fmt.Sprintf("%s write --system %s --verify %s --yes -o json", n.agent, n.serial, n.verify))
	if err != nil {
		return r, err
	}
	r.write = clock.stop()
	if done.Write == nil || done.Write.BytesVerified < staged.Stage.DataSize {
		return r, fmt.Errorf("the agent has not read everything back")
	}
	after, err := sectors(ctx, b)
	if err != nil {
		return r, err
	}
	// The kernel counts zeroing, which carries no data, as writing too.
	r.written, r.steps = 512*(after-before)-done.Write.BytesZeroed, clock.steps
	if done.Write.ZeroMethod == "discard" { // which it counts apart
		r.written += done.Write.BytesZeroed
	}
	_, err = b.sh(ctx, "rm -r "+n.staged, nil)
	return r, err
}

// job runs a command of the agent; the clock learns of its steps.
func job(ctx context.Context, b box, c *clock, command string) (api.JobResult, error) {
	out, err := b.sh(ctx, command, c.hear)
	if err != nil {
		return api.JobResult{}, err
	}
	var answer api.Answer[api.JobResult]
	if err := json.NewDecoder(bytes.NewReader([]byte(out))).Decode(&answer); err != nil {
		return api.JobResult{}, fmt.Errorf("the agent's answer cannot be read: %w: %q", err, out)
	}
	if answer.Value == nil {
		return api.JobResult{}, fmt.Errorf("the agent failed: %s", out)
	}
	return *answer.Value, nil
}

func timed(ctx context.Context, b box, command string) (time.Duration, error) {
	start := time.Now()
	_, err := b.sh(ctx, command, nil)
	return time.Since(start), err
}

// allocated is how many bytes of RAM a file takes.
func allocated(ctx context.Context, b box, path string) (int64, error) {
	out, err := b.sh(ctx, "stat -c %b "+path, nil)
	if err != nil {
		return 0, err
	}
	blocks, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	return 512 * blocks, err
}

// sectors is how many sectors of 512 bytes were written to the disk so far
// (Documentation/block/stat.rst, field 7).
func sectors(ctx context.Context, b box) (int64, error) {
	out, err := b.sh(ctx, "cat /sys/block/"+b.names().disk+"/stat", nil)
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(out)
	if len(fields) < 7 {
		return 0, fmt.Errorf("the kernel's counters of %s are %q", b.names().disk, out)
	}
	return strconv.ParseInt(fields[6], 10, 64)
}

// clock tells how long the agent's steps take, by when it speaks of the next.
type clock struct {
	began, last time.Time
	step        string
	steps       map[string]time.Duration
}

func newClock() *clock {
	c := &clock{steps: map[string]time.Duration{}}
	c.start()
	return c
}

func (c *clock) start() { c.began, c.last, c.step = time.Now(), time.Now(), "start" }

// hear takes a line of the agent: "     STEP: N % of M".
func (c *clock) hear(line string) {
	step, _, ok := strings.Cut(line, ": ")
	if ok && strings.HasPrefix(line, "     ") {
		c.turn(strings.TrimSpace(step))
	}
}

func (c *clock) turn(step string) {
	if step == c.step {
		return
	}
	now := time.Now()
	c.steps[c.step] += now.Sub(c.last)
	c.step, c.last = step, now
}

func (c *clock) stop() time.Duration {
	c.turn("")
	return c.last.Sub(c.began)
}
