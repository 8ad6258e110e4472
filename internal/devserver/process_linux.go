package devserver

import "syscall"

// attributes keep Ctrl-C away from the server, which stops after the worker
// does, and end it when this process is killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
