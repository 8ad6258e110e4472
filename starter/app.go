package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
	"golang.org/x/term"

	"github.com/ironlot/ironlot/internal/cmdline"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/home"
	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/temporal"
	"github.com/ironlot/ironlot/internal/version"
	"github.com/ironlot/ironlot/internal/worker"
	"github.com/ironlot/ironlot/starter/internal/show"
)

// app is what the commands share: the outside world, and the global flags.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            environment
	stdinTerminal  bool
	// terminal gives the size of the terminal that stdout is, if it is one.
	terminal func() (width, height int, ok bool)
	// errWidth is the width of the terminal that stderr is, 0: it is none.
	errWidth func() int
	// work runs a worker until the context ends.
	work func(context.Context, worker.Config) error

	temporal temporal.Options // flags
	webUI    string
	output   string
	noColor  bool
	// connected is the Temporal that the command has asked, nil before that.
	connected *temporal.Connection
	began     bool // the command line was understood
}

// environment is the process's environment, or a test's.
type environment interface {
	Environ() []string
	LookupEnv(string) (string, bool)
}

type processEnvironment struct{}

func (processEnvironment) Environ() []string                   { return os.Environ() }
func (processEnvironment) LookupEnv(key string) (string, bool) { return os.LookupEnv(key) }

func newApp() *app {
	return &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, env: processEnvironment{},
		stdinTerminal: term.IsTerminal(int(os.Stdin.Fd())),
		terminal: func() (int, int, bool) {
			width, height, err := term.GetSize(int(os.Stdout.Fd()))
			return width, height, err == nil
		},
		errWidth: func() int {
			width, _, _ := term.GetSize(int(os.Stderr.Fd()))
			return width
		},
		work: func(ctx context.Context, c worker.Config) error {
			worker.SaveMemory() // `up` does little else
			return worker.Run(ctx, c)
		},
	}
}

// run carries out a command line and gives the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if said := new(exitError); !errors.As(err, &said) {
		err = a.connected.Explain(err)
	}
	if err != nil && !a.began {
		err = cmdline.See(cmd, err)
	}
	a.complain(err)
	return exitCode(err)
}

// complain writes an error that has not been said yet, each of several on a line
// of its own. Mistakes of a file begin with their place, as editors like it; its
// warnings follow.
func (a *app) complain(err error) {
	var file *mistaken
	if errors.As(err, &file) {
		a.complain(file.err)
		a.warn(file.warnings)
		return
	}
	for _, err := range fault.Each(err) {
		var said *exitError
		var problems lot.Problems
		switch {
		case errors.As(err, &said) && said.err == nil:
		case errors.As(err, &problems):
			a.tell(err.Error())
		default:
			a.tell("starter: " + err.Error())
		}
	}
}

// warn says what a person should know of a lot file.
func (a *app) warn(warnings []string) {
	for _, w := range warnings {
		a.tell("warning: " + w)
	}
}

// tell says something to the person, beside the data: on lines that fit the
// terminal, on one line for whoever reads it from a file.
func (a *app) tell(text string) {
	text = show.Wrap(show.Printable(text), a.errWidth())
	_, _ = fmt.Fprintln(a.stderr, strings.TrimSuffix(text, "\n"))
}

// root is the command that holds all others.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "starter",
		Short: "Install Talos Linux on rented bare metal, a lot at a time",
		Long: `Ironlot installs Talos Linux on rented bare metal through the provider's
rescue mode. Each server's run is a workflow of Temporal: it survives whatever
dies on the way, and tells its story afterwards.

  starter up                            Temporal, its Web UI and a worker, on this machine
  starter provision --batch lot.yaml    show what is erased, ask, start, follow
  starter status                        the lots; status LOT, status LOT NODE
  starter ui LOT                        the lot's page in Temporal's Web UI
  starter inventory                     what was provisioned, by which run
  starter retry LOT NODE                let a stuck node go on; abort ends its run
  starter pause LOT                     start no further node; resume goes on, add adds nodes
  starter lab                           simulated servers, to try everything out

Temporal is found by the flags, else by TEMPORAL_ADDRESS and its siblings and
by the profiles of Temporal's configuration file, else where ` + "`up`" + ` started it.

` + exitCodes(),
		Version:           version.String(),
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              command,
		PersistentPreRunE: a.begin,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	f := root.PersistentFlags()
	f.StringVar(&a.temporal.Address, "address", "", "Temporal's address, host:port (TEMPORAL_ADDRESS)")
	f.StringVar(&a.temporal.Namespace, "namespace", "", "Temporal's namespace (TEMPORAL_NAMESPACE)")
	f.StringVar(&a.temporal.Profile, "profile", "", "profile of Temporal's configuration file (TEMPORAL_PROFILE)")
	f.StringVar(&a.webUI, "web-ui", "", "address of Temporal's Web UI, to be shown (IRONLOT_WEB_UI)")
	f.StringVarP(&a.output, "output", "o", outputTable, strings.Join(outputs(), ", "))
	f.BoolVar(&a.noColor, "no-color", false, "no colours on a terminal (NO_COLOR)")
	words(root, "output", outputs()...)
	freeText(root, "address", "namespace", "profile", "web-ui")
	root.AddCommand(
		a.upCommand(), a.provisionCommand(), a.statusCommand(), a.lotsCommand(), a.inventoryCommand(), a.uiCommand(), a.retryCommand(), a.abortCommand(),
		a.pauseCommand(), a.resumeCommand(), a.addCommand(),
		a.validateCommand(), a.schemaCommand(), a.postmortemCommand(), a.labCommand(), a.keysCommand(), a.versionCommand(),
	)
	root.SetFlagErrorFunc(flagMistake)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = helpTopic
		case "completion":
			c.Args, c.RunE = command, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// begin checks the global flags.
func (a *app) begin(*cobra.Command, []string) error {
	if err := a.checkOutput(); err != nil {
		return err
	}
	if v, ok := a.env.LookupEnv("NO_COLOR"); ok && v != "" {
		a.noColor = true
	}
	a.began = true
	return nil
}

// home opens the state directory.
func (a *app) home() (*home.Home, error) { return home.Open(a.env.LookupEnv) }

// connect connects a person to Temporal: where the flags or the environment
// say, else where `up` started it.
func (a *app) connect(ctx context.Context) (*temporal.Connection, error) {
	return a.connectAs(ctx, a.who())
}

// who is the person at the command line.
func (a *app) who() string { return temporal.Person(a.env) }

// connectAs connects under an identity; the empty one is that of the process.
func (a *app) connectAs(ctx context.Context, identity string) (*temporal.Connection, error) {
	o := a.temporal
	o.Lookup, o.Identity = a.env, identity
	o.Logger = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	if up, ok := a.up(); ok && a.addressFrom() == "" {
		o.Address = up.Address
	}
	c, err := temporal.Dial(ctx, o)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if classified, ok := fault.As(err); ok && classified.Class == fault.Transient {
		return nil, &exitError{exitUnreachable, err}
	}
	a.connected = c
	return c, err
}

// addressFrom is what says where Temporal is: a flag, a variable or a profile.
// Empty: nothing does.
func (a *app) addressFrom() string {
	if a.temporal.Address != "" {
		return "--address"
	}
	if address, _ := a.env.LookupEnv("TEMPORAL_ADDRESS"); address != "" {
		return "TEMPORAL_ADDRESS"
	}
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{
		ConfigFileProfile: a.temporal.Profile, EnvLookup: a.env,
	})
	if err != nil || profile.Address != "" {
		return "the profile of Temporal's configuration file"
	}
	return ""
}

// up gives what the last `up` of this state directory told.
func (a *app) up() (home.Up, bool) {
	h, err := a.home()
	if err != nil {
		return home.Up{}, false
	}
	return h.Up()
}
