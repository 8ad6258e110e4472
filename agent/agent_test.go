//go:build linux

package main_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/gpt"
	"github.com/ironlot/ironlot/internal/agent/looptest"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

func want(d looptest.Device) run.Disk { return run.Disk{Serial: d.Serial, Size: uint64(d.Size)} }

func writeSpec(d looptest.Device, s run.Staged) api.JobSpec {
	return api.JobSpec{Kind: api.Write, Write: &api.WriteSpec{System: want(d), DataSHA256: s.DataSHA256, RawSize: s.RawSize}}
}

func stageSpec(url string) api.JobSpec {
	return api.JobSpec{Kind: api.Stage, Stage: &api.StageSpec{Image: run.Image{URL: url}}}
}

// image serves a zstd-compressed disk image with the partitions of Talos's
// and so many MiB of data, and gives its raw digest.
func image(t *testing.T, size, data int64) (server *httptest.Server, digest string) {
	t.Helper()
	head, tail, err := gpt.Encode(size, 512, gpt.Table{DiskGUID: gpt.NewGUID(), Partitions: []gpt.Partition{
		{Number: 1, Name: "EFI", Type: gpt.NewGUID(), GUID: gpt.NewGUID(), Offset: mib, Size: size - 4*mib},
		{Number: 4, Name: "META", Type: gpt.NewGUID(), GUID: gpt.NewGUID(), Offset: size - 3*mib, Size: mib},
	}})
	if err != nil {
		t.Fatal(err)
	}
	start := make([]byte, mib+data)
	copy(start, head)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(start[mib:]) // never fails
	rest := size - int64(len(start)+len(tail))
	packed, sum := &bytes.Buffer{}, sha256.New()
	pack := func(p []byte, times int64) {
		frame := zstdFrame(t, p)
		for range times {
			packed.Write(frame)
			sum.Write(p)
		}
	}
	pack(start, 1)
	pack(make([]byte, 64*mib), rest/(64*mib))
	pack(make([]byte, rest%(64*mib)), 1)
	pack(tail, 1)
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(packed.Bytes())
	}))
	t.Cleanup(server.Close)
	return server, hex.EncodeToString(sum.Sum(nil))
}

func zstdFrame(t *testing.T, p []byte) []byte {
	t.Helper()
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	return z.EncodeAll(p, nil)
}

// holds reports whether a disk starts with the image of this digest.
func holds(t *testing.T, d looptest.Device, size int64, digest string) bool {
	t.Helper()
	f, err := os.Open(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.CopyN(sum, f, size); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil)) == digest
}

func blankAt(t *testing.T, d looptest.Device) error {
	t.Helper()
	f, err := os.Open(d.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return gpt.CheckBlank(f, d.Size, 512)
}

// TestInstall takes two used disks to Talos and a blank one with an image of
// the real size.
func TestInstall(t *testing.T) {
	t.Parallel()
	system, second := looptest.New(t, "agent-system", 6000*mib, 512), looptest.New(t, "agent-second", 512*mib, 512)
	looptest.Tool(t, "mkfs.ext4", "-q", "-F", system.Path)
	looptest.Tool(t, "mkswap", second.Path)
	m := newMachine(t, system, second)
	inv, err := ask[api.Inventory](t, m, "", "inspect")
	if err != nil || len(inv.Disks) != 2 || inv.BootID != m.boot {
		t.Fatalf("inspect: %+v, %v", inv, err)
	}
	prepared := m.do(t, "prep-1", api.JobSpec{Kind: api.DiskPrep, DiskPrep: &api.DiskPrepSpec{System: want(system), Secondary: []run.Disk{want(second)}}})
	if !slices.Equal(prepared.DiskPrep.Blanked, []string{system.Serial, second.Serial}) {
		t.Errorf("prepared: %+v", prepared.DiskPrep)
	}
	const size = 4247 * mib
	server, digest := image(t, size, 64*mib)
	staged := m.do(t, "stage-1", stageSpec(server.URL)).Stage
	if staged.RawSHA256 != digest || staged.RawSize != size {
		t.Fatalf("staged: %+v, want %s", staged, digest)
	}
	written := m.do(t, "write-1", writeSpec(system, *staged)).Write
	if written.BytesVerified < size || written.BytesWritten < 64*mib || written.Serial != system.Serial {
		t.Errorf("written: %+v", written)
	}
	if !holds(t, system, size, digest) {
		t.Error("the disk does not hold the image")
	}
	if err := blankAt(t, second); err != nil {
		t.Errorf("the secondary disk: %v", err)
	}
}

// TestKilledWhileWriting kills the writing process: the status tells the
// truth, the disk does not look like Talos, and a new key finishes the work.
func TestKilledWhileWriting(t *testing.T) {
	t.Parallel()
	d := looptest.New(t, "agent-killed", 640*mib, 512)
	m := newMachine(t, d)
	m.do(t, "prep", api.JobSpec{Kind: api.DiskPrep, DiskPrep: &api.DiskPrepSpec{System: want(d)}})
	server, digest := image(t, 600*mib, 192*mib)
	staged := m.do(t, "stage", stageSpec(server.URL)).Stage
	for try := range 10 {
		key := fmt.Sprintf("write-%d", try)
		if _, err := m.start(t, key, writeSpec(d, *staged)); err != nil {
			t.Fatal(err)
		}
		var once sync.Once
		last := m.follow(t, key, func(s api.JobStatus) {
			if strings.Contains(s.Progress.Step, "writ") {
				once.Do(func() { m.kill(t, key) })
			}
		})
		if last.State == api.JobSucceeded {
			continue // it was faster than the kill
		}
		if last.State != api.JobLost || last.Error == nil {
			t.Fatalf("killed: %+v", last)
		}
		f, err := os.Open(d.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if table, err := gpt.Parse(f, d.Size, 512); err != nil || len(table.Partitions) != 0 {
			t.Errorf("the half-written disk has the table %+v, %v", table, err)
		}
		if again, err := m.start(t, key, writeSpec(d, *staged)); err != nil || again.State != api.JobLost {
			t.Errorf("the same key again: %+v, %v", again, err)
		}
		m.do(t, "write-after", writeSpec(d, *staged))
		if !holds(t, d, 600*mib, digest) {
			t.Error("the disk does not hold the image")
		}
		return
	}
	t.Fatal("ten writes were all faster than the kill")
}

// gate serves nothing until it is opened.
func gate(t *testing.T) (url string, open func(), requests *atomic.Int32) {
	t.Helper()
	opened := make(chan struct{})
	requests = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		select {
		case <-opened:
		case <-r.Context().Done():
		}
		http.Error(w, "gone", http.StatusNotFound)
	}))
	open = sync.OnceFunc(func() { close(opened) })
	t.Cleanup(server.Close)
	t.Cleanup(open)
	return server.URL, open, requests
}

// TestManyStarts has several sessions start jobs at once: one process works.
func TestManyStarts(t *testing.T) {
	t.Parallel()
	m := newMachine(t, looptest.New(t, "agent-many", 16*mib, 512))
	url, open, requests := gate(t)
	var attached, fresh, refused atomic.Int32
	var group sync.WaitGroup
	for range 6 {
		group.Go(func() {
			status, err := m.start(t, "one", stageSpec(url))
			switch {
			case err != nil:
				t.Error(err)
			case status.Attached:
				attached.Add(1)
			default:
				fresh.Add(1)
			}
		})
	}
	group.Wait()
	if fresh.Load() != 1 || attached.Load() != 5 {
		t.Errorf("fresh %d, attached %d", fresh.Load(), attached.Load())
	}
	if _, err := m.start(t, "two", stageSpec(url)); fault.ClassOf(err) != fault.Transient || !strings.Contains(err.Error(), `"one"`) {
		t.Errorf("another key: %v", err)
	} else {
		refused.Add(1)
	}
	if _, err := ask[struct{}](t, m, "", "reset", "--boot-id", m.boot); fault.ClassOf(err) != fault.Transient {
		t.Errorf("a reset while a job runs: %v", err)
	}
	open()
	if last := m.follow(t, "one", nil); last.State != api.JobFailed || last.Error.Class != fault.NeedsOperator {
		t.Errorf("the end: %+v", last)
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d downloads", n)
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	m := newMachine(t, looptest.New(t, "agent-cancel", 16*mib, 512))
	url, _, _ := gate(t)
	if _, err := m.start(t, "k", stageSpec(url)); err != nil {
		t.Fatal(err)
	}
	status, err := ask[api.JobStatus](t, m, "", "job", "cancel", "--key", "k", "--boot-id", m.boot)
	if err != nil || status.State != api.JobCanceled {
		t.Fatalf("%+v, %v", status, err)
	}
	left, err := filepath.Glob(filepath.Join(m.ram, "image*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left in RAM: %v, %v", left, err)
	}
}
