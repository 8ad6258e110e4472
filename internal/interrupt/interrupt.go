// Package interrupt tells a program when it is to stop.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Context is done when the program is to stop in order: on SIGINT, SIGTERM, and
// on SIGHUP when the terminal closes, unless it was started to outlive that
// (nohup). A second one ends the program at once.
func Context() (ctx context.Context, stop context.CancelFunc) {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop = signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
