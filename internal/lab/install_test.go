package lab_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/scwapi"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/provider/scaleway"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
	"github.com/ironlot/ironlot/internal/testenv"
)

// The whole way of one server, by the same packages that the activities use:
// the provider's SDK, SSH, the agent's jobs and the Talos API.
func TestAServerGoesAllTheWay(t *testing.T) {
	t.Parallel()
	o := quick(t)
	o.Servers, o.SwapNames, o.Delivered = 1, true, simulated.LVM
	f := start(t, o)
	machine := f.Servers()[0].Machine
	input := renderedNode(t, f)
	cloud, dialer := clients(t, f)

	keys, err := cloud.SSHKeyIDs(t.Context(), dialer.PublicKeys())
	require.NoError(t, err)
	require.Len(t, keys, 1)
	server, err := cloud.Describe(t.Context(), input.Node.Zone, input.Node.ServerID)
	require.NoError(t, err)
	require.Contains(t, server.Tags, scwapi.LabTag)
	require.NoError(t, cloud.Reboot(t.Context(), input.Node.Zone, input.Node.ServerID, provider.BootRescue, keys))
	require.NoError(t, machine.WaitState(testenv.Soon(t), simulated.InRescue))

	install(t, cloud, dialer, server, input.Node)
	require.NoError(t, cloud.Reboot(t.Context(), input.Node.Zone, input.Node.ServerID, provider.BootNormal, nil))
	require.NoError(t, machine.WaitState(testenv.Soon(t), simulated.InTalos))

	addr := net.JoinHostPort(server.Addresses[0], strconv.Itoa(input.Node.TalosPort))
	require.Eventually(t, func() bool {
		seen, err := talos.Probe(t.Context(), addr)
		return err == nil && seen.State == talos.Maintenance
	}, time.Minute, 10*time.Millisecond)
	outcome, err := talos.Apply(t.Context(), addr, configOf(t, input))
	require.NoError(t, err)
	require.Equal(t, talos.Accepted, outcome)
	client, err := talos.ParseTalosconfig([]byte(input.Sealed.Talosconfig), "")
	require.NoError(t, err)
	ready, err := talos.WaitReady(t.Context(), addr, client, talos.ReadyOptions{})
	require.NoError(t, err)
	require.Equal(t, input.Node.Name, ready.NodeName)

	kept, err := machine.StateConfig(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, kept, "the config is on the disk")
	for _, boot := range machine.Boots() {
		for _, command := range boot.Commands {
			for _, secret := range f.Cluster().Secrets() {
				require.NotContains(t, command, secret)
			}
		}
	}
}

// renderedNode is the lot's one node, its config in clear.
func renderedNode(t *testing.T, f *lab.Fleet) run.NodeInput {
	t.Helper()
	l, err := lot.Load(f.Path("lot.yaml"))
	require.NoError(t, err)
	rendered, err := l.Render(t.Context())
	require.NoError(t, err)
	require.Empty(t, rendered.Warnings)
	inputs, err := rendered.Seal(func(plaintext []byte) (string, error) { return string(plaintext), nil })
	require.NoError(t, err)
	require.Len(t, inputs, 1)
	return inputs[0]
}

func clients(t *testing.T, f *lab.Fleet) (*scaleway.Client, *rescue.Dialer) {
	t.Helper()
	key := scwapi.DefaultKey()
	cloud, err := scaleway.New(scaleway.Config{Credentials: &scaleway.Credentials{
		AccessKey: key.AccessKey, SecretKey: key.SecretKey, APIURL: f.APIURL(),
	}})
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "agent-linux-amd64"), []byte("stands for the agent"), 0o600))
	agents, err := rescue.FindAgents(dir)
	require.NoError(t, err)
	dialer, err := rescue.NewDialer(rescue.Options{KeyFile: f.Path("id_ed25519"), Agents: agents})
	require.NoError(t, err)
	return cloud, dialer
}

// install does what disk-prep, stage, write and sysrq-reset do.
func install(t *testing.T, cloud provider.Provider, dialer *rescue.Dialer, server provider.Server, node run.Node) {
	t.Helper()
	s, err := dialer.Connect(t.Context(), rescue.Target{
		Address: server.Addresses[0], Port: node.Rescue.Port, User: "rescue",
		Password: func(ctx context.Context) (string, error) {
			return cloud.RescuePassword(ctx, node.Zone, node.ServerID)
		},
	})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.EnsureAgent(t.Context()))
	inventory, err := s.Inspect(t.Context())
	require.NoError(t, err)
	system, second := inventory.Disks[0].Identity(), inventory.Disks[1].Identity()
	if system.Size > second.Size {
		system, second = second, system
	}
	do := func(spec api.JobSpec) *api.JobResult {
		require.Eventually(t, func() bool {
			_, err := s.StartJob(t.Context(), inventory.BootID, string(spec.Kind), spec)
			return err == nil
		}, time.Minute, time.Millisecond, "the job before gives the machine back")
		last, err := s.FollowJob(t.Context(), inventory.BootID, string(spec.Kind), func(api.JobStatus) {})
		require.NoError(t, err)
		require.Nil(t, last.Error)
		require.Equal(t, api.JobSucceeded, last.State)
		return last.Result
	}
	do(api.JobSpec{Kind: api.DiskPrep, DiskPrep: &api.DiskPrepSpec{System: system, Secondary: []run.Disk{second}}})
	staged := do(api.JobSpec{Kind: api.Stage, Stage: &api.StageSpec{Image: node.Image}}).Stage
	do(api.JobSpec{Kind: api.Write, Write: &api.WriteSpec{System: system, DataSHA256: staged.DataSHA256, RawSize: staged.RawSize}})
	require.NoError(t, s.Reset(t.Context(), inventory.BootID))
}

// configOf renders a node's machine config from what its run carries; the
// lab's lot is not sealed here.
func configOf(t *testing.T, in run.NodeInput) []byte {
	t.Helper()
	shared, err := talos.ParseBundle([]byte(in.Sealed.Config))
	require.NoError(t, err)
	var own talos.Bundle
	if in.Sealed.Own != "" {
		own, err = talos.ParseBundle([]byte(in.Sealed.Own))
		require.NoError(t, err)
	}
	rendered, err := talos.Render(shared.Input(own, in.Node.Name, in.Node.Values(0)))
	require.NoError(t, err)
	return rendered.Bytes
}
