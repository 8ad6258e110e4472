package activities

import (
	"net/http/httptest"
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

// TestStateThatNobodyAskedFor: an agent that did with STATE something else
// than this worker wanted is of another version.
func TestStateThatNobodyAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *simulated.Options) {
		o.Disks = []simulated.DiskSpec{{Serial: "LAB-A", Size: 512 * layout.MiB}, {Serial: "LAB-B", Size: 512 * layout.MiB}}
	})
	server, err := images.New(t.TempDir(), images.Spec{Size: imageSize, Data: layout.MiB})
	require.NoError(t, err)
	web := httptest.NewServer(server.Handler())
	t.Cleanup(web.Close)
	b.in.Node.Image = run.Image{URL: web.URL + "/" + images.Raw.FileName()}
	b.in.Facts.System, b.in.Facts.Secondary = &run.Disk{Serial: "LAB-A"}, []run.Disk{{Serial: "LAB-B"}}
	b.in.Key = "disk-prep"
	_, err = attempt(t, b.Activities, b.diskPrep, b.in, time.Minute)
	require.NoError(t, err)
	b.in.Key = "stage"
	out, err := attempt(t, b.Activities, b.stage, b.in, time.Minute)
	require.NoError(t, err)
	b.in.Facts.Staged, b.in.Key = out.Facts.Staged, "write"

	b.begin(t, api.JobSpec{Kind: api.Write, Write: &api.WriteSpec{
		System: *b.in.Facts.System, DataSHA256: out.Facts.Staged.DataSHA256, RawSize: out.Facts.Staged.RawSize,
		State: &api.StateSpec{Config: []byte("machine: {}\n")},
	}}, "no step is called so")
	_, err = attempt(t, b.Activities, b.write, b.in, time.Minute)
	require.EqualError(t, err, "the agent on server em-1 did not do with STATE what it was told; use a worker and an agent of one version, then `starter retry LOT NODE --from stage`")
	require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
}
