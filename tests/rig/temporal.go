package rig

import (
	"context"
	"path/filepath"
	"time"

	"go.uber.org/zap"

	"github.com/ironlot/ironlot/internal/devserver"
	"github.com/ironlot/ironlot/internal/logging"
	"github.com/ironlot/ironlot/internal/testenv"
)

// startTime bounds the start of Temporal's server, which waits for processor
// time when many tests begin at once.
const startTime = 3 * time.Minute

// Temporal starts the server of an executable, on a database of its own in
// dir, on ports of its own.
func Temporal(binary, dir, name string) (*devserver.Server, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	return devserver.Start(ctx, devserver.Options{
		Binary: binary, Database: filepath.Join(dir, name+".db"), LogFile: filepath.Join(dir, name+".log"),
		Port: testenv.Port(), UIPort: testenv.Port(), Logger: logging.Temporal(zap.NewNop()),
	})
}
