package testenv

import (
	"bytes"
	"sync"
)

// Log keeps what several goroutines write while a test reads it.
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
