// Command starter is Ironlot's command line: it reads a lot file, starts the
// runs, shows them and steers them. `starter up` brings Temporal and a worker
// along, for one machine.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := newApp().run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
