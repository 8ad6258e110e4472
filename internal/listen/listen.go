// Package listen opens TCP ports in processes that start other processes.
//
// A child has a copy of each open socket from its fork until the kernel closes
// it while the child executes its program, which is a little after the parent
// goes on. A listener that was closed in between listens until then, and the
// next one on its port is refused. One that is shut down before it is closed
// listens nowhere, whoever has a copy (Linux, inet_shutdown).
package listen

import (
	"context"
	"net"
	"syscall"
)

// TCP listens on a TCP address. The port is free as soon as the listener is
// closed.
func TCP(ctx context.Context, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return listener{l.(*net.TCPListener)}, nil
}

// Free reports why nobody can listen on a TCP address, nil when one can, be it
// another process.
func Free(ctx context.Context, address string) error {
	l, err := TCP(ctx, address)
	if err != nil {
		return err
	}
	return l.Close()
}

type listener struct{ *net.TCPListener }

func (l listener) Close() error {
	if raw, err := l.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = syscall.Shutdown(int(fd), syscall.SHUT_RDWR) // where a kernel refuses it, closing has to do
		})
	}
	return l.TCPListener.Close()
}
