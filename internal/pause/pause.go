// Package pause lets time pass for as long as somebody wants to wait.
package pause

import (
	"context"
	"time"
)

// For waits for d, or until the context ends; then it returns its error.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err()
}
