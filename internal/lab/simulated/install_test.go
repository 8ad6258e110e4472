package simulated

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/prep"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/agent/stage"
	agentwrite "github.com/ironlot/ironlot/internal/agent/write"
	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/testenv"
)

// rescued is a machine in rescue with prepared disks and a staged image.
func rescued(t *testing.T) (*Machine, *rescueHost, *images.Server, api.WriteSpec) {
	t.Helper()
	m := newMachine(t, func(o *Options) { o.Delivered = RAID1 })
	server, err := images.New(t.TempDir(), images.Spec{Size: imageSize, Data: 4 * layout.MiB})
	require.NoError(t, err)
	web := httptest.NewServer(server.Handler())
	t.Cleanup(web.Close)
	file, err := server.File(images.Zstd)
	require.NoError(t, err)

	bootAs(t, m, hardware.BootRescue, InRescue)
	h := &rescueHost{b: m.boot, root: true}
	_, err = prep.Run(t.Context(), h, api.DiskPrepSpec{System: identity(m, 1), Secondary: []run.Disk{identity(m, 2)}}, report.Discard{})
	require.NoError(t, err)
	staged, err := stage.Run(t.Context(), h, api.StageSpec{Image: run.Image{
		URL: web.URL + "/" + images.Zstd.FileName(), SHA256: file.SHA256, RawSHA256: server.RawSHA256(),
	}}, report.Discard{})
	require.NoError(t, err)
	return m, h, server, api.WriteSpec{System: identity(m, 1), DataSHA256: staged.DataSHA256, RawSize: staged.RawSize}
}

func TestTheAgentInstallsAnImageThatBoots(t *testing.T) {
	t.Parallel()
	m, h, server, spec := rescued(t)
	done, err := agentwrite.Run(t.Context(), h, spec, report.Discard{})
	require.NoError(t, err)
	require.Equal(t, "discard", done.ZeroMethod)
	require.Less(t, done.BytesWritten, int64(imageSize/2), "zeros are not written")

	f, err := os.Open(m.DiskPath(1))
	require.NoError(t, err)
	defer f.Close()
	sum := sha256.New()
	_, err = io.CopyN(sum, f, imageSize)
	require.NoError(t, err)
	require.Equal(t, server.RawSHA256(), hex.EncodeToString(sum.Sum(nil)))

	bootAs(t, m, hardware.BootNormal, InTalos)
}

// A machine that resets itself in the middle of the write still boots rescue,
// and does not boot half of a Talos.
func TestAHalfWrittenDiskIsNoTalos(t *testing.T) {
	t.Parallel()
	m, h, _, spec := rescued(t)
	m.SetFaults(Faults{ResetAfterWrite: 2 * layout.MiB})
	first := m.boot
	_, err := agentwrite.Run(t.Context(), h, spec, report.Discard{})
	require.Error(t, err)
	<-first.done
	require.NoError(t, m.WaitState(testenv.Soon(t), InRescue), "the firmware still finds its signatures")
	bootAs(t, m, hardware.BootNormal, NoBoot)
}
