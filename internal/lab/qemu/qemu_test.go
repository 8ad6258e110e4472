package qemu

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

func TestCPIOIsReproducible(t *testing.T) {
	t.Parallel()
	pack := func() []byte {
		tr := tree{}
		tr.file("usr/bin/sudo", fs.ModeSetuid|0o755, []byte("sudo"))
		tr.link("bin/sh", "busybox")
		tr.charDevice("dev/console", 5, 1)
		var out bytes.Buffer
		require.NoError(t, writeCPIO(&out, tr))
		return out.Bytes()
	}
	one := pack()
	require.Equal(t, one, pack())
	require.Zero(t, len(one)%4)
	text := string(one)
	for _, name := range []string{"bin", "bin/sh", "dev/console", "usr/bin", "usr/bin/sudo", "TRAILER!!!"} {
		require.Contains(t, text, name+"\x00")
	}
	require.Less(t, strings.Index(text, "usr\x00"), strings.Index(text, "usr/bin\x00"), "directories come before what is in them")
	require.Contains(t, text, "000089ED", "setuid: 0104755")
}

func TestFirmware(t *testing.T) {
	t.Parallel()
	system := []layout.Part{{Name: layout.EFI, Type: layout.TypeEFI, Size: layout.MiB}}
	make := func(parts []layout.Part, code string) disk {
		d := disk{spec: DiskSpec{Serial: "S", Size: 16 * layout.MiB}, path: filepath.Join(t.TempDir(), "disk")}
		require.NoError(t, d.create())
		if code == "zeros" {
			return d
		}
		f, err := os.OpenFile(d.path, os.O_RDWR, 0)
		require.NoError(t, err)
		require.NoError(t, layout.Create(f, d.spec.Size, "x", parts))
		_, err = f.WriteAt([]byte(code), 0)
		require.NoError(t, errors.Join(err, f.Close()))
		return d
	}
	good, blank, zeros := make(system, "boot code"), make(nil, ""), make(nil, "zeros")
	for name, c := range map[string]struct {
		disks []disk
		as    hardware.BootType
		slot  int
		ok    bool
	}{
		"a disk of zeros stops a normal boot": {[]disk{good, zeros}, hardware.BootNormal, -1, false},
		"and rescue too":                      {[]disk{good, zeros}, hardware.BootRescue, -1, false},
		"a blank table is passed over":        {[]disk{blank, good}, hardware.BootNormal, 1, true},
		"the first system boots":              {[]disk{good, good}, hardware.BootNormal, 0, true},
		"no system":                           {[]disk{blank, blank}, hardware.BootNormal, -1, false},
		"rescue needs none":                   {[]disk{blank, blank}, hardware.BootRescue, -1, true},
	} {
		slot, ok, reason := chooseBoot(c.disks, c.as)
		require.Equal(t, c.ok, ok, name)
		require.Equal(t, c.slot, slot, name)
		require.NotEmpty(t, reason)
	}
}

func TestGrubIsLocated(t *testing.T) {
	t.Parallel()
	g := grub{core: make([]byte, 5*coreSector+1)}
	g.locate(4096)
	require.EqualValues(t, 4096, binary.LittleEndian.Uint64(g.boot[0x5c:]))
	require.EqualValues(t, 4097, binary.LittleEndian.Uint64(g.core[0x1f4:]))
	require.EqualValues(t, 5, binary.LittleEndian.Uint16(g.core[0x1fc:]), "the sectors behind the first, the last one partly used")
	require.EqualValues(t, 0x820, binary.LittleEndian.Uint16(g.core[0x1fe:]))
}

func TestSettings(t *testing.T) {
	t.Parallel()
	key, err := newHostKey()
	require.NoError(t, err)
	signer, err := ssh.ParsePrivateKey(key.pem)
	require.NoError(t, err)
	require.Equal(t, key.fingerprint, ssh.FingerprintSHA256(signer.PublicKey()))
	login := hardware.Rescue{User: "rescue", Password: "it's secret", AuthorizedKeys: []string{"one", "two"}}
	packed, err := linuxSettings(login, key, Faults{SHMSize: "8m", HideTools: "mdadm lvm"})
	require.NoError(t, err)
	files := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(packed)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		data, err := io.ReadAll(r)
		require.NoError(t, err)
		require.EqualValues(t, 0o600, h.Mode)
		files[h.Name] = string(data)
	}
	require.Equal(t, map[string]string{
		"user": "rescue", "password": "it's secret", "authorized_keys": "one\ntwo\n", "host_key": string(key.pem),
		"options": "SHM_SIZE='8m'\nHIDE_TOOLS='mdadm lvm'\n",
	}, files)
	require.Zero(t, len(packed)%512, "whole, with its end")
}

func TestCommandLineHoldsNoSecret(t *testing.T) {
	t.Parallel()
	w := wiring{
		name: "lab-1", serial: "lab-1", memory: 512, order: []int{1, 0}, boot: 1,
		disks: []disk{{spec: DiskSpec{Serial: "A", WWN: "0x5", Model: "M"}, path: "/a,b"}, {spec: DiskSpec{Serial: "B", NVMe: true}, path: "/c"}},
		files: map[string]string{"settings": "/dir/settings"}, forward: []forward{{"127.0.9.1", 2222, 22}},
		faults: Faults{WriteErrorDisk: 2, WriteErrorAt: 1024},
	}
	args := strings.Join(w.args("tcg"), " ")
	require.Contains(t, args, "file=/a,,b")
	require.Contains(t, args, "scsi-id=1,drive=disk1,serial=A")
	require.Contains(t, args, "nvme-ns,bus=nvme1,drive=disk2,bootindex=1")
	require.Contains(t, args, "inject-error.0.sector=2")
	require.Contains(t, args, "hostfwd=tcp:127.0.9.1:2222-:22")
	require.Contains(t, args, "-smp 1")
	require.Contains(t, args, "pc,accel=tcg")
	require.Contains(t, args, "name=opt/org.ironlot.lab/settings,file=/dir/settings", "secrets travel in files")
}

// TestAcceleratorIsTried: a device that is there says nothing yet.
func TestAcceleratorIsTried(t *testing.T) {
	t.Parallel()
	for emulator, want := range map[string]string{"true": "kvm", "false": "tcg", "no-such-program": "tcg"} {
		require.Equal(t, want, accelerator(t.Context(), emulator), emulator)
	}
}

func TestCacheBuildsOnceAndKeepsNothingBroken(t *testing.T) {
	t.Parallel()
	c := cache{t.TempDir()}
	built := 0
	build := func(_ context.Context, dir string) error {
		built++
		return os.WriteFile(filepath.Join(dir, "x"), nil, 0o600)
	}
	broken := errors.New("broken")
	_, err := c.get(t.Context(), "a", func(_ context.Context, dir string) error {
		return errors.Join(build(t.Context(), dir), broken)
	})
	require.ErrorIs(t, err, broken)
	for range 2 {
		dir, err := c.get(t.Context(), "a", build)
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(dir, "x"))
	}
	require.Equal(t, 2, built)
	entries, err := os.ReadDir(c.dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "the entry and its lock")
}

func TestSparseCopy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from := filepath.Join(dir, "from")
	f, err := os.Create(from)
	require.NoError(t, err)
	_, err = f.WriteAt([]byte("in the middle"), 5*layout.MiB)
	require.NoError(t, errors.Join(err, f.Truncate(64*layout.MiB), f.Close()))
	require.NoError(t, copySparse(filepath.Join(dir, "to"), from))
	want, err := os.ReadFile(from)
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(dir, "to"))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))
}

func TestConsoleIsPlainText(t *testing.T) {
	t.Parallel()
	require.Equal(t, "Booting `x'", plain("\x1b[2J\x1b[01;01HBooting `x'\r\n"))
}
