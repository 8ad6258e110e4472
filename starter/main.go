// Command starter is Ironlot's command line: it reads a lot file, starts the
// runs, shows them and steers them. `starter up` brings Temporal and a worker
// along, for one machine.
package main

import (
	"os"

	"github.com/ironlot/ironlot/internal/interrupt"
)

func main() {
	ctx, stop := interrupt.Context()
	code := newApp().run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
