//go:build !linux

package devserver

import "syscall"

// attributes keep Ctrl-C away from the server, which stops after the worker
// does.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
