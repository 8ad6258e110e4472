package rescue_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/rescue"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/testenv"
)

// ready is a session with the agent in place.
func (b *bench) ready(t *testing.T) (*rescue.Session, api.Inventory) {
	t.Helper()
	s := b.connect(t, b.target())
	require.NoError(t, s.EnsureAgent(t.Context()))
	inventory, err := s.Inspect(t.Context())
	require.NoError(t, err)
	return s, inventory
}

// begin starts a job. The one before may still be giving the machine back,
// which is Transient.
func begin(t *testing.T, s *rescue.Session, bootID, key string, spec api.JobSpec) api.JobStatus {
	t.Helper()
	for {
		status, err := s.StartJob(t.Context(), bootID, key, spec)
		if err == nil {
			return status
		}
		require.Equal(t, fault.Transient, fault.ClassOf(err), err)
	}
}

// finish starts a job and follows it to its end.
func finish(t *testing.T, s *rescue.Session, bootID string, spec api.JobSpec) api.JobResult {
	t.Helper()
	key := string(spec.Kind) + "-1"
	require.False(t, begin(t, s, bootID, key, spec).Attached)
	seen := 0
	last, err := s.FollowJob(t.Context(), bootID, key, func(api.JobStatus) { seen++ })
	require.NoError(t, err)
	require.Nil(t, last.Error)
	require.Equal(t, api.JobSucceeded, last.State)
	require.NotZero(t, seen)
	return *last.Result
}

func serveImage(t *testing.T, spec images.Spec) (*images.Server, run.Image) {
	t.Helper()
	server, err := images.New(t.TempDir(), spec)
	require.NoError(t, err)
	web := httptest.NewServer(server.Handler())
	t.Cleanup(web.Close)
	file, err := server.File(images.Zstd)
	require.NoError(t, err)
	return server, run.Image{URL: web.URL + "/" + images.Zstd.FileName(), SHA256: file.SHA256, RawSHA256: server.RawSHA256()}
}

func TestFromADeliveredMachineToTalos(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *simulated.Options) { o.Delivered = simulated.LVM })
	_, image := serveImage(t, images.Spec{Size: 32 * layout.MiB, Data: 4 * layout.MiB})
	b.bootRescue(t)
	s, inventory := b.ready(t)
	system, second := inventory.Disks[0].Identity(), inventory.Disks[1].Identity()

	prepared := finish(t, s, inventory.BootID, api.JobSpec{Kind: api.DiskPrep,
		DiskPrep: &api.DiskPrepSpec{System: system, Secondary: []run.Disk{second}}})
	require.Len(t, prepared.DiskPrep.Blanked, 2)
	staged := finish(t, s, inventory.BootID, api.JobSpec{Kind: api.Stage, Stage: &api.StageSpec{Image: image}}).Stage
	require.Equal(t, image.RawSHA256, staged.RawSHA256)
	written := finish(t, s, inventory.BootID, api.JobSpec{Kind: api.Write,
		Write: &api.WriteSpec{System: system, DataSHA256: staged.DataSHA256, RawSize: staged.RawSize}}).Write
	require.EqualValues(t, 32*layout.MiB, written.BytesVerified)

	require.NoError(t, s.Reset(t.Context(), inventory.BootID))
	require.Eventually(t, func() bool { return len(b.machine.Boots()) == 2 }, 10*time.Second, time.Millisecond)
	require.NoError(t, b.machine.WaitState(testenv.Soon(t), simulated.InRescue), "the boot type is still rescue")
	require.NoError(t, b.machine.PowerOn(hardware.BootNormal, hardware.Rescue{}))
	require.NoError(t, b.machine.WaitState(testenv.Soon(t), simulated.InTalos))
}

func TestAJobOutlivesItsConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server, image := serveImage(t, images.Spec{Size: 16 * layout.MiB, Data: 4 * layout.MiB})
	server.SetFaults(images.Faults{BytesPerSecond: 2 << 20})
	b.bootRescue(t)
	s, inventory := b.ready(t)
	spec := api.JobSpec{Kind: api.Stage, Stage: &api.StageSpec{Image: image}}
	_, err := s.StartJob(t.Context(), inventory.BootID, "stage-1", spec)
	require.NoError(t, err)

	_, err = s.FollowJob(t.Context(), inventory.BootID, "stage-1", func(api.JobStatus) {
		b.machine.SetFaults(simulated.Faults{DropSSHAfter: 1}) // at the next byte
	})
	require.ErrorIs(t, err, rescue.ErrTransport)
	require.Equal(t, fault.Transient, fault.ClassOf(err))

	again, _ := b.ready(t)
	attached, err := again.StartJob(t.Context(), inventory.BootID, "stage-1", spec)
	require.NoError(t, err)
	require.True(t, attached.Attached)
	last, err := again.FollowJob(t.Context(), inventory.BootID, "stage-1", func(api.JobStatus) {})
	require.NoError(t, err)
	require.Equal(t, api.JobSucceeded, last.State)
	require.Len(t, server.Requests(), 1, "the image is downloaded once")

	status, err := again.JobStatus(t.Context(), inventory.BootID, "stage-1")
	require.NoError(t, err)
	require.Equal(t, last.Result, status.Result)
}

func TestAJobIsCanceled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server, image := serveImage(t, images.Spec{Size: 16 * layout.MiB, Data: 8 * layout.MiB})
	server.SetFaults(images.Faults{BytesPerSecond: 1 << 16})
	b.bootRescue(t)
	s, inventory := b.ready(t)
	_, err := s.StartJob(t.Context(), inventory.BootID, "k", api.JobSpec{Kind: api.Stage, Stage: &api.StageSpec{Image: image}})
	require.NoError(t, err)
	status, err := s.CancelJob(t.Context(), inventory.BootID, "k")
	require.NoError(t, err)
	require.Equal(t, api.JobCanceled, status.State)
	last, err := s.FollowJob(t.Context(), inventory.BootID, "k", func(api.JobStatus) {})
	require.NoError(t, err)
	require.Equal(t, api.JobCanceled, last.State)
}

func TestCallsForAnotherBootAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.bootRescue(t)
	_, before := b.ready(t)
	b.bootRescue(t)
	s, _ := b.ready(t)
	disk := before.Disks[0].Identity()
	_, err := s.StartJob(t.Context(), before.BootID, "k", api.JobSpec{Kind: api.DiskPrep, DiskPrep: &api.DiskPrepSpec{System: disk}})
	require.Equal(t, fault.RescueLost, fault.ClassOf(err))
	_, err = s.FollowJob(t.Context(), before.BootID, "k", func(api.JobStatus) {})
	require.Equal(t, fault.RescueLost, fault.ClassOf(err))
	_, err = s.JobStatus(t.Context(), before.BootID, "k")
	require.Equal(t, fault.RescueLost, fault.ClassOf(err))
	require.Equal(t, fault.RescueLost, fault.ClassOf(s.Reset(t.Context(), before.BootID)))
	require.Len(t, b.machine.Boots(), 2, "nothing was reset")
	for _, boot := range b.machine.Boots() {
		for _, count := range boot.Disks {
			require.Zero(t, count.Opens+count.Refused, "no disk was opened to write")
		}
	}
}

func TestAResetMidWriteLosesTheBoot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, image := serveImage(t, images.Spec{Size: 32 * layout.MiB, Data: 16 * layout.MiB})
	b.bootRescue(t)
	s, inventory := b.ready(t)
	system, second := inventory.Disks[0].Identity(), inventory.Disks[1].Identity()
	finish(t, s, inventory.BootID, api.JobSpec{Kind: api.DiskPrep, DiskPrep: &api.DiskPrepSpec{System: system, Secondary: []run.Disk{second}}})
	staged := finish(t, s, inventory.BootID, api.JobSpec{Kind: api.Stage, Stage: &api.StageSpec{Image: image}}).Stage

	// So slow that the job is followed when the machine resets itself.
	b.machine.SetFaults(simulated.Faults{ResetAfterWrite: 8 * layout.MiB, BytesPerSecond: 64 * layout.MiB})
	begin(t, s, inventory.BootID, "w", api.JobSpec{Kind: api.Write,
		Write: &api.WriteSpec{System: system, DataSHA256: staged.DataSHA256, RawSize: staged.RawSize}})
	_, err := s.FollowJob(t.Context(), inventory.BootID, "w", func(api.JobStatus) {})
	require.ErrorIs(t, err, rescue.ErrTransport)

	require.Eventually(t, func() bool { return len(b.machine.Boots()) == 2 }, 10*time.Second, time.Millisecond)
	require.NoError(t, b.machine.WaitState(testenv.Soon(t), simulated.InRescue))
	pinned := b.target()
	pinned.HostKey = s.HostKey()
	_, err = b.dialer.Connect(t.Context(), pinned)
	require.ErrorIs(t, err, rescue.ErrHostKey)
	require.Zero(t, b.machine.Boots()[1].Disks[0], "the new boot has no writer")
}

func TestAnArrayOverAKeptDiskIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.bootRescue(t)
	s, inventory := b.ready(t)
	disk := inventory.Disks[0].Identity()
	spec := api.JobSpec{Kind: api.DiskPrep, DiskPrep: &api.DiskPrepSpec{System: disk}}
	status, err := s.StartJob(t.Context(), inventory.BootID, "k", spec)
	require.NoError(t, err)
	last, err := s.FollowJob(t.Context(), inventory.BootID, status.Key, func(api.JobStatus) {})
	require.NoError(t, err)
	require.Equal(t, api.JobFailed, last.State, "an array spans the disk that is kept")
	require.Equal(t, fault.NeedsOperator, last.Error.Class)
	for _, count := range b.machine.Boots()[0].Disks {
		require.Zero(t, count.BytesWritten+count.BytesZeroed)
	}
}
