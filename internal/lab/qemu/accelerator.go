package qemu

import (
	"context"
	"os/exec"
	"strings"
	"time"
)

// probeTimeout is far more than the 0.1 s that QEMU takes to start a machine
// that is halted.
const probeTimeout = 10 * time.Second

// accelerator is kvm where a machine really starts with it, else tcg, software
// emulation. That /dev/kvm can be opened is not enough: where computers are
// themselves virtual, QEMU 7.2 was seen to abort on a register that the host
// shows and does not let it set.
func accelerator(ctx context.Context, emulator string) string {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	probe := exec.CommandContext(ctx, emulator, "-machine", "pc,accel=kvm", "-cpu", "max", "-nodefaults", "-no-user-config",
		"-display", "none", "-S", "-monitor", "stdio")
	probe.Stdin = strings.NewReader("quit\n")
	if probe.Run() != nil {
		return "tcg"
	}
	return "kvm"
}
