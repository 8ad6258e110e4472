//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// native is this computer, with a loop device over a file in RAM.
type native struct {
	n    names
	file string // behind the loop device
	data int64  // bytes of the image that are data
	size int64  // of the raw image
}

// spare is how much larger than the image disks are, bytes.
const spare = 256 << 20

func measureNative(ctx context.Context, o options, w *web, dir string) error {
	b := &native{file: filepath.Join(dir, "BENCH.img"), data: o.spec.Data, size: o.spec.Size}
	if err := os.WriteFile(b.file, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(b.file, o.spec.Size+spare); err != nil {
		return err
	}
	device, err := run(ctx, "losetup", "--find", "--show", b.file)
	if err != nil {
		return err
	}
	defer run(context.WithoutCancel(ctx), "losetup", "--detach", device) //nolint:errcheck // nothing depends on it
	disk := filepath.Base(device)
	staged := filepath.Join(dir, "staged")
	b.n = names{
		get: "curl -sf", url: w.url + "/image.zst", sha256: w.sha256, ram: dir, staged: staged, disk: disk, serial: "BENCH", verify: o.verify,
		agent: fmt.Sprintf("IRONLOT_RAM_DIR=%s IRONLOT_LOOP_DEVICES=%s %s", staged, disk, o.agent),
	}
	return compare(ctx, "Natively, on a loop device over a file in RAM", o.pairs, b)
}

func (b *native) names() names { return b.n }

func (b *native) sh(ctx context.Context, command string, told func(string)) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	var out bytes.Buffer
	cmd.Stdout = &out
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	said := listen(stderr, told)
	if err := cmd.Wait(); err != nil {
		return "", fmt.Errorf("%s: %w: %s%s", command, err, said, out.String())
	}
	return out.String(), nil
}

// listen gives the lines out as they come and keeps them.
func listen(r io.Reader, told func(string)) string {
	var all strings.Builder
	for lines := bufio.NewScanner(r); lines.Scan(); {
		all.WriteString(lines.Text() + "\n")
		if told != nil {
			told(lines.Text())
		}
	}
	return all.String()
}

// dirty fills the place of the image, so that no side writes into holes of
// the file behind the disk.
func (b *native) dirty(context.Context) error {
	f, err := os.OpenFile(b.file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	chunk := bytes.Repeat([]byte("old data "), 1<<20/9)
	for off := int64(0); err == nil && off < b.size+spare/2; off += int64(len(chunk)) {
		_, err = f.WriteAt(chunk, off)
	}
	return errors.Join(err, f.Close())
}

func (b *native) limits(ctx context.Context) (l limits, err error) {
	self, err := os.Executable()
	if err != nil {
		return l, err
	}
	return probeOn(ctx, b, self, b.data)
}

// probeOn has the probe run on a machine.
func probeOn(ctx context.Context, b box, program string, data int64) (l limits, err error) {
	out, err := b.sh(ctx, fmt.Sprintf("%s probe %s /dev/%s %d", program, b.names().url, b.names().disk, data), nil)
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal([]byte(out), &l)
}
