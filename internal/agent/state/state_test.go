package state_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/state"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/testenv"
)

// configOf makes a config of a length that is easy to tell from any other.
func configOf(size int) []byte {
	return bytes.Repeat([]byte("version: v1alpha1 # a line\n"), size/27+1)[:size]
}

// imageOf writes a filesystem into a sparse file.
func imageOf(t *testing.T, config []byte) string {
	t.Helper()
	fs, err := state.New(config)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, state.BlockSize)
	for _, n := range fs.Blocks() {
		if _, err := fs.ReadAt(block, n*state.BlockSize); err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteAt(block, n*state.BlockSize); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(state.Size); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 511, 4095, 4096, 4097, 30_000, state.Capacity} {
		config := configOf(size)
		fs, err := state.New(config)
		if err != nil {
			t.Fatal(err)
		}
		got, err := state.Config(fs)
		if err != nil || !bytes.Equal(got, config) {
			t.Errorf("%d bytes: got %d back, %v", size, len(got), err)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	secret := bytes.Repeat([]byte("canary"), state.Capacity/6+1)
	for name, config := range map[string][]byte{"empty": nil, "too long": secret} {
		_, err := state.New(config)
		if fault.ClassOf(err) != fault.NeedsOperator || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReadAt compares reads at odd places with the whole.
func TestReadAt(t *testing.T) {
	t.Parallel()
	fs, err := state.New(configOf(9000))
	if err != nil {
		t.Fatal(err)
	}
	whole := make([]byte, 1<<20)
	if _, err := fs.ReadAt(whole, 0); err != nil {
		t.Fatal(err)
	}
	for _, off := range []int64{0, 1, 4095, 4096, 65536, 100_001} {
		p := make([]byte, 10_000)
		if n, err := fs.ReadAt(p, off); n != len(p) || err != nil || !bytes.Equal(p, whole[off:off+10_000]) {
			t.Errorf("at %d: %d bytes, %v", off, n, err)
		}
	}
	if n, err := fs.ReadAt(make([]byte, 100), state.Size-10); n != 10 || !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %d, %v", n, err)
	}
	if n, err := fs.ReadAt(make([]byte, 1), state.Size); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("behind the end: %d, %v", n, err)
	}
}

// TestConfigNever has Config read what is no filesystem, and damaged ones.
func TestConfigNever(t *testing.T) {
	t.Parallel()
	if _, err := state.Config(bytes.NewReader(make([]byte, 1<<20))); !errors.Is(err, state.ErrNoConfig) {
		t.Errorf("zeros: %v", err)
	}
	if _, err := state.Config(bytes.NewReader(nil)); err == nil {
		t.Error("nothing at all is read as a config")
	}
	fs, err := state.New(configOf(5000))
	if err != nil {
		t.Fatal(err)
	}
	whole := make([]byte, 1<<20) // holds all but the data
	if _, err := fs.ReadAt(whole, 0); err != nil {
		t.Fatal(err)
	}
	for at := range 512 * 4 {
		off := 65536 + at // the first inodes: root and the file are among them
		damaged := bytes.Clone(whole)
		damaged[off] ^= 0x10
		if got, err := state.Config(bytes.NewReader(damaged)); err == nil && !bytes.Equal(got, configOf(5000)) {
			t.Fatalf("byte %d changed: %d bytes are read without an error", off, len(got))
		}
	}
}

func need(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			testenv.Lacks(t, tool+" is not installed (Debian package xfsprogs)")
		}
	}
}

// TestXFSProgs has XFS's own tools judge the filesystem.
func TestXFSProgs(t *testing.T) {
	t.Parallel()
	need(t, "xfs_repair", "xfs_db")
	for _, size := range []int{1, 4096, 30_001, state.Capacity} {
		image := imageOf(t, configOf(size))
		if out, err := exec.Command("xfs_repair", "-n", "-f", image).CombinedOutput(); err != nil {
			t.Errorf("%d bytes: xfs_repair: %v\n%s", size, err, out)
		}
		out, err := exec.Command("xfs_db", "-r", "-f", "-c", "path /"+state.File, "-c", "print core.mode core.size v3.crc", image).CombinedOutput()
		if text := string(out); err != nil || !strings.Contains(text, "core.mode = 0100600") || !strings.Contains(text, "(correct)") {
			t.Errorf("%d bytes: xfs_db: %v\n%s", size, err, text)
		}
	}
}

// TestKernel mounts the filesystem with the kernel's XFS and reads the file.
func TestKernel(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		testenv.Lacks(t, "mounting takes root")
	}
	if known, err := os.ReadFile("/proc/filesystems"); err != nil || !bytes.Contains(known, []byte("\txfs\n")) {
		testenv.Lacks(t, "this kernel has no XFS")
	}
	config, at := configOf(30_001), t.TempDir()
	image := imageOf(t, config)
	if out, err := exec.Command("mount", "-t", "xfs", "-o", "loop", image, at).CombinedOutput(); err != nil {
		t.Fatalf("mount: %v\n%s", err, out)
	}
	got, readErr := os.ReadFile(filepath.Join(at, state.File))
	info, statErr := os.Stat(filepath.Join(at, state.File))
	// Talos writes there: a longer config, and back to a short one.
	writeErr := os.WriteFile(filepath.Join(at, state.File), configOf(700_000), 0o600)
	if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
		t.Fatalf("umount: %v\n%s", err, out)
	}
	if err := errors.Join(readErr, statErr, writeErr); err != nil || !bytes.Equal(got, config) || info.Mode() != 0o600 {
		t.Errorf("%d bytes read, mode %v, %v", len(got), info.Mode(), err)
	}
	need(t, "xfs_repair")
	if out, err := exec.Command("xfs_repair", "-n", "-f", image).CombinedOutput(); err != nil {
		t.Errorf("after the kernel wrote to it: xfs_repair: %v\n%s", err, out)
	}
}

// TestTemplate makes the template again.
func TestTemplate(t *testing.T) {
	t.Parallel()
	need(t, "mkfs.xfs")
	if out, err := exec.Command("mkfs.xfs", "-V").Output(); err != nil || !bytes.Contains(out, []byte(" 6.1.0")) {
		t.Skipf("the template was made with mkfs.xfs 6.1.0, and this one is %q (%v)", bytes.TrimSpace(out), err)
	}
	again := filepath.Join(t.TempDir(), "state.zst")
	if out, err := exec.Command("go", "run", "./template", again).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := os.ReadFile("template/state.zst")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(again); err != nil || !bytes.Equal(got, want) {
		t.Errorf("go generate makes another template (%d bytes, checked in are %d): %v", len(got), len(want), err)
	}
}

func FuzzConfig(f *testing.F) {
	fs, err := state.New(configOf(700))
	if err != nil {
		f.Fatal(err)
	}
	seed := make([]byte, 128<<10)
	if _, err := fs.ReadAt(seed, 0); err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, p []byte) {
		if config, err := state.Config(bytes.NewReader(p)); err == nil && (len(config) == 0 || len(config) > state.Capacity) {
			t.Errorf("%d bytes without an error", len(config))
		}
	})
}
