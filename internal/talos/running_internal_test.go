package talos

import (
	"context"
	"testing"

	cosiv1alpha1 "github.com/cosi-project/runtime/api/v1alpha1"
	"github.com/cosi-project/runtime/pkg/state"
	cosi "github.com/cosi-project/runtime/pkg/state/protobuf/client"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ironlot/ironlot/internal/fault"
)

// runs is a node that says that it runs this config.
type runs struct {
	cosiv1alpha1.StateClient
	yaml string
}

func (r runs) Get(context.Context, *cosiv1alpha1.GetRequest, ...grpc.CallOption) (*cosiv1alpha1.GetResponse, error) {
	spec := protowire.AppendTag(nil, 1, protowire.BytesType) // MachineConfigSpec.yaml_marshalled
	return &cosiv1alpha1.GetResponse{Resource: &cosiv1alpha1.Resource{
		Metadata: &cosiv1alpha1.Metadata{
			Namespace: config.NamespaceName, Type: config.MachineConfigType, Id: config.ActiveID, Version: "1", Phase: "running",
		},
		Spec: &cosiv1alpha1.Spec{ProtoSpec: protowire.AppendString(spec, r.yaml)},
	}}, nil
}

// TestConfigOfAnotherRelease: a person reads why it cannot be compared, and
// none of its secrets.
func TestConfigOfAnotherRelease(t *testing.T) {
	t.Parallel()
	const canary = "canary-5f21c9"
	for name, c := range map[string]struct{ yaml, want string }{
		"new key":      {"version: v1alpha1\nmachine:\n  type: worker\n  vault:\n    ticket: " + canary + "\ncluster: {}\n", "unknown keys found during decoding: machine: vault: ticket"},
		"new document": {"apiVersion: v1alpha1\nkind: VaultConfig\nticket: " + canary + "\n", "VaultConfig"},
		"no YAML":      {"machine: [" + canary + "\n", "did not find expected"},
		"another type": {"version: v1alpha1\nmachine:\n  type: worker\n  sysctls: " + canary + "\n", "cannot construct !!str `…` into map[string]string"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := &Client{addr: "n1", state: state.WrapCore(cosi.NewAdapter(runs{yaml: c.yaml}))}
			_, bySum := client.ConfigSHA256(t.Context())
			_, _, byKeys := client.ConfigChanges(t.Context(), &Rendered{})
			for _, err := range []error{bySum, byKeys} {
				require.ErrorContains(t, err, "the machine config that the node at n1 runs cannot be read: ")
				require.ErrorContains(t, err, c.want)
				require.NotContains(t, err.Error(), canary)
				require.NotContains(t, err.Error(), "\n")
				require.Equal(t, fault.NeedsOperator, fault.ClassOf(err))
			}
		})
	}
}

// mute is a node that answers without saying anything.
type mute struct{ machine.MachineServiceClient }

func (mute) Version(context.Context, *emptypb.Empty, ...grpc.CallOption) (*machine.VersionResponse, error) {
	return &machine.VersionResponse{}, nil
}

func TestVersionOfAMuteNode(t *testing.T) {
	t.Parallel()
	_, err := (&Client{addr: "n1", machine: mute{}}).Version(t.Context())
	require.EqualError(t, err, "the Talos API on n1 gave an empty answer")
	require.Equal(t, fault.Transient, fault.ClassOf(err))
}
