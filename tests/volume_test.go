package tests

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/run"
)

// TestSecondDiskForLonghorn: the patch of the examples. Its selector fits the
// second disk of the machine, which is left blank for Talos.
func TestSecondDiskForLonghorn(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1, SwapNames: true})
	s.startWorker()
	in := s.inputs(nil)[0]
	s.patch(&in, longhorn(t))
	status := s.result(s.startNode(in))
	require.Equal(t, run.Ready, status.State, "%+v", status.Problem)
	require.Equal(t, []run.UserVolume{{Name: "longhorn", Match: "!system_disk", MinSize: 1 << 30}}, status.Facts.Preflight.Volumes)
	require.Equal(t, "LAB0001A", status.Facts.System.Serial)
	require.Contains(t, status.Facts.Prepared.Blanked, "LAB0001B")
}

// TestVolumeWithoutADisk: nothing is erased on a server without such a disk.
func TestVolumeWithoutADisk(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 1})
	s.startWorker()
	in := s.inputs(nil)[0]
	s.patch(&in, strings.Replace(longhorn(t), "1GiB", "3GiB", 1))
	r := s.startNode(in)
	status := s.waitFor(r.GetID(), run.Stuck, run.WaitSSH)
	require.Contains(t, status.Problem.Message, "no disk of server lab-1 fits the user volume longhorn (!system_disk, at least 3 GiB): LAB0001A, ")
	require.Contains(t, status.Problem.Erased, "nothing")
	s.abort(r.GetID())
}

func longhorn(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("examples/longhorn.yaml")
	require.NoError(t, err)
	return string(data)
}
