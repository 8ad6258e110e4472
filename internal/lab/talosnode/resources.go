package talosnode

import (
	"context"
	"fmt"
	"strings"

	"github.com/cosi-project/runtime/pkg/resource"
	"github.com/cosi-project/runtime/pkg/resource/meta"
	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/cosi-project/runtime/pkg/state/impl/inmem"
	"github.com/cosi-project/runtime/pkg/state/impl/namespaced"
	"github.com/cosi-project/runtime/pkg/state/registry"
	machineryconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/config"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/runtime"
	"github.com/siderolabs/talos/pkg/machinery/resources/v1alpha1"
	"github.com/siderolabs/talos/pkg/machinery/role"
)

// resources is the node's COSI state: what controllers would write there.
type resources struct {
	st state.State
}

// definitions are the resource types that a lab node has.
func definitions() []meta.ResourceWithRD {
	return []meta.ResourceWithRD{
		&config.MachineConfig{}, &runtime.MachineStatus{}, &k8s.Nodename{}, &k8s.NodeStatus{},
		&v1alpha1.Service{}, &hardware.SystemInformation{}, &etcd.Member{},
	}
}

// newResources makes the state of a machine that has just started.
func newResources(ctx context.Context, uuid, serial string) (*resources, error) {
	small := inmem.NewStateWithOptions(inmem.WithHistoryInitialCapacity(4), inmem.WithHistoryMaxCapacity(64))
	r := &resources{st: state.WrapCore(namespaced.NewState(func(ns resource.Namespace) state.CoreState { return small(ns) }))}
	if err := registry.NewNamespaceRegistry(r.st).RegisterDefault(ctx); err != nil {
		return nil, err
	}
	types := registry.NewResourceRegistry(r.st)
	if err := types.RegisterDefault(ctx); err != nil {
		return nil, err
	}
	for _, definition := range definitions() {
		if err := types.Register(ctx, definition); err != nil {
			return nil, err
		}
	}
	info := hardware.NewSystemInformation(hardware.SystemInformationID)
	info.TypedSpec().UUID, info.TypedSpec().SerialNumber = uuid, serial
	info.TypedSpec().Manufacturer, info.TypedSpec().ProductName = "Ironlot lab", "simulated machine"
	return r, r.st.Create(ctx, info)
}

// machine sets the machine's stage and what it waits for.
func (r *resources) machine(ctx context.Context, stage runtime.MachineStage, unmet ...runtime.UnmetCondition) error {
	return safe.StateModify(ctx, r.st, runtime.NewMachineStatus(), func(m *runtime.MachineStatus) error {
		m.TypedSpec().Stage = stage
		m.TypedSpec().Status = runtime.MachineStatusStatus{Ready: len(unmet) == 0, UnmetConditions: unmet}
		return nil
	})
}

// setConfig makes a config the active one. The resource keeps its bytes.
func (r *resources) setConfig(ctx context.Context, cfg machineryconfig.Provider) error {
	for _, id := range []resource.ID{config.ActiveID, config.PersistentID} {
		ptr := config.NewMachineConfigWithID(cfg, id)
		if err := r.st.Destroy(ctx, ptr.Metadata()); err != nil && !state.IsNotFoundError(err) {
			return err
		}
		if err := r.st.Create(ctx, ptr); err != nil {
			return err
		}
	}
	return nil
}

// nodeName tells the name under which the node registers.
func (r *resources) nodeName(ctx context.Context, name string) error {
	return safe.StateModify(ctx, r.st, k8s.NewNodename(k8s.NamespaceName, k8s.NodenameID), func(n *k8s.Nodename) error {
		n.TypedSpec().Nodename = name
		return nil
	})
}

// node sets the node's status in Kubernetes.
func (r *resources) node(ctx context.Context, name string, ready bool, labels map[string]string) error {
	return safe.StateModify(ctx, r.st, k8s.NewNodeStatus(k8s.NamespaceName, name), func(n *k8s.NodeStatus) error {
		n.TypedSpec().Nodename, n.TypedSpec().NodeReady, n.TypedSpec().Labels = name, ready, labels
		return nil
	})
}

// member tells that the node is a member of an etcd cluster.
func (r *resources) member(ctx context.Context, id string) error {
	return safe.StateModify(ctx, r.st, etcd.NewMember(etcd.NamespaceName, etcd.LocalMemberID), func(m *etcd.Member) error {
		m.TypedSpec().MemberID = id
		return nil
	})
}

// service is one of the node's services and what is wrong with it.
type service struct{ name, problem string }

// services sets the health of services.
func (r *resources) services(ctx context.Context, list []service) error {
	for _, s := range list {
		err := safe.StateModify(ctx, r.st, v1alpha1.NewService(s.name), func(v *v1alpha1.Service) error {
			v.TypedSpec().Running = s.problem != notRunning
			v.TypedSpec().Healthy = s.problem == ""
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unmetServices is the condition as the real node words it.
func unmetServices(list []service) []runtime.UnmetCondition {
	var reasons []string
	for _, s := range list {
		if s.problem != "" {
			reasons = append(reasons, s.name+" "+s.problem)
		}
	}
	if reasons == nil {
		return nil
	}
	return []runtime.UnmetCondition{{Name: "services", Reason: strings.Join(reasons, ", ")}}
}

func unmetNode(name, problem string) runtime.UnmetCondition {
	return runtime.UnmetCondition{Name: "nodeReady", Reason: fmt.Sprintf("node %q %s", name, problem)}
}

// policy is who may see what: nobody writes, and sensitive types are for
// admins.
func policy() state.FilteringRule {
	sensitive := map[resource.Type]bool{}
	for _, d := range definitions() {
		definition := d.ResourceDefinition()
		sensitive[definition.Type] = definition.Sensitivity == meta.Sensitive
	}
	return func(ctx context.Context, access state.Access) error {
		if !access.Verb.Readonly() || sensitive[access.ResourceType] && !rolesOf(ctx).Includes(role.Admin) {
			return errNotAuthorized
		}
		return nil
	}
}
