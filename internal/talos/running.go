package talos

import (
	"context"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/protobuf"
	"github.com/cosi-project/runtime/pkg/state"
	configpb "github.com/siderolabs/talos/pkg/machinery/api/resource/config"
	machinery "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"google.golang.org/protobuf/proto"

	"github.com/ironlot/ironlot/internal/fault"
)

// ConfigSHA256 is the digest (hex) of the machine config that the node runs,
// in the canonical form of Rendered.SHA256: the node has the lot's config
// exactly when both are equal. The node keeps the bytes that it was given, but
// the comparison does not depend on that. It needs the role os:admin.
func (c *Client) ConfigSHA256(ctx context.Context) (string, error) {
	sum, _, err := c.runningConfig(ctx)
	return sum, err
}

// ConfigChanges gives the digest of the config that the node runs, and the
// keys by which another one differs from it. No value is among them. It needs
// the role os:admin.
func (c *Client) ConfigChanges(ctx context.Context, to *Rendered) (running string, keys []string, err error) {
	running, text, err := c.runningConfig(ctx)
	if err != nil {
		return "", nil, err
	}
	keys, err = Changes(text, to.Bytes)
	return running, keys, err
}

// runningConfig gives the text of the config that the node runs, secret, and
// its digest. COSI's client hands the text over as it came: what it says of
// one that it cannot decode would quote it.
func (c *Client) runningConfig(ctx context.Context) (sum string, text []byte, err error) {
	active := resource.NewMetadata(config.NamespaceName, config.MachineConfigType, config.ActiveID, resource.VersionUndefined)
	got, err := c.state.Get(ctx, active, state.WithGetUnmarshalOptions(state.WithSkipProtobufUnmarshal()))
	if err != nil {
		return "", nil, c.explain(err)
	}
	origin := "the machine config that the node at " + c.addr + " runs"
	defer guard(origin, &err)
	if text, err = textOf(got); err == nil {
		var cfg machinery.Provider
		if cfg, err = configloader.NewFromBytes(text); err == nil {
			sum, err = digest(cfg)
		}
	}
	if err != nil {
		return "", nil, fault.Operator("use the release of Ironlot for the Talos that the node runs, or look at the config with `talosctl get machineconfig -o yaml`",
			"%s cannot be read: %s", origin, redact(err.Error(), text))
	}
	return sum, text, nil
}

// textOf is the YAML in a MachineConfig that is not decoded yet.
func textOf(r resource.Resource) ([]byte, error) {
	raw, err := protobuf.FromResource(r)
	if err != nil {
		return nil, err
	}
	wire, err := raw.Marshal()
	if err != nil {
		return nil, err
	}
	var spec configpb.MachineConfigSpec
	err = proto.Unmarshal(wire.GetSpec().GetProtoSpec(), &spec)
	return spec.GetYamlMarshalled(), err
}
