package lab

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"golang.org/x/crypto/ssh"

	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/scwapi"
)

// sshKey is the key that logs in to the lab's machines.
type sshKey struct{ private, public string }

func newSSHKey() (sshKey, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return sshKey{}, err
	}
	block, err := ssh.MarshalPrivateKey(private, "ironlot-lab")
	if err != nil {
		return sshKey{}, err
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return sshKey{}, err
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + " ironlot-lab"
	return sshKey{private: string(pem.EncodeToMemory(block)), public: line}, nil
}

// writeFiles writes all that a person needs to use the fleet.
func (f *Fleet) writeFiles() error {
	var err error
	if f.key, err = newSSHKey(); err != nil {
		return err
	}
	if _, err := f.api.AddSSHKey("ironlot-lab", f.key.public); err != nil {
		return err
	}
	for _, s := range f.servers {
		if s.Guest != nil { // a customer's key is in the delivered system
			s.Guest.SetInstalled(hardware.Rescue{User: "ubuntu", AuthorizedKeys: []string{f.key.public}})
		}
	}
	lot, err := f.lotFile()
	if err != nil {
		return err
	}
	return errors.Join(
		f.write("id_ed25519", 0o600, f.key.private),
		f.write("id_ed25519.pub", 0o644, f.key.public+"\n"),
		f.write("talosconfig", 0o600, string(f.cluster.Talosconfig)),
		f.write("controlplane.yaml", 0o600, string(f.cluster.ControlPlane)),
		f.write("worker.yaml", 0o600, string(f.cluster.Worker)),
		f.writeKubeconfig(),
		f.write("patch.yaml", 0o644, labelPatch),
		f.write("vlan.yaml", 0o644, vlanPatch),
		f.write("lot.yaml", 0o644, lot),
		f.write("scw.yaml", 0o600, "# The lab's API key is in lab.env. This empty file keeps your own profile out of the lab.\n"),
		f.write("lab.env", 0o600, f.environment()),
	)
}

// write replaces a file, with its mode.
func (f *Fleet) write(name string, mode fs.FileMode, content string) error {
	path := f.Path(name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path, []byte(content), mode)
}

// labelPatch is a patch as lots have them: it tells the lab's nodes apart.
const labelPatch = `machine:
  nodeLabels:
    ironlot.dev/lab: simulated
`

// vlanPatch is the VLAN of a server's private network, with DHCP for the
// public interface, which any link document turns off.
const vlanPatch = `apiVersion: v1alpha1
kind: DHCPv4Config
name: eno1
---
apiVersion: v1alpha1
kind: VLANConfig
name: eno1.${ironlot.vlan}
vlanID: ${ironlot.vlan}
parent: eno1
`

// Environment lists what the worker and the provider's own tools need to talk
// to the lab and to nothing else, as NAME=value.
func (f *Fleet) Environment() []string {
	key := scwapi.DefaultKey()
	return []string{
		"SCW_API_URL=" + f.apiURL,
		"SCW_ACCESS_KEY=" + key.AccessKey,
		"SCW_SECRET_KEY=" + key.SecretKey,
		"SCW_DEFAULT_ORGANIZATION_ID=" + scwapi.OrganizationID,
		"SCW_DEFAULT_PROJECT_ID=" + scwapi.ProjectID,
		"SCW_DEFAULT_REGION=" + strings.Join(strings.Split(zone, "-")[:2], "-"),
		"SCW_DEFAULT_ZONE=" + zone,
		"SCW_CONFIG_PATH=" + f.Path("scw.yaml"),
		"IRONLOT_SSH_KEY=" + f.Path("id_ed25519"),
	}
}

func (f *Fleet) environment() string {
	var b strings.Builder
	b.WriteString("# Source this file to talk to the simulated lab. The key opens nothing else.\n")
	b.WriteString("unset SCW_PROFILE\n")
	for _, line := range f.Environment() {
		name, value, _ := strings.Cut(line, "=")
		fmt.Fprintf(&b, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	return b.String()
}

func (f *Fleet) lotFile() (string, error) {
	image, err := f.images.File(f.opts.Format)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = template.Must(template.New("lot").Parse(lotTemplate)).Execute(&b, map[string]any{
		"Lot": f.opts.Lot, "Zone": zone, "Port": f.opts.SSHPort, "TalosPort": f.opts.TalosPort,
		"Image": f.imgURL + "/" + filepath.Base(image.Path), "SHA256": image.SHA256, "RawSHA256": f.images.RawSHA256(),
		"Servers": f.servers, "Bootstrap": f.opts.Bootstrap, "PrivateNetwork": f.opts.PrivateNetwork, "Kubernetes": f.opts.Kubernetes, "Workers": f.opts.Workers,
	})
	return b.String(), err
}

// lotTemplate is the lot that holds the whole fleet.
const lotTemplate = `# The lab's servers. They are simulated: nothing here touches real hardware.
apiVersion: ironlot.dev/v1
kind: Lot
name: {{.Lot}}
zone: {{.Zone}}
lab: true

image:
  url: {{.Image}}
  sha256: {{.SHA256}}
  rawSha256: {{.RawSHA256}}

cluster:
  talosconfig: talosconfig
{{- if .Kubernetes}}
  kubeconfig: kubeconfig
{{- end}}

defaults:
  config: worker.yaml
{{- if .PrivateNetwork}}
  patches: [patch.yaml, vlan.yaml]
  vlan: auto
{{- else}}
  patches: [patch.yaml]
{{- end}}
  systemDisk: {smallest: true}
  secondaryDisks: blank
  talosPort: {{.TalosPort}}
  rescue: {port: {{.Port}}}

nodes:
{{- range .Servers}}
  - name: {{.Node}}
    server: {id: {{.ID}}, name: {{.Name}}}
{{- if and (eq .Number 1) (not $.Workers)}}
    config: controlplane.yaml
{{- if $.Bootstrap}}
    bootstrap: true
{{- end}}
{{- end}}
{{- end}}
`
