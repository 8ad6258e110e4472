package talosnode_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/testenv"
)

// The tests here use machinery's own client: what it sees, talosctl sees.

var sharedCluster = sync.OnceValues(func() (*talosnode.Cluster, error) {
	return talosnode.NewCluster("lab", "https://192.0.2.10:6443")
})

func cluster(t *testing.T) *talosnode.Cluster {
	t.Helper()
	c, err := sharedCluster()
	require.NoError(t, err)
	return c
}

// up is a world in which the cluster's control plane runs.
func up(t *testing.T, c *talosnode.Cluster) *talosnode.Trustd {
	t.Helper()
	trustd := talosnode.NewTrustd()
	require.NoError(t, trustd.Serve(c.ControlPlane))
	return trustd
}

func start(t *testing.T, opts talosnode.Options) *talosnode.Node {
	t.Helper()
	opts.Addr = testenv.Nobody()
	n, err := talosnode.Start(t.Context(), opts)
	require.NoError(t, err)
	t.Cleanup(n.Stop)
	return n
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func insecure(t *testing.T, n *talosnode.Node) *client.Client {
	t.Helper()
	return dial(t, client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}), client.WithEndpoints(n.Addr()))
}

func mTLS(t *testing.T, n *talosnode.Node, talosconfig []byte) *client.Client {
	t.Helper()
	cfg, err := clientconfig.FromBytes(talosconfig)
	require.NoError(t, err)
	return dial(t, client.WithConfig(cfg), client.WithEndpoints(n.Addr()))
}

func dial(t *testing.T, opts ...client.OptionFunc) *client.Client {
	t.Helper()
	opts = append(opts, client.WithGRPCDialOptions(grpc.WithDefaultServiceConfig(`{"methodConfig":[{"name":[{}],"waitForReady":true}]}`)))
	c, err := client.New(t.Context(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func applyConfig(t *testing.T, c *client.Client, cfg []byte) *machine.ApplyConfiguration {
	t.Helper()
	got, err := c.ApplyConfiguration(within(t), &machine.ApplyConfigurationRequest{Data: cfg, Mode: machine.ApplyConfigurationRequest_AUTO})
	require.NoError(t, err)
	return got.Messages[0]
}

// reached waits until the node shows a stage.
func reached(t *testing.T, c *client.Client, stage runtime.MachineStage, unmet ...string) {
	t.Helper()
	_, err := safe.StateWatchFor[*runtime.MachineStatus](within(t), c.COSI, runtime.NewMachineStatus().Metadata(),
		state.WithEventTypes(state.Created, state.Updated),
		state.WithCondition(func(r resource.Resource) (bool, error) {
			spec := r.(*runtime.MachineStatus).TypedSpec()
			var got []string
			for _, u := range spec.Status.UnmetConditions {
				got = append(got, u.Name+": "+u.Reason)
			}
			if spec.Status.Ready != (len(got) == 0) {
				return false, errors.New("ready and unmet conditions contradict each other")
			}
			return spec.Stage == stage && slices.Equal(got, unmet), nil
		}))
	require.NoError(t, err)
}

func TestFromMaintenanceToReady(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	store := &talosnode.MemoryStore{}
	n := start(t, talosnode.Options{Store: store, Trustd: up(t, c), UUID: "abcdef00-0000-0000-0000-000000000000", Serial: "SN1"})

	free := insecure(t, n)
	version, err := free.Version(within(t))
	require.NoError(t, err)
	require.Equal(t, "v1.13.8", version.Messages[0].Version.Tag)
	require.Equal(t, "lab-simulated", version.Messages[0].Version.Sha)
	require.Equal(t, "metal", version.Messages[0].Platform.Name)
	reached(t, free, runtime.MachineStageMaintenance)

	answer := applyConfig(t, free, c.Worker)
	require.Equal(t, machine.ApplyConfigurationRequest_NO_REBOOT, answer.Mode)
	require.Equal(t, "Applied configuration without a reboot", answer.ModeDetails)

	admin := mTLS(t, n, c.Talosconfig)
	reached(t, admin, runtime.MachineStageRunning)
	name, err := safe.StateGetByID[*k8s.Nodename](within(t), admin.COSI, k8s.NodenameID)
	require.NoError(t, err)
	require.Equal(t, "talos-abc-def", name.TypedSpec().Nodename)
	node, err := safe.StateGetByID[*k8s.NodeStatus](within(t), admin.COSI, "talos-abc-def")
	require.NoError(t, err)
	require.True(t, node.TypedSpec().NodeReady)
	info, err := safe.StateGetByID[*hardware.SystemInformation](within(t), admin.COSI, hardware.SystemInformationID)
	require.NoError(t, err)
	require.Equal(t, "SN1", info.TypedSpec().SerialNumber)
	kubelet, err := safe.StateGetByID[*v1alpha1.Service](within(t), admin.COSI, "kubelet")
	require.NoError(t, err)
	require.True(t, kubelet.TypedSpec().Healthy)
	running, err := safe.StateGetByID[*config.MachineConfig](within(t), admin.COSI, config.ActiveID)
	require.NoError(t, err)
	data, err := running.Provider().Bytes()
	require.NoError(t, err)
	require.Equal(t, string(c.Worker), string(data), "the node keeps the bytes")

	// The config survives a power cut; maintenance does not come back.
	n.Stop()
	again := start(t, talosnode.Options{Store: store, Trustd: up(t, c)})
	reached(t, mTLS(t, again, c.Talosconfig), runtime.MachineStageRunning)
	require.Equal(t, uint64(116), alert(t, again.Addr()), "certificate required")
}

// alert connects without a certificate and gives the TLS alert that comes.
func alert(t *testing.T, addr string) uint64 {
	t.Helper()
	conn, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Read(make([]byte, 1))
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	return reflect.ValueOf(op.Err).Uint()
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	store := &talosnode.MemoryStore{}
	n := start(t, talosnode.Options{Store: store})
	free := insecure(t, n)
	edit := func(old, new string) []byte {
		require.Contains(t, string(c.Worker), old)
		return []byte(strings.Replace(string(c.Worker), old, new, 1))
	}
	for name, tc := range map[string]struct {
		config []byte
		text   string
	}{
		"broken YAML":     {[]byte("machine: [\n"), "decode error: "},
		"unknown kind":    {append(bytes.Clone(c.Worker), "---\napiVersion: v1alpha1\nkind: NoSuchKind\nname: x\n"...), "error decoding document v1alpha1/NoSuchKind/x (line "},
		"unknown key":     {edit("machine:", "machine:\n    nonsense: 1"), "nonsense: 1"},
		"wrong type":      {edit("type: worker", "type: wroker"), `v1alpha1.Config: 1 error occurred`},
		"empty":           {nil, "config not found"},
		"twice":           {append(bytes.Clone(c.Worker), append([]byte("---\n"), c.Worker...)...), "not allowed"},
		"worker with key": {bytes.Replace(c.ControlPlane, []byte("type: controlplane"), []byte("type: worker"), 1), "CA key is not allowed on non-controlplane nodes"},
	} {
		_, err := free.ApplyConfiguration(within(t), &machine.ApplyConfigurationRequest{Data: tc.config})
		require.Equal(t, codes.InvalidArgument, client.StatusCode(err), name)
		require.ErrorContains(t, err, tc.text, name)
	}
	reached(t, free, runtime.MachineStageMaintenance)
	saved, err := store.Load()
	require.NoError(t, err)
	require.Nil(t, saved, "no refused config is kept")
}

func TestAcceptedWithoutEffect(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	store := &talosnode.MemoryStore{}
	n := start(t, talosnode.Options{Store: store})
	free := insecure(t, n)

	// A config without a v1alpha1 document is a trap: no error, no effect.
	answer := applyConfig(t, free, []byte("apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n"))
	require.Equal(t, "Applied configuration without a reboot", answer.ModeDetails)

	dry, err := free.ApplyConfiguration(within(t), &machine.ApplyConfigurationRequest{Data: c.ControlPlane, DryRun: true})
	require.NoError(t, err)
	require.Contains(t, dry.Messages[0].ModeDetails, "(skipped in dry-run)")
	for _, secret := range c.Secrets() {
		require.Contains(t, dry.Messages[0].ModeDetails, secret, "as on the real node")
	}
	_, err = free.ApplyConfiguration(within(t), &machine.ApplyConfigurationRequest{Data: c.Worker, Mode: machine.ApplyConfigurationRequest_STAGED})
	require.NoError(t, err)

	reached(t, free, runtime.MachineStageMaintenance)
	saved, err := store.Load()
	require.NoError(t, err)
	require.Nil(t, saved)
}

func TestRoles(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	store := &talosnode.MemoryStore{}
	require.NoError(t, store.Save(c.Worker))
	n := start(t, talosnode.Options{Store: store, Trustd: up(t, c)})
	readerConfig, err := c.TalosconfigFor(role.Reader)
	require.NoError(t, err)
	reader, admin := mTLS(t, n, readerConfig), mTLS(t, n, c.Talosconfig)

	reached(t, reader, runtime.MachineStageRunning)
	_, err = safe.StateGetByID[*config.MachineConfig](within(t), reader.COSI, config.ActiveID)
	require.Equal(t, codes.PermissionDenied, client.StatusCode(err))
	_, err = reader.ApplyConfiguration(within(t), &machine.ApplyConfigurationRequest{Data: c.ControlPlane})
	require.Equal(t, codes.PermissionDenied, client.StatusCode(err))
	err = admin.COSI.Create(within(t), k8s.NewNodename(k8s.NamespaceName, "x"))
	require.True(t, state.IsOwnerConflictError(err), "COSI's word for a write that is denied: %v", err)

	changed := bytes.Replace(c.Worker, []byte("type: worker"), []byte("type: worker\n    sysctls:\n        vm.swappiness: \"1\""), 1)
	applyConfig(t, admin, changed)
	saved, err := store.Load()
	require.NoError(t, err)
	require.Equal(t, string(changed), string(saved), "an admin may change the config, a reader may not")

	other, err := talosnode.NewCluster("other", "https://192.0.2.20:6443")
	require.NoError(t, err)
	foreign, err := clientconfig.FromBytes(other.Talosconfig)
	require.NoError(t, err)
	cli, err := client.New(t.Context(), client.WithConfig(foreign), client.WithEndpoints(n.Addr()))
	require.NoError(t, err)
	defer func() { _ = cli.Close() }()
	_, err = cli.Version(within(t))
	require.Equal(t, codes.Unavailable, client.StatusCode(err))
}

func TestBootstrap(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	trustd := talosnode.NewTrustd()
	n := start(t, talosnode.Options{Trustd: trustd})
	applyConfig(t, insecure(t, n), c.ControlPlane)
	admin := mTLS(t, n, c.Talosconfig)
	reached(t, admin, runtime.MachineStageBooting, "services: etcd not running", `nodeReady: node "talos-000-000" status is not available yet`)
	require.NoError(t, admin.Bootstrap(within(t), &machine.BootstrapRequest{}))
	reached(t, admin, runtime.MachineStageRunning)
}
