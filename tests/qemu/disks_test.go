package qemu

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/lab/state"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/talos"
)

// wrongDigest stops a run in stage, behind disk-prep.
const wrongDigest = "00000000000000000000000000000000000000000000000000000000000000ff"

// Failure 5, RAID members hold the disks: a plain wipefs fails, a forced one
// leaves arrays that come back; Ironlot releases them for good. On every
// shape that the provider delivers, and on NVMe.
func TestFailure5RAID(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]lab.Options{
		"raid1":    {Delivered: simulated.RAID1},
		"lvm":      {Delivered: simulated.LVM},
		"many":     {Delivered: simulated.Delivered(qemu.Many)},
		"lvm-nvme": {Delivered: simulated.LVM, NVMe: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t, o)
			h := s.rescueByHand()
			require.Contains(t, h.do("cat /proc/mdstat"), "md127", "the names are not those of the delivery")
			// Swap on an array, and a filesystem: what is in use.
			h.do("swapon -L labswap; mount /dev/disk/by-label/labboot /mnt")
			out, err := h.try("wipefs -a " + h.disk(2))
			require.Error(t, err)
			require.Contains(t, out, "busy")
			if name == "raid1" {
				h = s.arraysComeBack(h)
			}

			s.stuck(run.Stage, func(n *run.Node) { n.Image.RawSHA256 = wrongDigest })
			s.released(h)
			number := len(s.machine.Boots())
			h.reset() // into rescue again
			s.console(number+1, "rescue is up")
			s.released(s.login(h.client.User(), h.password))
		})
	}
}

// arraysComeBack clears the second disk's table by force and reboots: the
// arrays are there again, and make an ex-member of the disk.
func (s *stack) arraysComeBack(h *hand) *hand {
	h.do("sgdisk --backup=/dev/shm/table " + h.disk(2) + "; wipefs -af " + h.disk(2) + "; sgdisk --load-backup=/dev/shm/table " + h.disk(2))
	// An ex-member keeps its superblock.
	h.do("umount /mnt; swapoff -a; mdadm /dev/disk/by-id/md-name-delivered:swap --fail " + partition(h.disk(2), 3) + " --remove failed")
	h.do("mdadm --examine " + partition(h.disk(2), 3))
	h = s.rescueByHand()
	require.Contains(s.t, h.do("cat /proc/mdstat"), "active raid1", "the arrays came back")
	return h
}

func partition(disk string, n int) string {
	if strings.Contains(disk, "nvme") {
		disk += "p"
	}
	return disk + string(rune('0'+n))
}

// released wants no holder and no superblock, on the disks and behind them.
func (s *stack) released(h *hand) {
	s.t.Helper()
	require.NotContains(s.t, h.do("cat /proc/mdstat"), "active")
	require.Empty(s.t, strings.TrimSpace(h.do("dmsetup ls | grep -v 'No devices' || true")))
	require.NotContains(s.t, h.do("cat /proc/swaps"), "partition")
	for slot := 1; slot <= 2; slot++ {
		device := h.disk(slot)
		require.NotContains(s.t, h.do("lsblk -n -o TYPE "+device), "part")
		require.NotContains(s.t, h.do("wipefs "+device), "raid")
		// Superblocks of the old partitions would show to a new table.
		scan := h.do("for s in 2048 4096 135168 200704 266240; do o=$((s*512)); for m in $((o+4096)) $o; do dd if=" + device +
			" bs=1 skip=$m count=4 status=none | od -An -tx4; done; done")
		require.NotContains(s.t, scan, "a92b4efc", "an md superblock is left")
	}
}

// Failure 5, Talos on both disks, each booted once: two EPHEMERALs, and a
// kubelet that crashes.
func TestFailure5TalosOnBothDisks(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{})
	h := s.rescueByHand()
	h.release()
	h.write(h.disk(1))
	h.write(h.disk(2))
	require.NoError(t, s.machine.PowerOff())
	for slot := 1; slot <= 2; slot++ { // what a boot from that disk alone makes
		require.NoError(t, s.machine.EditDisk(slot, func(f layout.File, size int64) error {
			alone := &state.Store{Disks: func() ([]state.Disk, error) { return []state.Disk{{File: f, Size: size}}, nil }}
			return alone.Save([]byte(s.plainConfig()))
		}))
	}
	number := s.rebootByHand(provider.BootNormal)
	s.console(number, "machine config loaded successfully")
	s.console(number, "kubelet exited")
	require.False(t, s.printed(number, "node is Ready"))

	s.ready(func(n *run.Node) { n.Reprovision, n.Rescue.Fresh = true, true })
	require.NoError(t, s.machine.EditDisk(2, func(f layout.File, size int64) error {
		require.Empty(t, layout.Read(f, size))
		return nil
	}))
}

// Failure 5, a stale STATE on the second disk takes the node over.
func TestFailure5StaleState(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Delivered: simulated.Delivered(qemu.Many)})
	h := s.rescueByHand()
	h.release()
	h.write(h.disk(1))
	require.NoError(t, s.machine.PowerOff())
	require.NoError(t, s.machine.PutStaleState(2, s.fleet.Cluster().Worker))
	number := s.rebootByHand(provider.BootNormal)
	s.console(number, "machine config loaded successfully")
	require.False(t, s.printed(number, "in maintenance"), "the new config was never asked for")

	status := s.ready(func(n *run.Node) { n.Reprovision, n.Rescue.Fresh = true, true })
	require.Equal(t, s.node().Node.Name, status.Facts.Ready.NodeName)
}

// Failure 6: a VLAN that is not the server's. The node never joins; preflight
// refuses it and touches nothing.
func TestFailure6VLAN(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{})
	s.machine.SetTalos(func(n *qemu.TalosSettings) { n.CheckVLANs = true })
	good := s.patch("")
	s.patch(good + "  network:\n    interfaces:\n      - interface: eth0\n        dhcp: true\n        vlans:\n          - vlanId: 1234\n            dhcp: true\n")
	h := s.rescueByHand()
	h.release()
	h.write(h.disk(1))
	require.NoError(t, s.machine.PowerOff())
	require.NoError(t, s.machine.EditDisk(2, func(f layout.File, size int64) error { return layout.Create(f, size, "blank", nil) }))
	number := s.rebootByHand(provider.BootNormal)
	s.console(number, "in maintenance")
	s.applyByHand(s.plainConfig())
	s.console(number, "no way to the control plane")

	require.NoError(t, s.machine.PowerOff())
	before := s.digests()
	s.stuck(run.Preflight, nil)
	require.Equal(t, before, s.digests())
	s.abort()
	s.patch(good)
	s.ready(func(n *run.Node) { n.Reprovision = true })
}

// applyByHand gives the node in maintenance a config, as talosctl would. Only
// an answer that was lost, or a node that is not there yet, is asked again.
func (s *stack) applyByHand(config string) {
	s.t.Helper()
	s.eventually("the config is taken", func() bool {
		outcome, err := talos.Apply(s.t.Context(), s.machine.Address()+":50000", []byte(config))
		if err != nil {
			s.t.Logf("by hand: apply-config: %s: %v", outcome, err)
			require.NotEqual(s.t, fault.NeedsOperator, fault.ClassOf(err))
		}
		return err == nil || talos.AlreadyConfigured(err)
	})
}

// digests are those of both disks.
func (s *stack) digests() [2]string {
	s.t.Helper()
	var all [2]string
	for slot := range all {
		var err error
		all[slot], err = s.machine.Digest(slot+1, 1<<62)
		require.NoError(s.t, err)
	}
	return all
}
