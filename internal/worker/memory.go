package worker

import (
	"os"
	"runtime/debug"
)

// SaveMemory lets the garbage collector of this process run when the heap has
// grown by half, not by all, of what is alive: much of what a thousand nodes hold
// lives for long (docs/benchmarks.md). It is for a program that does little but
// run a worker, since it is the whole process's. GOGC says otherwise.
func SaveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}
