package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ironlot/ironlot/internal/fault"
)

// emulator is the program that runs the machines.
const emulator = "qemu-system-x86_64"

// KitOptions say where the parts of the machines come from.
type KitOptions struct {
	Cache     string // directory for what is built; empty means below the user's cache directory
	TalosInit string // the executable lab-talosinit; empty means beside this program or in bin
}

// Kit is what all machines need: QEMU, the rescue system, delivered disks
// and Talos-like images, each built once and cached.
type Kit struct {
	cache       cache
	emulator    string
	accelerator string // kvm or tcg
	talosInit   string
	system      system
}

// Missing tells what keeps QEMU machines from running on this computer, nil
// when nothing does.
func Missing() error {
	var missing []error
	for _, tool := range []string{emulator, "apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, err)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fault.Operator("on Debian 12 run `apt-get install qemu-system-x86`", "QEMU machines cannot run here: %w", errors.Join(missing...))
}

// NewKit finds the tools and builds the rescue system if it is not in the
// cache: about half a minute and 70 MB of downloads the first time.
func NewKit(ctx context.Context, o KitOptions) (*Kit, error) {
	if err := Missing(); err != nil {
		return nil, err
	}
	k := &Kit{cache: cache{o.Cache}, talosInit: o.TalosInit}
	var err error
	if k.cache.dir == "" {
		if k.cache.dir, err = defaultCache(); err != nil {
			return nil, err
		}
	}
	if k.emulator, err = exec.LookPath(emulator); err != nil {
		return nil, err
	}
	k.accelerator = accelerator(ctx, k.emulator)
	if k.talosInit == "" {
		k.talosInit, err = findTalosInit()
	} else {
		_, err = os.Stat(k.talosInit)
	}
	if err != nil {
		return nil, fault.Operator("build it with `make lab-talosinit`", "the lab's Talos for QEMU machines is not there: %w", err)
	}
	if k.system, err = buildSystem(ctx, k.cache); err != nil {
		return nil, fmt.Errorf("the rescue system of the QEMU lab cannot be built: %w", err)
	}
	return k, nil
}

// findTalosInit looks beside the running program and in bin.
func findTalosInit() (string, error) {
	dirs := []string{"bin"}
	if self, err := os.Executable(); err == nil {
		dirs = append([]string{filepath.Dir(self)}, dirs...)
	}
	var err error
	for _, dir := range dirs {
		path := filepath.Join(dir, "lab-talosinit")
		if _, err = os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", err
}
