//go:build linux

// Command bench measures Ironlot's data path against the commands that people
// install Talos with by hand, on the same machine, in turn:
//
//	curl -s URL | zstd -d > /dev/shm/talos.raw
//	dd if=/dev/shm/talos.raw of=DISK bs=4M oflag=direct
//
// against `agent stage` and `agent write`, which check digests and read the
// disk back. It runs natively on a loop device, and in a QEMU machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

// options are what the command line says.
type options struct {
	dir   string
	agent string
	where string
	pairs int
	// verify is how much the agent reads back.
	verify string
	spec   images.Spec
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "probe" {
		exit(probe(os.Args[2:]))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var o options
	var size, data int64
	flag.StringVar(&o.dir, "dir", "/dev/shm", "where images and disks are kept, a few GB")
	flag.StringVar(&o.agent, "agent", "bin/agent-linux-amd64", "the agent")
	flag.StringVar(&o.where, "where", "native,qemu", "where to measure")
	flag.IntVar(&o.pairs, "pairs", 5, "how often each side is measured natively; in QEMU once")
	flag.StringVar(&o.verify, "verify", "full", "what Ironlot reads back: full, or data (holes are sampled)")
	flag.Int64Var(&size, "size", images.FullSize/layout.MiB, "size of the raw image, MiB")
	flag.Int64Var(&data, "data", 250, "of these, data, MiB")
	flag.Parse()
	o.spec = images.Spec{Size: size * layout.MiB, Data: data * layout.MiB, Seed: 1}
	exit(measure(ctx, o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measure makes the image and measures wherever it is asked to.
func measure(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp(o.dir, "ironlot-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if o.agent, err = filepath.Abs(o.agent); err != nil {
		return err
	}
	w, err := serve(ctx, dir, o.spec, map[string]string{"agent": o.agent, "bench": self})
	if err != nil {
		return err
	}
	fmt.Printf("Image: %d MiB raw, %d MiB of it data, %.0f MB as zst.\n", o.spec.Size>>20, o.spec.Data>>20, float64(w.packed)/1e6)
	for _, where := range strings.Split(o.where, ",") {
		switch where {
		case "native":
			err = measureNative(ctx, o, w, dir)
		case "qemu":
			err = measureQEMU(ctx, o, w, dir)
		default:
			err = fmt.Errorf("there is no place %q to measure at: use native or qemu", where)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
	}
	return nil
}

// compare runs both sides in turn and prints what came out.
func compare(ctx context.Context, title string, pairs int, b box) error {
	var theirs, ours []result
	for n := range pairs {
		fmt.Fprintf(os.Stderr, "%s: pair %d of %d\n", title, n+1, pairs)
		for _, side := range []struct {
			run  func(context.Context, box) (result, error)
			into *[]result
		}{{byHand, &theirs}, {byAgent, &ours}} {
			if err := b.dirty(ctx); err != nil {
				return err
			}
			one, err := side.run(ctx, b)
			if err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "    %s\n", one)
			*side.into = append(*side.into, one)
		}
	}
	limits, err := b.limits(ctx)
	if err != nil {
		return err
	}
	report(os.Stdout, title, theirs, ours, limits)
	return nil
}

// run runs a command of this computer and gives its output.
func run(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
