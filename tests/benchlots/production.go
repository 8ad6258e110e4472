//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ironlot/ironlot/internal/devserver"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/logging"
	"github.com/ironlot/ironlot/internal/testenv"
)

// programs are what Temporal on PostgreSQL consists of.
type programs struct {
	server   string // temporal-server
	sqlTool  string // temporal-sql-tool, which holds the schema
	postgres string // directory of PostgreSQL's programs
}

// findPrograms looks for all of them: Temporal's in bin, PostgreSQL's under
// root.
func findPrograms(bin, root string) (programs, error) {
	p := programs{server: filepath.Join(bin, "temporal-server"), sqlTool: filepath.Join(bin, "temporal-sql-tool")}
	for _, path := range []string{p.server, p.sqlTool} {
		if _, err := os.Stat(path); err != nil {
			return p, fault.Operator("build it with `make temporal-server`", "Temporal's server for PostgreSQL is not complete: %w", err)
		}
	}
	var err error
	p.postgres, err = findPostgres(root)
	return p, err
}

// start starts a cluster, makes Temporal's databases in it, and starts
// Temporal's server with all of its services in one process.
func (p programs) start(ctx context.Context, state string, shards int) (_ *server, err error) {
	db, err := startPostgres(ctx, p.postgres, state)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, db.stop())
		}
	}()
	version, err := db.version()
	if err != nil {
		return nil, err
	}
	if err := p.makeSchema(ctx, db); err != nil {
		return nil, err
	}
	t, address, err := startProduction(ctx, p.server, state, db.home, shards)
	if err != nil {
		return nil, err
	}
	return &server{
		address: address, store: fmt.Sprintf("PostgreSQL %s with %d history shards", version, shards),
		processes: []*process{{Name: "Temporal's server", pid: t.cmd.Process.Pid}, {Name: "PostgreSQL", pid: db.cmd.Process.Pid, forks: true}},
		stop:      func() error { return errors.Join(t.stop(), db.stop()) },
	}, nil
}

// makeSchema makes Temporal's two databases.
func (p programs) makeSchema(ctx context.Context, db *postgres) error {
	for database, schema := range map[string]string{"temporal": "postgresql/v12/temporal", "temporal_visibility": "postgresql/v12/visibility"} {
		for _, step := range [][]string{
			{"create-database", "--defaultdb", "postgres"},
			{"setup-schema", "--version", "0.0"},
			{"update-schema", "--schema-name", schema},
		} {
			// As in settings: the attribute host is the directory of the socket.
			args := append([]string{"--plugin", "postgres12", "--endpoint", "-", "--port", "5432", "--user", superuser,
				"--connect-attributes", "host=" + db.home, "--database", database}, step...)
			cmd := exec.CommandContext(ctx, p.sqlTool, args...)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("temporal-sql-tool %s fails for the database %s: %w: %s", step[0], database, err, lastLine(out))
			}
		}
	}
	return nil
}

// startProduction starts Temporal's server as one process, and makes its
// namespace; the worker adds what else it needs.
func startProduction(ctx context.Context, binary, state, socket string, shards int) (_ *child, address string, err error) {
	port := testenv.Port()
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := writeSettings(state, port, socket, shards); err != nil {
		return nil, "", err
	}
	cmd := exec.Command(binary, "--root", state, "--config", ".", "--env", "bench", "--allow-no-auth", "start")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), devserver.Collector}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is the benchmark's
	t, err := startChild("Temporal's server", cmd, filepath.Join(state, "temporal.log"))
	if err != nil {
		return nil, "", err
	}
	if err := t.until(ctx, func() error { return register(ctx, address) }); err != nil {
		return nil, "", errors.Join(err, t.stop())
	}
	return t, address, nil
}

// register makes the namespace.
func register(ctx context.Context, address string) error {
	c, err := client.DialContext(ctx, client.Options{HostPort: address, Logger: logging.Temporal(zap.NewNop())})
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: client.DefaultNamespace, WorkflowExecutionRetentionPeriod: durationpb.New(devserver.Retention),
	})
	return err
}
