package talos

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
	machinery "github.com/siderolabs/talos/pkg/machinery/config/config"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"
	"github.com/siderolabs/talos/pkg/machinery/config/machine"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// Rendered is a node's machine config, checked, with what Ironlot needs to
// know about it. Bytes is secret; everything else may be shown.
type Rendered struct {
	Bytes         []byte
	SHA256        string // of the canonical form, hex; see Client.ConfigSHA256
	MachineType   string // controlplane, worker, init
	Hostname      string // empty: made by Talos
	VLANs         []uint32
	Endpoint      string // of the Kubernetes API
	ClusterName   string
	CAFingerprint string // SHA-256 of the certificate of machine.ca, hex
	UserVolumes   []run.UserVolume
	CloudProvider bool   // a cloud controller manager initializes the node
	KubernetesCA  []byte // certificate of cluster.ca, PEM
	Warnings      []string

	origin string
	cas    []*x509.Certificate // every CA whose clients the node lets in

	kubernetes      *url.URL // the cluster's endpoint
	multidocNetwork bool     // it has network documents of Talos 1.12 and later
}

// String names the config without its content.
func (r *Rendered) String() string { return "machine config " + r.SHA256 }

// GoString is String, so that %#v shows no secret either.
func (r *Rendered) GoString() string { return r.String() }

// ControlPlane reports whether the config makes the node a control plane.
func (r *Rendered) ControlPlane() bool {
	return r.MachineType == machine.TypeControlPlane.String() || r.MachineType == machine.TypeInit.String()
}

// EndpointHost is the host of the cluster's Kubernetes API, a name or an
// address.
func (r *Rendered) EndpointHost() string {
	if r.kubernetes == nil {
		return ""
	}
	return r.kubernetes.Hostname()
}

// diskImage is a metal machine that boots an image written to its disk: no
// install step, so machine.install need not be there.
type diskImage struct{}

func (diskImage) String() string        { return "metal" }
func (diskImage) RequiresInstall() bool { return false }
func (diskImage) InContainer() bool     { return false }

// Inspect checks a complete machine config as Talos would on a machine that
// boots from a disk image, and tells what is in it. Errors are NeedsOperator,
// one for each mistake, joined.
func Inspect(in Named) (rendered *Rendered, err error) {
	defer guard(in.Name, &err)
	cfg, err := parse(in)
	if err != nil {
		return nil, err
	}
	if !cfg.CompleteForBoot() {
		return nil, fault.Operator("add the document with `machine:` and `cluster:`",
			"%s has no v1alpha1 document: Talos would accept it and stay in maintenance", in.Name)
	}
	warnings, err := cfg.Validate(diskImage{})
	if err != nil {
		return nil, problem(in, "is refused by Talos", err)
	}
	for i, w := range warnings {
		warnings[i] = redact(w, in.Data)
	}
	sum, err := digest(cfg)
	if err != nil {
		return nil, problem(in, "cannot be encoded", err)
	}
	cas, err := acceptedCAs(in.Name, cfg)
	if err != nil {
		return nil, err
	}
	r := &Rendered{
		Bytes: in.Data, SHA256: sum, MachineType: cfg.Machine().Type().String(),
		Hostname: cfg.NetworkHostnameConfig().Hostname(), VLANs: VLANs(cfg),
		Endpoint: cfg.Cluster().Endpoint().Redacted(), ClusterName: cfg.Cluster().Name(),
		Warnings: append(warnings, traps(cfg)...), origin: in.Name, cas: cas,
	}
	r.CloudProvider = CloudProvider(cfg)
	r.kubernetes = cfg.Cluster().Endpoint()
	if ca := cfg.Cluster().IssuingCA(); ca != nil {
		r.KubernetesCA = ca.Crt
	}
	r.UserVolumes = userVolumes(cfg)
	r.multidocNetwork = hostnameDocument(cfg) != nil || len(cfg.NetworkCommonLinkConfigs()) > 0
	if cfg.Machine().Security().IssuingCA() != nil {
		r.CAFingerprint = fingerprint(cas[0])
	}
	return r, nil
}

// digest is the SHA-256 of a config's canonical form: machinery's own
// encoding without comments. Two configs that differ in comments, order of
// keys or quoting alone have the same digest.
func digest(cfg config.Provider) (string, error) {
	data, err := cfg.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// VLANs lists the VLAN numbers that a config uses, sorted, in the form of
// Talos 1.12 and later (VLANConfig) and in the older one.
func VLANs(cfg config.Provider) []uint32 {
	var ids []uint32
	for _, link := range cfg.NetworkCommonLinkConfigs() {
		if vlan, ok := link.(machinery.NetworkVLANConfig); ok {
			ids = append(ids, uint32(vlan.VLANID()))
		}
	}
	if cfg.Machine() != nil {
		for _, device := range cfg.Machine().Network().Devices() {
			for _, vlan := range device.Vlans() {
				ids = append(ids, uint32(vlan.ID()))
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// acceptedCAs parses the CAs of a config, the issuing one first.
func acceptedCAs(origin string, cfg config.Provider) ([]*x509.Certificate, error) {
	var pems [][]byte
	var places []string
	if ca := cfg.Machine().Security().IssuingCA(); ca != nil {
		pems, places = append(pems, ca.Crt), append(places, "machine.ca.crt")
	}
	for i, ca := range cfg.Machine().Security().AcceptedCAs() {
		pems, places = append(pems, ca.Crt), append(places, fmt.Sprintf("machine.acceptedCAs[%d]", i))
	}
	var cas []*x509.Certificate
	var problems []error
	for i, data := range pems {
		ca, err := certificate(data)
		if err != nil {
			problems = append(problems, fault.Operator("copy it again from the cluster's secrets",
				"%s: %s is not a certificate", origin, places[i]))
			continue
		}
		cas = append(cas, ca)
	}
	return cas, errors.Join(problems...)
}

// certificate parses the first PEM block. The errors quote nothing.
func certificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("it is not PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}

func fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// short is the beginning of a fingerprint, for people.
func short(fingerprint string) string {
	return strings.ToUpper(fingerprint[:min(len(fingerprint), 16)])
}
