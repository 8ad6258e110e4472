package qemu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

// imageRevision is raised when what this file makes changes.
const imageRevision = 1

// MinImage is the size of the smallest image, in bytes: kernel and RAM disk
// must find room in its BOOT partition.
const MinImage = 96 * layout.MiB

// Image gives the path of a disk image that is laid out like Talos and boots
// the lab's Talos node on a PC with BIOS. It is built once for each spec:
// equal inputs make equal bytes.
func (k *Kit) Image(ctx context.Context, spec images.Spec) (string, error) {
	if spec.Size < MinImage {
		return "", fmt.Errorf("an image of %d bytes is too small for a kernel, use %d at least", spec.Size, MinImage)
	}
	program, err := os.ReadFile(k.talosInit)
	if err != nil {
		return "", err
	}
	name := "image-" + digest(k.system.key, imageRevision, grubRevision, consoleArgs, string(program), spec)
	dir, err := k.cache.get(ctx, name, func(ctx context.Context, dir string) error {
		return k.buildImage(ctx, filepath.Join(dir, images.Raw.FileName()), spec, program)
	})
	return filepath.Join(dir, images.Raw.FileName()), err
}

// buildImage puts boot loader, kernel and RAM disk into the layout. GRUB
// finds the last two by their sectors: no filesystem is needed in BOOT.
func (k *Kit) buildImage(ctx context.Context, path string, spec images.Spec, program []byte) error {
	if err := images.Build(path, spec); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(k.fillImage(ctx, f, spec.Size, program), f.Close())
}

// behindMagic keeps the start of BOOT, where a prober looks for xfs.
const behindMagic = layout.MiB

func (k *Kit) fillImage(ctx context.Context, f *os.File, size int64, program []byte) error {
	kernel, err := os.ReadFile(k.system.kernel)
	if err != nil {
		return err
	}
	ram, err := k.talosRAM(program)
	if err != nil {
		return err
	}
	parts := layout.Read(f, size)
	bios, _ := layout.Find(parts, layout.BIOS)
	boot, _ := layout.Find(parts, layout.Boot)
	kernelSectors, ramSectors := sectors(kernel), sectors(ram)
	if behindMagic+(kernelSectors+ramSectors)*layout.SectorSize > boot.Size {
		return fmt.Errorf("kernel and RAM disk need %d MiB of the BOOT partition, which has %d", (kernelSectors+ramSectors)/2048+1, boot.Size/layout.MiB)
	}
	first := int64(behindMagic / layout.SectorSize)
	g, err := k.grub(ctx, grubConfig{
		start:   uint64(bios.Offset / layout.SectorSize),
		modules: []string{"biosdisk", "part_gpt", "linux", "echo"},
		script: fmt.Sprintf("linux ($root,gpt3)%d+%d %s\ninitrd ($root,gpt3)%d+%d\nboot\n",
			first, kernelSectors, consoleArgs, first+kernelSectors, ramSectors),
	})
	if err != nil {
		return err
	}
	for _, piece := range []struct {
		data []byte
		at   int64
	}{
		{g.boot[:], 0}, {g.core, bios.Offset},
		{kernel, boot.Offset + behindMagic}, {ram, boot.Offset + behindMagic + kernelSectors*layout.SectorSize},
	} {
		if _, err := f.WriteAt(piece.data, piece.at); err != nil {
			return err
		}
	}
	return nil
}

func sectors(data []byte) int64 {
	return (int64(len(data)) + layout.SectorSize - 1) / layout.SectorSize
}

// talosRAM is the RAM disk whose PID 1 is the lab's Talos node.
func (k *Kit) talosRAM(program []byte) ([]byte, error) {
	kernel, err := findKernel(k.system.root)
	if err != nil {
		return nil, err
	}
	t := tree{}
	t.file("init", 0o755, program)
	t.charDevice("dev/console", 5, 1)
	for _, dir := range []string{"proc", "sys", "dev", "run"} {
		t.dir(dir, 0o755)
	}
	if err := kernel.add(t, "qemu_fw_cfg", "virtio_pci", "virtio_net", "virtio_scsi", "sd_mod", "nvme"); err != nil {
		return nil, err
	}
	var cpio bytes.Buffer
	if err := writeCPIO(&cpio, t); err != nil {
		return nil, err
	}
	return compress(cpio.Bytes())
}
