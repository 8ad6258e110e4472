package qemu

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

// deliverWithin bounds how long a guest may take to install a system.
const deliverWithin = 5 * time.Minute

// deliver puts a delivered system on the disks. A guest installs it once for
// each shape and pair of sizes; later machines get copies.
func (k *Kit) deliver(ctx context.Context, what Delivered, disks []disk) error {
	if what == Blank {
		var errs []error
		for _, d := range disks {
			errs = append(errs, d.create())
		}
		return errors.Join(errs...)
	}
	var sizes []int64
	for _, d := range disks {
		sizes = append(sizes, d.spec.Size)
	}
	name := fmt.Sprintf("delivered-%s-%s", what, digest(k.system.key, grubRevision, consoleArgs, sizes, len(disks)))
	dir, err := k.cache.get(ctx, name, func(ctx context.Context, dir string) error { return k.install(ctx, dir, what, sizes) })
	if err != nil {
		return err
	}
	for i, d := range disks {
		if err := copySparse(d.path, filepath.Join(dir, fmt.Sprintf("disk%d.raw", i+1))); err != nil {
			return err
		}
	}
	return nil
}

// install boots the rescue system in its delivering mode.
func (k *Kit) install(ctx context.Context, dir string, what Delivered, sizes []int64) error {
	ctx, cancel := context.WithTimeout(ctx, deliverWithin)
	defer cancel()
	parcel, err := k.parcel(ctx, dir)
	if err != nil {
		return err
	}
	defer os.Remove(parcel.path)
	w := wiring{
		name: "delivery", serial: "delivery", memory: 1024, boot: -1, kernel: k.system.kernel, initrd: k.system.initrd,
		cmdline: "lab.mode=deliver lab.variant=" + string(what),
	}
	for i, size := range sizes {
		d := disk{spec: DiskSpec{Serial: fmt.Sprintf("DELIVERY%d", i+1), Model: "DELIVERY", Size: size}, path: filepath.Join(dir, fmt.Sprintf("disk%d.raw", i+1))}
		if err := d.create(); err != nil {
			return err
		}
		w.disks, w.order = append(w.disks, d), append(w.order, i)
	}
	w.disks, w.order = append(w.disks, parcel), append(w.order, len(sizes))
	console := &transcript{}
	g, err := startGuest(k.emulator, w.args(k.accelerator), console.line)
	if err != nil {
		return err
	}
	reason, err := g.wait(ctx)
	if err != nil || reason != endShutdown || !console.has("lab: delivered "+string(what)) {
		return fault.Operator("read the console below", "a guest could not install the delivered system %s (%s): %w", what, reason, err).WithTail(console.tail())
	}
	return nil
}

// parcel makes the disk that carries boot loader and kernel into the guest.
func (k *Kit) parcel(ctx context.Context, dir string) (disk, error) {
	g, err := k.grub(ctx, installedGrub)
	if err != nil {
		return disk{}, err
	}
	path := filepath.Join(dir, "parcel.tar")
	f, err := os.Create(path)
	if err != nil {
		return disk{}, err
	}
	defer f.Close()
	files := []struct{ name, from string }{{"vmlinuz", k.system.kernel}, {"initrd.img", k.system.installed}}
	w := tar.NewWriter(f)
	add := func(name string, data []byte) error {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file.from)
		if err != nil {
			return disk{}, err
		}
		if err := add(file.name, data); err != nil {
			return disk{}, err
		}
	}
	if err := errors.Join(add("boot.img", g.boot[:]), add("core.img", g.core), w.Close()); err != nil {
		return disk{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return disk{}, err
	}
	size := (info.Size() + layout.MiB - 1) / layout.MiB * layout.MiB
	spec := DiskSpec{Serial: "LABPARCEL", Model: "PARCEL", Size: size}
	return disk{spec: spec, path: path, readOnly: false}, f.Truncate(size)
}

// transcript keeps a console.
type transcript struct {
	mu    sync.Mutex
	lines []string
}

func (t *transcript) line(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, s)
}

func (t *transcript) has(text string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Contains(strings.Join(t.lines, "\n"), text)
}

func (t *transcript) tail() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines[max(0, len(t.lines)-30):], "\n")
}
