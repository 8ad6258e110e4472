package lab_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/lot"
	"github.com/ironlot/ironlot/internal/testenv"
)

// quick is a small and fast fleet on addresses of its own.
func quick(t *testing.T) lab.Options {
	t.Helper()
	return lab.Options{
		Dir:      filepath.Join(t.TempDir(), "lab"),
		Base:     fmt.Sprintf("127.%d.%d.0", 128+rand.IntN(64), rand.IntN(256)),
		Speed:    2000,
		Image:    images.Spec{Size: 32 * layout.MiB, Data: 8 * layout.MiB},
		DiskSize: 128 * layout.MiB,
	}
}

func start(t *testing.T, o lab.Options) *lab.Fleet {
	t.Helper()
	f, err := lab.NewFleet(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func TestAFleetIsReadyToUse(t *testing.T) {
	t.Parallel()
	o := quick(t)
	f := start(t, o)
	l, err := lot.Load(f.Path("lot.yaml"))
	require.NoError(t, err)
	require.True(t, l.Lab)
	require.Empty(t, l.Warnings)
	require.Len(t, l.Nodes, 3)
	for i, s := range f.Servers() {
		node := l.Nodes[i].Run
		require.Equal(t, s.ID, node.ServerID)
		require.Equal(t, s.Node, node.Name)
		require.Equal(t, 2222, node.Rescue.Port)
		require.Equal(t, s.Machine.Address(), s.Addresses[0])
		require.True(t, strings.HasPrefix(s.Machine.Address(), strings.TrimSuffix(o.Base, "0")))
		require.NoError(t, s.Machine.WaitState(testenv.Soon(t), simulated.InOS), "delivered and running")
	}
	require.Equal(t, f.Path("controlplane.yaml"), l.Nodes[0].Config)
	require.Equal(t, f.Path("worker.yaml"), l.Nodes[1].Config)

	resp, err := http.Get(l.Nodes[0].Run.Image.URL)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "simulated", resp.Header.Get("X-Ironlot-Lab"))
	require.Equal(t, f.Images().RawSHA256(), l.Nodes[0].Run.Image.RawSHA256)
}

func TestSecretsAreInPrivateFiles(t *testing.T) {
	t.Parallel()
	f := start(t, quick(t))
	for _, name := range []string{"id_ed25519", "talosconfig", "controlplane.yaml", "worker.yaml", "lab.env", "scw.yaml"} {
		info, err := os.Stat(f.Path(name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
	text, err := os.ReadFile(f.Path("lot.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "simulated")
	env, err := os.ReadFile(f.Path("lab.env"))
	require.NoError(t, err)
	for _, line := range f.Environment() {
		name, value, _ := strings.Cut(line, "=")
		require.Contains(t, string(env), "export "+name+"='"+value+"'\n")
	}
}

func TestALabStartsAgainInItsDirectoryAndInNoOther(t *testing.T) {
	t.Parallel()
	o := quick(t)
	o.Servers = 1
	f, err := lab.NewFleet(t.Context(), o)
	require.NoError(t, err)
	other := quick(t)
	other.Base = o.Base
	_, err = lab.NewFleet(t.Context(), other)
	require.ErrorContains(t, err, "in use", "two labs on one address")
	require.NoError(t, f.Close())
	require.NoDirExists(t, filepath.Join(o.Dir, "machines"))
	start(t, o)

	foreign := quick(t)
	require.NoError(t, os.MkdirAll(foreign.Dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(foreign.Dir, "lot.yaml"), []byte("mine"), 0o600))
	_, err = lab.NewFleet(t.Context(), foreign)
	require.ErrorContains(t, err, "not a lab's")
	kept, err := os.ReadFile(filepath.Join(foreign.Dir, "lot.yaml"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(kept))
	entries, err := os.ReadDir(foreign.Dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestBadOptions(t *testing.T) {
	t.Parallel()
	for says, change := range map[string]func(*lab.Options){
		"loopback":           func(o *lab.Options) { o.Base = "192.0.2.1" },
		"servers":            func(o *lab.Options) { o.Servers = 1001 },
		"negative":           func(o *lab.Options) { o.Speed = -1 },
		"too small":          func(o *lab.Options) { o.DiskSize = 1 },
		"image format":       func(o *lab.Options) { o.Format = "7z" },
		"deliver":            func(o *lab.Options) { o.Delivered = "windows" },
		"cannot hold":        func(o *lab.Options) { o.Image.Data = 1 << 40 },
		"directory":          func(o *lab.Options) { o.Dir = "" },
		"no fault":           func(o *lab.Options) { o.Faults = []lab.Fault{{Name: "meteor"}} },
		"not there":          func(o *lab.Options) { o.Faults = []lab.Fault{{Name: "slow-disk", Server: 9}} },
		"have their cluster": func(o *lab.Options) { o.Kit, o.Bootstrap = &qemu.Kit{}, true },
		"a Kubernetes API":   func(o *lab.Options) { o.Kit, o.Kubernetes = &qemu.Kit{}, true },
		"a private network":  func(o *lab.Options) { o.Kit, o.PrivateNetwork = &qemu.Kit{}, true },
		"strikes all":        func(o *lab.Options) { o.Faults = []lab.Fault{{Name: "image-html", Server: 1}} },
	} {
		o := quick(t)
		change(&o)
		_, err := lab.NewFleet(t.Context(), o)
		require.ErrorContains(t, err, says)
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err), says)
		if o.Dir != "" {
			require.NoDirExists(t, o.Dir, says)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for _, name := range lab.FaultNames() {
		f, err := lab.ParseFault(name)
		require.NoError(t, err)
		require.NotEmpty(t, lab.FaultHelp()[name])
		if !strings.HasPrefix(name, "image-") {
			f, err = lab.ParseFault(name + "@2")
			require.NoError(t, err)
			require.Equal(t, 2, f.Server)
		}
	}
	for _, bad := range []string{"", "meteor", "slow-disk@", "slow-disk@x", "slow-disk@0", "image-html@1"} {
		_, err := lab.ParseFault(bad)
		require.Error(t, err, bad)
	}

	o := quick(t)
	for _, name := range lab.FaultNames() {
		o.Faults = append(o.Faults, lab.Fault{Name: name})
	}
	start(t, o) // every fault can be set

	o = quick(t)
	o.Faults = []lab.Fault{{Name: "no-signature", Server: 2}}
	f := start(t, o)
	require.NoError(t, f.Servers()[0].Machine.WaitState(testenv.Soon(t), simulated.InOS))
	require.NoError(t, f.Servers()[1].Machine.WaitState(testenv.Soon(t), simulated.NoBoot))
}
