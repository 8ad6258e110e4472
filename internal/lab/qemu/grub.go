package qemu

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
)

// grubRevision is raised when what this file makes changes.
const grubRevision = 1

// bootCode is how much of sector 0 is code; the rest is the partition table.
const bootCode = 440

// biosStart is the first sector of the partition that holds GRUB's core, on
// all disks of the lab where GRUB boots: by the table's alignment the first.
const biosStart = 2048

// grub is GRUB's two parts for BIOS.
type grub struct {
	boot [bootCode]byte // of sector 0
	core []byte         // of the BIOS boot partition
}

// grubConfig is what a core is made for.
type grubConfig struct {
	start   uint64 // sector of the disk where the core lies
	modules []string
	script  string
}

// installedGrub boots the delivered system from its mirrored /boot.
var installedGrub = grubConfig{ //nolint:gochecknoglobals // a constant in all but the language's eyes
	start:   biosStart,
	modules: []string{"biosdisk", "part_gpt", "ext2", "mdraid1x", "search_fs_file", "linux", "echo"},
	script: "search.file /lab-installed root\nlinux /vmlinuz " + consoleArgs + " lab.mode=os\n" +
		"initrd /initrd.img\nboot\n",
}

// grub makes boot code and core: what grub-install does, without touching
// any device.
func (k *Kit) grub(ctx context.Context, c grubConfig) (grub, error) {
	dir, err := os.MkdirTemp("", "ironlot-grub-")
	if err != nil {
		return grub{}, err
	}
	defer os.RemoveAll(dir)
	script, core := filepath.Join(dir, "grub.cfg"), filepath.Join(dir, "core.img")
	if err := os.WriteFile(script, []byte(c.script), 0o644); err != nil {
		return grub{}, err
	}
	modules := filepath.Join(k.system.root, "usr/lib/grub/i386-pc")
	args := append([]string{"-d", modules, "-O", "i386-pc", "-p", "/", "-c", script, "-o", core}, c.modules...)
	if _, err := output(ctx, "", filepath.Join(k.system.root, "usr/bin/grub-mkimage"), args...); err != nil {
		return grub{}, fmt.Errorf("making the boot loader failed: %w", err)
	}
	var g grub
	boot, err := os.ReadFile(filepath.Join(modules, "boot.img"))
	if err != nil {
		return grub{}, err
	}
	copy(g.boot[:], boot)
	if g.core, err = os.ReadFile(core); err != nil {
		return grub{}, err
	}
	g.locate(c.start)
	return g, nil
}

// Offsets in GRUB's images (grub-core/boot/i386/pc/boot.S and diskboot.S,
// include/grub/i386/pc/boot.h).
const (
	kernelSector  = 0x5c       // of boot.img: first sector of the core
	kernelDrive   = 0x64       // 0xff: the drive that the BIOS booted
	driveCheck    = 0x66       // a jump that distrusts the BIOS' drive number
	firstList     = 0x200 - 12 // of the core: its first block list, start and length
	coreSector    = 512        // the first sector holds the list of the others
	listLength    = firstList + 8
	listSegment   = firstList + 10
	secondSegment = 0x820 // where the rest of the core is loaded
)

// locate writes the places of the parts into them, as grub-bios-setup does.
func (g *grub) locate(start uint64) {
	le := binary.LittleEndian
	le.PutUint64(g.boot[kernelSector:], start)
	g.boot[kernelDrive] = 0xff
	le.PutUint16(g.boot[driveCheck:], 0x9090) // nop nop
	sectors := (len(g.core) + coreSector - 1) / coreSector
	le.PutUint64(g.core[firstList:], start+1)
	le.PutUint16(g.core[listLength:], uint16(sectors-1))
	le.PutUint16(g.core[listSegment:], secondSegment)
}
