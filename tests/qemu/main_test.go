// Package qemu runs the field's failures on machines with a real Linux
// kernel: first the naive way, by hand-driven commands, then Ironlot on the
// same machine. The kernel, md, LVM, SysRq and the boot from the written disk
// are real; the firmware, the provider and Talos are the lab's.
package qemu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ironlot/ironlot/internal/devserver"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/tests/rig"
)

// shared is what all tests of a process use.
type shared struct {
	server *devserver.Server
	agents string
	kit    *qemu.Kit
	stacks atomic.Int32
}

var common shared //nolint:gochecknoglobals // set up once by TestMain

// asked is set by `make test-qemu`: these tests take too long for every day.
const asked = "IRONLOT_QEMU"

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if os.Getenv(asked) != "1" {
			fmt.Println("SKIPPED: tests on QEMU machines; run them with `make test-qemu`")
			return 0
		}
		dir, err := os.MkdirTemp("", "ironlot-qemu-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		err = common.setUp(dir)
		if errors.Is(err, errMissing) && os.Getenv("CI") == "" {
			fmt.Println("SKIPPED, and an error in CI:", err)
			return 0
		}
		if common.server != nil {
			defer common.server.Stop() //nolint:errcheck // its database goes too
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "tests on QEMU machines cannot be set up:", err)
			return 1
		}
		return m.Run()
	}())
}

// errMissing marks what this computer lacks.
var errMissing = errors.New("not there")

// setUp builds the programs, starts Temporal and prepares the machines.
func (s *shared) setUp(dir string) error {
	if err := os.Chdir("../.."); err != nil { // the module's root, where bin/ is
		return err
	}
	if err := qemu.Missing(); err != nil {
		return errors.Join(errMissing, err)
	}
	temporal, err := devserver.Find()
	if err != nil {
		return errors.Join(errMissing, err)
	}
	for name, pkg := range map[string]string{"agent-linux-amd64": "./agent", "lab-talosinit": "./internal/lab/qemu/talosinit", "worker": "./worker"} {
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, name), pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOARCH=amd64")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("%s does not build: %w\n%s", pkg, err, out)
		}
	}
	s.agents = dir
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if s.kit, err = qemu.NewKit(ctx, qemu.KitOptions{Cache: os.Getenv("IRONLOT_QEMU_CACHE"), TalosInit: filepath.Join(dir, "lab-talosinit")}); err != nil {
		return err
	}
	s.server, err = rig.Temporal(temporal, dir, "temporal")
	return err
}

// base is the loopback network of another lab. A second process of these tests
// on the same computer has others.
func (s *shared) base() (number int, base string) {
	number = int(s.stacks.Add(1))
	return number, fmt.Sprintf("127.%d.%d.0", 20+os.Getpid()%200, number)
}
