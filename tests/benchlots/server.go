//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"github.com/ironlot/ironlot/internal/devserver"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/logging"
	"github.com/ironlot/ironlot/internal/testenv"
)

// server is a server of Temporal that runs.
type server struct {
	address   string
	store     string // what it keeps its state in
	processes []*process
	stop      func() error
}

// starting starts a server whose state and logs go to a directory.
type starting func(ctx context.Context, state string) (*server, error)

// temporal finds the server that the command line asks for, before anything
// else is made.
func (o options) temporal() (starting, error) {
	bin, err := filepath.Abs(o.bin)
	if err != nil {
		return nil, err
	}
	switch o.server {
	case "sqlite":
		return func(ctx context.Context, state string) (*server, error) { return startDev(ctx, bin, state) }, nil
	case "postgres":
		if o.shards < 1 {
			return nil, fault.Operator("give -shards 1 or more", "Temporal cannot have %d history shards", o.shards)
		}
		p, err := findPrograms(bin, "/usr/lib/postgresql")
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, state string) (*server, error) { return p.start(ctx, state, o.shards) }, nil
	}
	return nil, fault.Operator("give -server sqlite or -server postgres", "there is no server %q", o.server)
}

// startDev starts Temporal's dev server as `starter up` does.
func startDev(ctx context.Context, bin, state string) (*server, error) {
	s, err := devserver.Start(ctx, devserver.Options{
		Binary: filepath.Join(bin, "temporal"), Database: filepath.Join(state, "temporal.db"), LogFile: filepath.Join(state, "temporal.log"),
		Port: testenv.Port(), UIPort: testenv.Port(), Logger: logging.Temporal(zap.NewNop()),
	})
	if err != nil {
		return nil, err
	}
	return &server{
		address: s.Address(), store: "SQLite, as `starter up` runs it", stop: s.Stop,
		processes: []*process{{Name: "Temporal's server", pid: s.PID()}},
	}, nil
}

// dial connects to a server, and names it.
func (s *server) dial(ctx context.Context) (client.Client, string, error) {
	c, err := client.DialContext(ctx, client.Options{HostPort: s.address, Logger: logging.Temporal(zap.NewNop())})
	if err != nil {
		return nil, "", err
	}
	info, err := c.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		c.Close()
		return nil, "", fault.Retry("Temporal does not tell its version: %w", err)
	}
	return c, fmt.Sprintf("Temporal %s on %s", info.GetServerVersion(), s.store), nil
}

// startTemporal starts the server and connects to it.
func (s *site) startTemporal(ctx context.Context, start starting) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	if s.temporal, err = start(ctx, s.state); err != nil {
		return err
	}
	if s.client, s.server, err = s.temporal.dial(ctx); err != nil {
		return errors.Join(err, s.temporal.stop())
	}
	fmt.Fprintln(os.Stderr, "started", s.server)
	return nil
}
