//go:build linux

// Command agent runs in the rescue system of the machine that is installed.
//
// Two settings are in its environment, so that a job that it starts has them
// as well: IRONLOT_RAM_DIR replaces /dev/shm/ironlot, and
// IRONLOT_LOOP_DEVICES (loop7,loop8) makes loop devices the only disks that
// it sees, to try it out without any risk for the machine's own.
package main

import (
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/ironlot/ironlot/internal/agent/cli"
	"github.com/ironlot/ironlot/internal/agent/host/linux"
)

// version is set when the agent is built: -ldflags "-X main.version=v1.2.3".
var version = "devel"

func main() {
	options := linux.Options{RAMDir: os.Getenv("IRONLOT_RAM_DIR")}
	if loops := os.Getenv("IRONLOT_LOOP_DEVICES"); loops != "" {
		options.LoopDevices = strings.Split(loops, ",")
	}
	os.Exit(run(linux.New(options)))
}

// run ends work in a safe state when the person's session ends or the agent
// is told to stop.
func run(h *linux.Host) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	return cli.Run(ctx, h, version, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
}
