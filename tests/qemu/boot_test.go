package qemu

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/run"
)

// Failures 1 and 2: an iPXE script in the cloud-init field is refused by the
// provider; a hand-over by kexec loses the server of its own config.
func TestFailures1And2NetbootAndKexec(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{})
	node := s.node().Node
	script := base64.StdEncoding.EncodeToString([]byte("#!ipxe\nchain http://example.com/talos"))
	code, text := s.call(http.MethodPatch, fmt.Sprintf("/baremetal/v1/zones/%s/servers/%s", node.Zone, node.ServerID), `{"user_data":"`+script+`"}`)
	require.Equal(t, http.StatusServiceUnavailable, code, text)
	require.Contains(t, text, "not a format of cloud-init")

	// The old system serves the config for what replaces it.
	old := s.installedByHand()
	old.do("echo the machine config >/run/config; setsid sh -c 'while :; do nc -l -p 50000 </run/config; done' >/dev/null 2>&1 </dev/null &")
	s.eventually("the old system serves the config", func() bool { return old.fetch() == "the machine config\n" })
	// Injected: a reset stands for kexec. Both end every process of the old
	// kernel; the next one comes over the network instead of out of RAM.
	require.Empty(t, s.rescueByHand().fetch(), "the config went with the old system")

	s.ready(nil)
}

// fetch asks the machine for its config, through the login.
func (h *hand) fetch() string {
	conn, err := h.client.Dial("tcp", "127.0.0.1:50000")
	if err != nil {
		return ""
	}
	defer conn.Close()
	buf := make([]byte, 100)
	n, err := conn.Read(buf)
	if err != nil {
		return ""
	}
	return string(buf[:n])
}

// Failure 4: the image is written under a live, mounted filesystem.
func TestFailure4WritingUnderALiveSystem(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{})
	old := s.installedByHand()
	s.refusedOnLiveSystem()

	system := old.disk(1)
	old.write(system) // nothing stops it
	// /boot lies where the image was written to, root partly behind it.
	old.do("for i in 1 2 3 4; do echo $i >/home/$i; echo $i >/boot/$i; sync; done")
	require.False(t, s.equalsImage(1), "the live filesystem has written over the image")
	require.NoError(t, s.machine.PowerOff())

	s.ready(func(n *run.Node) { n.Rescue.Fresh = true })
	require.True(t, s.equalsImage(1))
}

// refusedOnLiveSystem lets Ironlot's agent look at the delivered system: it
// refuses, and the disks keep their tables.
func (s *stack) refusedOnLiveSystem() {
	s.t.Helper()
	agents, err := rescue.FindAgents(common.agents)
	require.NoError(s.t, err)
	dialer, err := rescue.NewDialer(rescue.Options{KeyFile: s.fleet.Path("id_ed25519"), Agents: agents})
	require.NoError(s.t, err)
	session, err := dialer.Connect(s.t.Context(), rescue.Target{Address: s.machine.Address(), Port: 2222, User: "ubuntu", Password: func(context.Context) (string, error) { return oldPassword, nil }})
	require.NoError(s.t, err)
	defer session.Close()
	require.NoError(s.t, session.EnsureAgent(s.t.Context()))
	inventory, err := session.Inspect(s.t.Context())
	require.NoError(s.t, err)
	require.False(s.t, inventory.Root.InRAM)
	require.Len(s.t, inventory.Root.Disks, 2, "root is an array over both")
	system, second := inventory.Disks[0].Identity(), inventory.Disks[1].Identity()
	_, err = session.StartJob(s.t.Context(), inventory.BootID, "live", api.JobSpec{
		Kind: api.DiskPrep, DiskPrep: &api.DiskPrepSpec{System: system, Secondary: []run.Disk{second}},
	})
	require.NoError(s.t, err)
	last, err := session.FollowJob(s.t.Context(), inventory.BootID, "live", func(api.JobStatus) {})
	require.NoError(s.t, err)
	require.NotNil(s.t, last.Error)
	require.Equal(s.t, fault.NeedsOperator, last.Error.Class)
	require.Contains(s.t, last.Error.Message, "the running system lies on the disk")
	for slot := 1; slot <= 2; slot++ {
		require.NoError(s.t, s.machine.EditDisk(slot, func(f layout.File, size int64) error {
			require.Len(s.t, layout.Read(f, size), 4)
			return nil
		}))
	}
}

// Failure 5, zeroed second disk: the firmware boots nothing any more.
func TestFailure5ZeroedSecondDisk(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Delivered: simulated.LVM})
	h := s.rescueByHand()
	h.release()
	h.write(h.disk(1))
	h.do("blkdiscard -z -f " + h.disk(2))
	h.reset()
	s.wait("the firmware to stop", func(state qemu.State, _ []qemu.Boot) bool { return state == qemu.NoBoot })
	number := s.rebootByHand(provider.BootNormal)
	s.console(number, "no boot signature on the disk in slot 2")
	number = s.rebootByHand(provider.BootRescue)
	s.console(number, "boot stopped") // not even rescue

	// Injected: a technician puts another empty, partitioned disk in.
	require.NoError(t, s.machine.EditDisk(2, func(f layout.File, size int64) error { return layout.Create(f, size, "new", nil) }))
	s.ready(func(n *run.Node) { n.Rescue.Fresh = true })
	require.NoError(t, s.machine.EditDisk(2, func(f layout.File, size int64) error {
		require.True(t, layout.HasBootSignature(f))
		require.Empty(t, layout.Read(f, size))
		return nil
	}))
}
