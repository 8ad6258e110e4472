package main

import (
	"cmp"
	"fmt"
	"os"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/ironlot/ironlot/internal/cmdline"
	"github.com/ironlot/ironlot/internal/home"
	"github.com/ironlot/ironlot/internal/logging"
	"github.com/ironlot/ironlot/internal/provider/scaleway"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/seal"
	"github.com/ironlot/ironlot/internal/temporal"
	"github.com/ironlot/ironlot/internal/version"
	"github.com/ironlot/ironlot/internal/worker"
)

// settings are the worker's flags.
type settings struct {
	temporal   temporal.Options
	scwProfile string
	sshKey     string
	identity   string
	agentDirs  []string
	maxNodes   int
	rate       float64
	versioning worker.Versioning
	logFormat  string
	logLevel   string
}

func command() *cobra.Command {
	s := &settings{}
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Run Ironlot's workflows and activities",
		Long: `The worker takes runs from Temporal and works on the provider's API, on the
rescue systems of machines (SSH) and on Talos nodes (port 50000). Start as
many as you like: a run goes on with another one when its worker dies.

Settings come from flags, then from the environment, then from the
configuration files of the tools that you have already:

  Temporal   TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY,
             TEMPORAL_TLS_*, TEMPORAL_PROFILE, TEMPORAL_CONFIG_FILE
  Scaleway   SCW_ACCESS_KEY, SCW_SECRET_KEY, SCW_PROFILE, SCW_CONFIG_PATH,
             SCW_API_URL
  SSH        IRONLOT_SSH_KEY (a private key file), else SSH_AUTH_SOCK
  age        IRONLOT_IDENTITY (a file of age identities), else
             IRONLOT_AGE_IDENTITY (the identities themselves), else the one in
             the state directory ($IRONLOT_HOME, ~/.local/state/ironlot)

The SSH key must be registered with the provider. The identity opens what the
starter seals to the workers' recipients (` + "`starter keys`" + ` shows them).

A signal (SIGINT, SIGTERM) stops the worker gracefully: it lets go of its
machines, whose jobs go on, and other workers follow them.

Exit codes: 0 stopped, 1 failed, 2 a setting must be mended, 5 Temporal does
not answer.`,
		Version:       version.String(),
		Args:          refusing(cmdline.Words(0)),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return cmdline.See(cmd, cmdline.Flag(cmd, err)) })
	f := cmd.Flags()
	f.StringVar(&s.temporal.Address, "address", "", "Temporal's address, host:port (TEMPORAL_ADDRESS)")
	f.StringVar(&s.temporal.Namespace, "namespace", "", "Temporal's namespace (TEMPORAL_NAMESPACE)")
	f.StringVar(&s.temporal.Profile, "profile", "", "profile of Temporal's configuration file (TEMPORAL_PROFILE)")
	f.StringVar(&s.scwProfile, "scw-profile", "", "profile of the provider's configuration file (SCW_PROFILE)")
	f.StringVar(&s.sshKey, "ssh-key", os.Getenv("IRONLOT_SSH_KEY"), "private key `file` for rescue systems; the SSH agent when empty (IRONLOT_SSH_KEY)")
	f.StringVar(&s.identity, "identity", os.Getenv("IRONLOT_IDENTITY"), "`file` of age identities (IRONLOT_IDENTITY)")
	f.StringSliceVar(&s.agentDirs, "agents", nil, "`directories` with agent-linux-amd64 and agent-linux-arm64; else beside this program and bin/")
	f.IntVar(&s.maxNodes, "max-nodes", worker.DefaultMaxNodes, "how many nodes this worker works on at once")
	f.Float64Var(&s.rate, "provider-rate", worker.DefaultRate, "phases that ask the provider, per second over all workers; it publishes no limit, and a 429 slows all workers down")
	f.StringVar(&s.versioning.Deployment, "deployment", os.Getenv("IRONLOT_DEPLOYMENT"), "`name` of the worker deployment: every run stays with the build that it was started on; off when empty (IRONLOT_DEPLOYMENT)")
	f.StringVar(&s.versioning.BuildID, "build-id", cmp.Or(os.Getenv("IRONLOT_BUILD_ID"), version.String()), "`ID` of this build in the deployment (IRONLOT_BUILD_ID)")
	f.BoolVar(&s.versioning.MakeCurrent, "make-current", false, "let new runs of the deployment start on this build")
	f.StringVar(&s.logFormat, "log-format", "json", "json or console")
	f.StringVar(&s.logLevel, "log-level", "info", "debug, info, warn or error")
	// These fail for unknown flags only.
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"json", "console"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions([]string{"debug", "info", "warn", "error"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagDirname("agents")
	for _, flag := range []string{"address", "namespace", "profile", "scw-profile", "max-nodes", "provider-rate", "deployment", "build-id"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	cmd.AddCommand(versionCommand())
	return cmd
}

func (s *settings) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	log, err := logging.New(cmd.ErrOrStderr(), s.logFormat, s.logLevel)
	if err != nil {
		return err
	}
	identities, err := s.identities()
	if err != nil {
		return err
	}
	log.Info("machine configs must be sealed to one of these", zap.Strings("recipients", publicKeys(identities)))
	if len(s.agentDirs) == 0 {
		s.agentDirs = rescue.AgentDirs()
	}
	provider, err := scaleway.New(scaleway.Config{Version: version.String(), Profile: s.scwProfile})
	if err != nil {
		return err
	}
	s.temporal.Logger = logging.Temporal(log)
	conn, err := temporal.Dial(ctx, s.temporal)
	if err != nil {
		return dialled(err)
	}
	defer conn.Close()
	return conn.Explain(worker.Run(ctx, worker.Config{
		Temporal: conn.Client, Namespace: conn.Namespace, Provider: provider,
		KeyFile: s.sshKey, Socket: os.Getenv("SSH_AUTH_SOCK"), AgentDirs: s.agentDirs,
		Identities: identities, MaxNodes: s.maxNodes, Rate: s.rate, Log: log,
		Versioning: s.versioning,
	}))
}

// publicKeys are what belongs into the starter's recipients.txt.
func publicKeys(identities []age.Identity) []string {
	var keys []string
	for _, r := range seal.Recipients(identities...) {
		keys = append(keys, fmt.Sprint(r))
	}
	return keys
}

// identities reads the keys that open machine configs. Without a file the
// state directory's identity serves, which must be there: a worker that made
// one of its own could open nothing.
func (s *settings) identities() ([]age.Identity, error) {
	file := s.identity
	if text := os.Getenv(seal.EnvIdentity); file == "" && text != "" {
		return seal.ParseIdentities(seal.EnvIdentity, text)
	}
	if file == "" {
		h, err := home.Open(os.LookupEnv)
		if err != nil {
			return nil, err
		}
		file = h.IdentityFile()
	}
	return seal.LoadIdentities(file)
}
