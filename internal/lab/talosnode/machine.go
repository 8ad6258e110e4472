package talosnode

import (
	"context"
	"runtime"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/configdiff"
	"github.com/siderolabs/talos/pkg/machinery/config/configloader"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/ironlot/ironlot/internal/pause"
)

// withoutReboot is the answer to a config that takes effect at once.
const withoutReboot = "Applied configuration without a reboot"

// machineService is the part of the Talos machine API that the lab has; the
// rest answers Unimplemented.
type machineService struct {
	machine.UnimplementedMachineServiceServer
	node        *Node
	maintenance bool
}

// Version tells the version, and that this is the lab.
func (s *machineService) Version(context.Context, *emptypb.Empty) (*machine.VersionResponse, error) {
	return &machine.VersionResponse{Messages: []*machine.Version{{
		Version: &machine.VersionInfo{
			Tag: s.node.opts.Version, Sha: Build, GoVersion: runtime.Version(), Os: "linux", Arch: "amd64",
		},
		Platform: &machine.PlatformInfo{Name: "metal", Mode: "metal"},
		Features: &machine.FeaturesInfo{Rbac: true},
	}}}, nil
}

// ApplyConfiguration checks a config with machinery's own code and takes it.
func (s *machineService) ApplyConfiguration(ctx context.Context, in *machine.ApplyConfigurationRequest) (*machine.ApplyConfigurationResponse, error) {
	n := s.node
	if !n.applying.TryLock() {
		return nil, status.Error(codes.FailedPrecondition, "another configuration is being applied")
	}
	defer n.applying.Unlock()

	cfg, err := configloader.NewFromBytes(in.GetData())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	warnings, err := cfg.Validate(metal{})
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	more, err := cfg.RuntimeValidate(ctx, n.resources.st, metal{})
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	warnings = append(warnings, more...)

	mode := in.GetMode()
	switch mode {
	case machine.ApplyConfigurationRequest_TRY:
		// Before v1.13.9 the real one panics on TRY without an earlier config.
		return nil, status.Error(codes.Internal, "lab: try mode is not simulated")
	case machine.ApplyConfigurationRequest_STAGED:
		return answer(mode, "Staged configuration to be applied after the next reboot", warnings), nil
	case machine.ApplyConfigurationRequest_REBOOT, machine.ApplyConfigurationRequest_AUTO:
		mode = machine.ApplyConfigurationRequest_NO_REBOOT
	}
	if in.GetDryRun() {
		// As on the real one, the diff holds every secret of the config.
		diff, err := configdiff.DiffConfigs(n.active(), cfg)
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
		return answer(mode, "Dry run summary:\n"+withoutReboot+" (skipped in dry-run).\nConfig diff:\n\n"+diff, warnings), nil
	}
	if err := n.take(ctx, cfg, s.maintenance); err != nil {
		return nil, err
	}
	return answer(mode, withoutReboot, warnings), nil
}

// take hands a valid config to the node. One without a v1alpha1 document is
// accepted and changes nothing in maintenance, as on the real node.
func (n *Node) take(ctx context.Context, cfg config.Provider, maintenance bool) error {
	if !maintenance {
		return n.replace(ctx, cfg)
	}
	if !cfg.CompleteForBoot() {
		n.log("accepted a config without a v1alpha1 document, still in maintenance")
		return nil
	}
	select {
	case n.taken <- cfg:
	default:
		return status.Error(codes.FailedPrecondition, "a configuration is applied already")
	}
	if n.opts.Faults.AnswerLost {
		<-ctx.Done() // the connection is cut
		return ctx.Err()
	}
	// Who stops waiting gets no answer, also where the node sees it first.
	return pause.For(ctx, n.opts.Delays.Answer)
}

// List lists /etc/cni, the one directory that the lab has: a mount of Talos
// that is there from the start, and what a CNI puts into it.
func (s *machineService) List(in *machine.ListRequest, out machine.MachineService_ListServer) error {
	const root = "/etc/cni"
	if in.GetRoot() != root {
		return status.Error(codes.NotFound, "lab: there is nothing but "+root)
	}
	if err := out.Send(&machine.FileInfo{Name: root, RelativeName: ".", IsDir: true}); err != nil || !s.node.cni.Load() {
		return err
	}
	for _, name := range []string{"net.d", "net.d/10-lab.conflist"} {
		if err := out.Send(&machine.FileInfo{Name: root + "/" + name, RelativeName: name, IsDir: name == "net.d"}); err != nil {
			return err
		}
	}
	return nil
}

func answer(mode machine.ApplyConfigurationRequest_Mode, details string, warnings []string) *machine.ApplyConfigurationResponse {
	return &machine.ApplyConfigurationResponse{Messages: []*machine.ApplyConfiguration{{
		Mode: mode, ModeDetails: details, Warnings: warnings,
	}}}
}

// metal is the runtime mode of an installed machine.
type metal struct{}

func (metal) String() string        { return "metal" }
func (metal) RequiresInstall() bool { return false }
func (metal) InContainer() bool     { return false }
