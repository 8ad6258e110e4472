//go:build linux

package linux

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// logFile takes what a detached agent prints; only its crashes do.
const logFile = "agent.log"

// Spawn implements host.Host: a session and a control group of its own, so
// that the end of the SSH session does not reach it.
func (h *Host) Spawn(_ context.Context, args ...string) error {
	self, err := h.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(h.opt.RAMDir, 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(h.opt.RAMDir, logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(self, args...) //nolint:noctx // it outlives every context
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	h.leaveLogin(cmd.Process.Pid)
	go cmd.Wait() //nolint:errcheck // reaps it, should it end before us
	return nil
}

// leaveLogin takes a process out of the login's control group: systemd ends
// all that is left in it after the logout, other sessions' processes and
// root's included, where logind.conf(5) says KillUserProcesses=yes. The root
// group has no owner that would do so. It is tried in each hierarchy by which
// systemd may track logins: unified, hybrid and legacy (systemd's
// CGROUP_DELEGATION.md). Where there is none nobody ends anything, so errors
// do not count.
func (h *Host) leaveLogin(pid int) {
	for _, hierarchy := range []string{".", "unified", "systemd"} {
		// No O_CREATE: only cgroupfs itself has such a file.
		procs, err := os.OpenFile(h.path("sys/fs/cgroup", hierarchy, "cgroup.procs"), os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		_, _ = procs.WriteString(strconv.Itoa(pid))
		_ = procs.Close()
	}
}
