package rig

import (
	"bytes"
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/run"
)

// Log keeps what several goroutines write.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

// String is all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Tail is the last n bytes of it.
func (l *Log) Tail(n int) string {
	s := l.String()
	return s[max(0, len(s)-n):]
}

// askTime bounds a question to a run.
const askTime = 10 * time.Second

// StatusOf asks a run how it stands; a run that does not answer is empty.
func StatusOf(c client.Client, id string) run.Status {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	var status run.Status
	if value, err := c.QueryWorkflow(ctx, id, "", run.QueryStatus); err == nil {
		_ = value.Get(&status) // an answer that is none is no status
	}
	return status
}
