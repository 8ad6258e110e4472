package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"github.com/ironlot/ironlot/internal/devserver"
	"github.com/ironlot/ironlot/internal/home"
	"github.com/ironlot/ironlot/internal/logging"
	"github.com/ironlot/ironlot/internal/provider/scaleway"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/seal"
	"github.com/ironlot/ironlot/internal/temporal"
	"github.com/ironlot/ironlot/internal/version"
	"github.com/ironlot/ironlot/internal/worker"
)

// upTimeout is how long Temporal's server may take to come up.
const upTimeout = time.Minute

type upFlags struct {
	port, uiPort       int
	temporal           string
	sshKey, scwProfile string
	agentDirs          []string
	maxNodes           int
	rate               float64
}

func (a *app) upCommand() *cobra.Command {
	o := upFlags{}
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run Temporal, its Web UI and a worker on this machine",
		Long: `Runs what one machine needs: Temporal's dev server with its state in a file,
its Web UI, and a worker. Ctrl-C stops them; runs go on where they were when
` + "`up`" + ` comes back. State and logs are in $IRONLOT_HOME (~/.local/state/ironlot).

When TEMPORAL_ADDRESS (or --address, or a profile) says where Temporal runs,
only the worker is started: --port, --ui-port and --temporal are refused then.

The worker reads the provider's settings from SCW_* and its configuration file,
and logs in to rescue systems with the key of --ssh-key (IRONLOT_SSH_KEY), else
with the SSH agent.`,
		Args: takes(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.ownServer(cmd.Flags()); err != nil {
				return err
			}
			return a.runUp(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.port, "port", 7233, "port of Temporal")
	f.IntVar(&o.uiPort, "ui-port", 8233, "port of the Web UI")
	f.StringVar(&o.temporal, "temporal", "", "`path` of the temporal binary; else beside this program, in bin/ or on PATH")
	f.StringVar(&o.sshKey, "ssh-key", "", "private key `file` for rescue systems; the SSH agent when empty (IRONLOT_SSH_KEY)")
	f.StringVar(&o.scwProfile, "scw-profile", "", "profile of the provider's configuration file (SCW_PROFILE)")
	f.StringSliceVar(&o.agentDirs, "agents", nil, "`directories` with agent-linux-amd64 and agent-linux-arm64; else beside this program and bin/")
	f.IntVar(&o.maxNodes, "max-nodes", worker.DefaultMaxNodes, "how many nodes the worker works on at once")
	f.Float64Var(&o.rate, "provider-rate", worker.DefaultRate, "phases that ask the provider, per second; it publishes no limit, and a 429 slows the worker down")
	freeText(cmd, "port", "ui-port", "scw-profile", "max-nodes", "provider-rate")
	_ = cmd.MarkFlagDirname("agents") // fails for unknown flags only
	return cmd
}

// runUp runs Temporal, unless there is one, and the worker, until ctx ends
// or one of them does.
func (a *app) runUp(ctx context.Context, o upFlags) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	config, err := a.workerConfig(h, o)
	if err != nil {
		return err
	}
	if err := config.Check(); err != nil {
		return err
	}
	if from := a.addressFrom(); from != "" {
		a.temporal.Absent = fmt.Sprintf("start it, or leave out %s, and `starter up` starts one of its own", from)
		return a.runWorker(ctx, h, config, nil)
	}
	return a.embedded(ctx, h, o, config)
}

// ownServer refuses flags of the server that `up` starts where it starts none.
func (a *app) ownServer(given *pflag.FlagSet) error {
	from := a.addressFrom()
	if from == "" {
		return nil
	}
	for _, name := range []string{"port", "ui-port", "temporal"} {
		if given.Changed(name) {
			return refuse(fmt.Sprintf("leave out --%s, or %s for a Temporal that `up` starts", name, from),
				"--%s is for a Temporal that `up` starts itself, and %s names one that is there already", name, from)
		}
	}
	return nil
}

// embedded runs Temporal's server and the worker. They stop in the opposite
// order: the worker still has to say goodbye to the server.
func (a *app) embedded(ctx context.Context, h *home.Home, o upFlags, config worker.Config) (err error) {
	lock, err := h.Lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	server, err := a.startServer(ctx, h, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := lock.Tell(home.Up{Address: server.Address(), WebUI: server.WebUI(), PID: os.Getpid()}); err != nil {
		return err
	}
	a.temporal.Address = server.Address()
	return a.runWorker(ctx, h, config, server)
}

// startServer starts Temporal's own dev server.
func (a *app) startServer(ctx context.Context, h *home.Home, o upFlags) (*devserver.Server, error) {
	binary := o.temporal
	if binary == "" {
		var err error
		if binary, err = devserver.Find(); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, upTimeout)
	defer cancel()
	return devserver.Start(ctx, devserver.Options{
		Binary: binary, Database: h.Database(), LogFile: h.ServerLog(), Port: o.port, UIPort: o.uiPort,
		Logger: logging.Temporal(zap.NewNop()),
	})
}

// workerConfig gathers what the worker needs, before anything is started.
func (a *app) workerConfig(h *home.Home, o upFlags) (worker.Config, error) {
	identities, err := seal.LoadOrCreateIdentity(h.IdentityFile())
	if err != nil {
		return worker.Config{}, err
	}
	provider, err := scaleway.New(scaleway.Config{Version: version.String(), Profile: o.scwProfile})
	if err != nil {
		return worker.Config{}, err
	}
	if o.sshKey == "" {
		o.sshKey, _ = a.env.LookupEnv("IRONLOT_SSH_KEY")
	}
	if len(o.agentDirs) == 0 {
		o.agentDirs = rescue.AgentDirs()
	}
	socket, _ := a.env.LookupEnv("SSH_AUTH_SOCK")
	return worker.Config{
		Provider: provider, KeyFile: o.sshKey, Socket: socket, AgentDirs: o.agentDirs,
		Identities: identities, MaxNodes: o.maxNodes, Rate: o.rate,
	}, nil
}

// runWorker runs the worker until ctx ends, or the server if it is ours.
func (a *app) runWorker(ctx context.Context, h *home.Home, config worker.Config, server *devserver.Server) error {
	file, err := os.OpenFile(h.WorkerLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return refuse("choose another state directory", "the worker's log cannot be written: %w", err)
	}
	defer func() { _ = file.Close() }()
	if config.Log, err = logging.New(file, "json", "info"); err != nil {
		return err
	}
	c, err := a.connectAs(ctx, "") // a worker is a process, no person
	if err != nil {
		return err
	}
	defer c.Close()
	config.Temporal, config.Namespace = c.Client, c.Namespace
	config.Started = func() { a.welcome(h, c) }

	defer context.AfterFunc(ctx, func() { a.stopping(server != nil) })()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- a.work(ctx, config) }()
	if server == nil {
		return <-done
	}
	select {
	case err := <-done:
		return err
	case <-server.Done():
		stop()
		return errors.Join(server.Err(), <-done)
	}
}

// stopping says at once what takes a moment.
func (a *app) stopping(server bool) {
	what := "the worker"
	if server {
		what = "the worker, then Temporal"
	}
	_, _ = fmt.Fprintf(a.notes(), "\nStopping %s: a few seconds. Nothing is lost: runs go on where they were at\nthe next start. Ctrl-C again ends at once.\n", what)
}

// upFacts is what runs, for programs.
type upFacts struct {
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	WebUI     string `json:"webUI,omitempty"`
	WorkerLog string `json:"workerLog"`
	State     string `json:"state"`
}

// welcome says what runs and what to do next.
func (a *app) welcome(h *home.Home, c *temporal.Connection) {
	webUI := a.webUIOf(c.Address)
	if a.structured() {
		_ = a.encode(upFacts{c.Address, c.Namespace, webUI, h.WorkerLog(), h.Dir})
		return
	}
	_, _ = fmt.Fprintf(a.stdout, "Temporal   %s\n", c.Address)
	if webUI != "" {
		_, _ = fmt.Fprintf(a.stdout, "Web UI     %s\n", webUI)
	}
	_, _ = fmt.Fprintf(a.stdout, `worker     takes work, log in %s
state      %s

Next, in another terminal:
  starter validate lot.yaml
  starter provision --batch lot.yaml

Ctrl-C stops; runs go on where they were at the next start.
`, h.WorkerLog(), h.Dir)
}
