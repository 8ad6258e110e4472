package talos_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/talos"
)

var sharedCluster = sync.OnceValues(func() (*talosnode.Cluster, error) {
	return talosnode.NewCluster("lab", "https://192.0.2.10:6443")
})

func cluster(t testing.TB) *talosnode.Cluster {
	t.Helper()
	c, err := sharedCluster()
	require.NoError(t, err)
	return c
}

func worker(t testing.TB) talos.Named {
	return talos.Named{Name: "worker.yaml", Data: cluster(t).Worker}
}

func patch(name, data string) talos.Named { return talos.Named{Name: name, Data: []byte(data)} }

// legacy is a config as Talos 1.11 and older made it: a single document.
func legacy(t testing.TB) talos.Named {
	t.Helper()
	first, _, found := bytes.Cut(cluster(t).Worker, []byte("---\n"))
	require.True(t, found)
	return talos.Named{Name: "legacy.yaml", Data: first}
}

func TestRenderPlain(t *testing.T) {
	t.Parallel()
	r, err := talos.Render(talos.RenderInput{Base: worker(t), Hostname: "node-1"})
	require.NoError(t, err)
	require.Equal(t, "worker", r.MachineType)
	require.Equal(t, "node-1", r.Hostname)
	require.Equal(t, "https://192.0.2.10:6443", r.Endpoint)
	require.Len(t, r.CAFingerprint, 64)
	require.Len(t, r.SHA256, 64)
	require.Empty(t, r.VLANs)
	require.Empty(t, r.Warnings)
	require.Contains(t, string(r.Bytes), "kind: HostnameConfig\nauto: 'off'\nhostname: node-1\n")

	again, err := talos.Inspect(talos.Named{Name: "again", Data: r.Bytes})
	require.NoError(t, err)
	require.Equal(t, r.SHA256, again.SHA256, "the digest does not depend on the way")

	control, err := talos.Render(talos.RenderInput{Base: talos.Named{Name: "cp.yaml", Data: cluster(t).ControlPlane}})
	require.NoError(t, err)
	require.Equal(t, "controlplane", control.MachineType)
	require.Equal(t, "lab", control.ClusterName)
	require.Equal(t, r.CAFingerprint, control.CAFingerprint)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, "machine config "+r.SHA256, fmt.Sprintf(verb, r), "printing shows no content")
	}
}

func TestDigestIgnoresForm(t *testing.T) {
	t.Parallel()
	commented := append([]byte("# a comment\n"), cluster(t).Worker...)
	a, err := talos.Inspect(talos.Named{Name: "a", Data: commented})
	require.NoError(t, err)
	b, err := talos.Inspect(worker(t))
	require.NoError(t, err)
	require.Equal(t, b.SHA256, a.SHA256)
	require.NotEqual(t, b.Bytes, a.Bytes)
}

func TestPatches(t *testing.T) {
	t.Parallel()
	r, err := talos.Render(talos.RenderInput{Base: worker(t), Patches: []talos.Named{
		patch("first.yaml", "machine:\n  sysctls:\n    vm.swappiness: \"1\"\n"),
		patch("second.yaml", "machine:\n  sysctls:\n    vm.swappiness: \"2\"\n"),
		patch("volume.yaml", "apiVersion: v1alpha1\nkind: UserVolumeConfig\nname: longhorn\nprovisioning:\n  diskSelector:\n    match: \"!system_disk\"\n  minSize: 1GiB\n"),
		patch("delete.yaml", "apiVersion: v1alpha1\nkind: HostnameConfig\n$patch: delete\n"),
	}})
	require.NoError(t, err)
	require.Contains(t, string(r.Bytes), `vm.swappiness: "2"`, "the last one wins")
	require.Contains(t, string(r.Bytes), "name: longhorn")
	require.NotContains(t, string(r.Bytes), "HostnameConfig")

	r, err = talos.Render(talos.RenderInput{Base: legacy(t), Hostname: "node-1", Patches: []talos.Named{
		patch("json.yaml", "- op: add\n  path: /machine/sysctls\n  value:\n    vm.swappiness: \"3\"\n"),
		patch("json.json", `[{"op":"replace","path":"/machine/sysctls/vm.swappiness","value":"4"}]`),
	}})
	require.NoError(t, err)
	require.Contains(t, string(r.Bytes), `vm.swappiness: "4"`)
	require.Equal(t, "node-1", r.Hostname, "without a HostnameConfig the older field names the node")
}

func TestHostnames(t *testing.T) {
	t.Parallel()
	doc := "apiVersion: v1alpha1\nkind: HostnameConfig\nauto: off\nhostname: "
	field := "machine:\n  network:\n    hostname: "
	for name, tc := range map[string]struct {
		base  talos.Named
		patch string
		want  string // hostname, or the error
		fails bool
	}{
		"same in the document":     {worker(t), doc + "node-1\n", "node-1", false},
		"longer in the document":   {worker(t), doc + "node-1.example.org\n", "node-1.example.org", false},
		"other in the document":    {worker(t), doc + "node-2\n", `HostnameConfig names the node "node-2", but the lot names it "node-1"`, true},
		"same in the older field":  {worker(t), field + "node-1\n", "node-1", false},
		"other in the older field": {worker(t), field + "node-10\n", `machine.network.hostname names the node "node-10"`, true},
		"older config":             {legacy(t), field + "node-1.example.org\n", "node-1.example.org", false},
	} {
		r, err := talos.Render(talos.RenderInput{Base: tc.base, Patches: []talos.Named{patch("host.yaml", tc.patch)}, Hostname: "node-1"})
		if tc.fails {
			require.ErrorContains(t, err, tc.want, name)
			require.ErrorContains(t, err, "host.yaml", name)
			continue
		}
		require.NoError(t, err, name)
		require.Equal(t, tc.want, r.Hostname, name)
	}
	// Without a name of the lot the config decides, also wrongly.
	_, err := talos.Render(talos.RenderInput{Base: worker(t), Patches: []talos.Named{patch("host.yaml", field+"a\n")}})
	require.ErrorContains(t, err, "static hostname is already set")
}

func TestVLANsAndWarnings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		patch    string
		vlans    []uint32
		warnings []string
	}{
		"lone VLANConfig": {
			"apiVersion: v1alpha1\nkind: VLANConfig\nname: eno1.200\nvlanID: 200\nparent: eno1\n",
			[]uint32{200}, []string{"turn off default DHCP and give no address"},
		},
		"VLANConfig with its address": {
			"apiVersion: v1alpha1\nkind: VLANConfig\nname: eno1.200\nvlanID: 200\nparent: eno1\naddresses:\n- address: 10.0.0.2/24\n",
			[]uint32{200}, []string{"make sure that the public interface has its address"},
		},
		"VLANConfig and DHCP": {
			"apiVersion: v1alpha1\nkind: VLANConfig\nname: eno1.200\nvlanID: 200\nparent: eno1\n---\napiVersion: v1alpha1\nkind: DHCPv4Config\nname: eno1\n",
			[]uint32{200}, nil,
		},
		"older form": {
			"machine:\n  network:\n    interfaces:\n    - interface: eno1\n      vlans:\n      - vlanId: 300\n        dhcp: true\n      - vlanId: 100\n        dhcp: true\n",
			[]uint32{100, 300}, []string{"eno1 has VLANs but neither dhcp nor addresses"},
		},
		"install": {
			"machine:\n  install:\n    disk: /dev/sda\n    wipe: true\n",
			nil, []string{"machine.install.disk (/dev/sda) is not used", "machine.install.wipe is not used"},
		},
		"disks": {
			"machine:\n  disks:\n  - device: /dev/sdb\n    partitions:\n    - mountpoint: /var/mnt/x\n",
			nil, []string{"machine.disks names /dev/sdb"},
		},
		"endpoint": {
			"cluster:\n  controlPlane:\n    endpoint: https://127.0.0.1:6443\n",
			nil, []string{"no other machine reaches"},
		},
	} {
		r, err := talos.Render(talos.RenderInput{Base: worker(t), Patches: []talos.Named{patch("p.yaml", tc.patch)}})
		require.NoError(t, err, name)
		require.Equal(t, tc.vlans, r.VLANs, name)
		require.Len(t, r.Warnings, len(tc.warnings), "%s: %q", name, r.Warnings)
		for i, want := range tc.warnings {
			require.Contains(t, r.Warnings[i], want, name)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   talos.RenderInput
		want []string // one error each
	}{
		"several files": {
			talos.RenderInput{Base: patch("base.yaml", "machine: ["), Patches: []talos.Named{
				patch("a.yaml", ""), patch("b.yaml", "# only a comment\n"), patch("c.yaml", "machine:\n  nonsense: 1\n"),
			}},
			[]string{"base.yaml is not a machine config", "a.yaml is empty", "b.yaml is empty", "c.yaml is neither"},
		},
		"empty base":   {talos.RenderInput{Base: patch("base.yaml", "")}, []string{"base.yaml is empty"}},
		"no v1alpha1":  {talos.RenderInput{Base: patch("base.yaml", "apiVersion: v1alpha1\nkind: HostnameConfig\nauto: stable\n"), Hostname: "x"}, []string{"base.yaml has no v1alpha1 document: Talos would accept it and stay in maintenance"}},
		"JSON patch":   {talos.RenderInput{Base: worker(t), Patches: []talos.Named{patch("p.json", `[{"op":"remove","path":"/machine/token"}]`)}}, []string{"p.json is a JSON 6902 patch, which Talos takes for a single document only, and worker.yaml has 2; write it as a strategic merge patch"}},
		"JSON misfit":  {talos.RenderInput{Base: legacy(t), Patches: []talos.Named{patch("p.json", `[{"op":"remove","path":"/machine/none"}]`)}}, []string{"p.json cannot be applied to legacy.yaml"}},
		"JSON breaks":  {talos.RenderInput{Base: legacy(t), Patches: []talos.Named{patch("p.json", `[{"op":"add","path":"/machine/none","value":1}]`)}}, []string{"p.json makes legacy.yaml invalid"}},
		"unknown kind": {talos.RenderInput{Base: worker(t), Patches: []talos.Named{patch("k.yaml", "apiVersion: v1alpha1\nkind: NoSuchKind\n")}}, []string{"k.yaml is neither a strategic merge patch"}},
		"several rules": {
			talos.RenderInput{Base: worker(t), Patches: []talos.Named{patch("p.yaml", "machine:\n  type: wroker\n  nodeLabels:\n    \"bad label\": x\n---\napiVersion: v1alpha1\nkind: VLANConfig\nname: x\nvlanID: 5000\n")}},
			[]string{`unknown machine type "wroker"`, "invalid machine node labels", "VLANConfig/x"},
		},
		"CA": {talos.RenderInput{Base: worker(t), Patches: []talos.Named{patch("p.yaml", "machine:\n  acceptedCAs:\n  - crt: bm90IHBlbQ==\n")}}, []string{"worker.yaml with p.yaml: machine.acceptedCAs[0] is not a certificate"}},
	} {
		r, err := talos.Render(tc.in)
		require.Nil(t, r, name)
		require.Error(t, err, name)
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(err), name)
		for _, want := range tc.want {
			require.ErrorContains(t, err, want, name)
		}
		require.GreaterOrEqual(t, strings.Count(err.Error(), "\n"), len(tc.want)-1, "%s: one line for each mistake: %v", name, err)
	}
}

// No error may quote a secret, whatever line of a config is broken and how.
func TestErrorsQuoteNoSecret(t *testing.T) {
	t.Parallel()
	c := cluster(t)
	lines := strings.SplitAfter(string(c.ControlPlane), "\n")
	broken := 0
	secret := func(line string) bool {
		return slices.ContainsFunc(c.Secrets(), func(s string) bool { return strings.Contains(line, s) })
	}
	for i, line := range lines {
		for j, change := range []func(string) string{
			func(l string) string { return " " + l },
			func(l string) string { return "\t" + l },
			func(l string) string { return strings.Replace(l, ":", "x:", 1) }, // another key
			func(l string) string { return strings.Replace(l, ": ", ": [", 1) },
			func(l string) string { return strings.Replace(l, ": ", ": {a: ", 1) },
			func(l string) string { return strings.Replace(l, ": ", " ", 1) },
			func(l string) string { return strings.Replace(l, ": ", ": !!int ", 1) },
			func(l string) string { return strings.Replace(l, ": ", ": *", 1) },
			func(l string) string { return strings.Replace(l, ": ", ":\n- ", 1) },
			func(l string) string { return l + l },
			func(string) string { return "" },
		} {
			if j > 4 && !secret(line) {
				continue // the whole matrix is for lines with secrets
			}
			data := strings.Join(append(append(append([]string{}, lines[:i]...), change(line)), lines[i+1:]...), "")
			_, err := talos.Render(talos.RenderInput{Base: patch("cp.yaml", data), Hostname: "x"})
			if err == nil {
				continue
			}
			broken++
			require.NotContains(t, err.Error(), "LS0t", "no PEM: %v", err)
			for _, secret := range c.Secrets() {
				require.NotContains(t, err.Error(), secret[:8], "line %d: %v", i+1, err)
			}
		}
	}
	require.Greater(t, broken, 200, "most changes must break the config, or this tests nothing")
}

func FuzzRender(f *testing.F) {
	c := cluster(f)
	f.Add(c.Worker, []byte("machine:\n  type: worker\n"))
	f.Add([]byte("machine: {}\ncluster: {}\n"), []byte(`[{"op":"add","path":"/machine/type","value":"worker"}]`))
	f.Add([]byte("version: v1alpha1\nmachine:\n  type: worker\n  network:\n    interfaces: [null]\n"), []byte("machine: null\n"))
	f.Fuzz(func(t *testing.T, base, change []byte) {
		r, err := talos.Render(talos.RenderInput{
			Base: talos.Named{Name: "base", Data: base}, Patches: []talos.Named{{Name: "patch", Data: change}}, Hostname: "x",
		})
		if (r == nil) == (err == nil) {
			t.Fatal("either a config or an error")
		}
		if e := new(fault.Error); err != nil && !errors.As(err, &e) {
			t.Fatalf("unclassified: %v", err)
		}
	})
}
