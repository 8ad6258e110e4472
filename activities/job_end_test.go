package activities

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/run"
)

// silentImage is the address of an image whose server goes silent, in the
// middle or before it has said a word.
func silentImage(t *testing.T, served int64) (url string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "raw")
	require.NoError(t, images.Build(path, images.Spec{Size: imageSize, Data: layout.MiB}))
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if served > 0 {
			w.Header().Set("Content-Length", strconv.Itoa(len(raw)))
			_, _ = w.Write(raw[:served])
			_ = http.NewResponseController(w).Flush()
		}
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}))
	t.Cleanup(func() { close(over); server.Close() })
	return server.URL
}

const imageSize = 16 * layout.MiB

// TestJobOverItsTime is stopped on the machine, and a person reads how far it
// came.
func TestJobOverItsTime(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		served          int64
		step, want, log string
	}{
		"in the middle": {imageSize / 2, "download the image", `"download the image"`, "serves 16777216 bytes, format raw"},
		"at its start":  {0, "", "its start", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.in.Node.Image = run.Image{URL: silentImage(t, c.served)}
			b.begin(t, api.JobSpec{Kind: api.Stage, Stage: &api.StageSpec{Image: b.in.Node.Image}}, c.step)
			_, err := attempt(t, b.Activities, b.stage, b.in, time.Second)
			require.EqualError(t, err, "stage on server em-1 was still at "+c.want+" when its time was up; "+
				"look at the log's end, raise the lot's timeout for this phase if the machine is just slow, then retry")
			require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
			f, _ := fault.As(err)
			require.Contains(t, f.Tail, c.log)
			status, err := b.session(t).JobStatus(t.Context(), b.in.Facts.Rescue.BootID, jobKey(b.in, 1))
			require.NoError(t, err)
			require.Equal(t, api.JobCanceled, status.State)
		})
	}
}

// TestJobThatCannotBeStopped: a person is told that it may still run.
func TestJobThatCannotBeStopped(t *testing.T) {
	t.Parallel()
	thaw := make(chan struct{})
	b := newBench(t, func(o *simulated.Options) {
		o.Hold = func(point string) {
			if point == "inspect" {
				<-thaw
			}
		}
	})
	t.Cleanup(func() { close(thaw) })
	b.in.Facts.System = &run.Disk{Serial: "LAB-A"}
	spec := prepSpec(b.in.Facts)
	b.begin(t, api.JobSpec{Kind: api.DiskPrep, DiskPrep: &spec}, "looking at the disks")
	told := make(chan error, 1)
	go func() {
		_, err := attempt(t, b.Activities, b.diskPrep, b.in, time.Second)
		told <- err
	}()
	require.Eventually(t, func() bool {
		return slices.ContainsFunc(b.machine.Boots()[0].Commands, func(c string) bool { return strings.Contains(c, " job cancel ") })
	}, time.Minute, 10*time.Millisecond, "the job is told to stop")
	b.machine.CutConnections()
	err := <-told
	require.ErrorContains(t, err, "disk-prep on server em-1 was still at \"looking at the disks\" when its time was up, and could not be stopped: the SSH connection to "+
		b.machine.Address()+":2222 broke during agent job cancel")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
}

// TestJobsOfAnotherKind: an answer without what the phase wants is none.
func TestJobsOfAnotherKind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.in.Facts.System, b.in.Facts.Staged = &run.Disk{Serial: "LAB-A"}, &run.Staged{}
	b.begin(t, api.JobSpec{Kind: api.DiskPrep, DiskPrep: &api.DiskPrepSpec{
		System: run.Disk{Serial: "LAB-A"}, Secondary: []run.Disk{{Serial: "LAB-B"}},
	}}, "no step is called so")
	for want, do := range map[string]phaseFunc{
		"the stage job on server em-1 brought no facts": b.stage,
		"the write job on server em-1 brought no facts": b.write,
	} {
		_, err := attempt(t, b.Activities, do, b.in, time.Minute)
		require.EqualError(t, err, want)
		require.Equal(t, fault.Transient, fault.ClassOf(err))
	}
}

// TestStopJob: what an abort leaves behind on the machine.
func TestStopJob(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	stop := func() string {
		out, err := attempt(t, b.Activities, b.stopJob, b.in, time.Minute)
		require.NoError(t, err)
		return out.Summary
	}
	require.Equal(t, "no job was running", stop())
	b.begin(t, api.JobSpec{Kind: api.Stage, Stage: &api.StageSpec{Image: run.Image{URL: silentImage(t, imageSize/2)}}}, "download the image")
	require.Equal(t, "job stopped", stop())
	require.NoError(t, b.machine.PowerOff())
	b.in.Node.Timeouts.Unreachable = time.Nanosecond
	_, err := attempt(t, b.Activities, b.stopJob, b.in, time.Minute)
	require.ErrorContains(t, err, "server em-1 has not answered SSH for 0s: SSH at "+b.machine.Address()+":2222 is not answering: ", "it may be out of reach, and still at work")
	require.Equal(t, fault.RescueLost, fault.ClassOf(err))
	before := b.in.Facts
	b.boot(t)
	b.in.Facts = before
	require.Equal(t, "the boot is gone, and the job with it", stop())
}
