package talosnode

import (
	"context"
	"fmt"
	"hash/fnv"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// etcdState is what a control plane's etcd has come to.
type etcdState struct {
	synced    bool // the node's time, which a bootstrap needs
	data      bool // the data directory is not empty
	forgotten bool // one bootstrap has been forgotten
}

func (n *Node) timeSynced() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.etcd.synced = true
}

// etcdRuns makes the node a member of its cluster.
func (n *Node) etcdRuns(ctx context.Context) error {
	n.mu.Lock()
	n.etcd.data = true
	n.mu.Unlock()
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(n.opts.UUID + n.opts.Serial + n.gate.addr))
	return n.resources.member(ctx, fmt.Sprintf("%016x", sum.Sum64()))
}

// Bootstrap starts the cluster's first control plane, with the real node's
// refusals, in its order. The cluster is there when etcd has started; whoever
// is on its way waits for that.
func (s *machineService) Bootstrap(context.Context, *machine.BootstrapRequest) (*machine.BootstrapResponse, error) {
	n := s.node
	n.log("bootstrap request received")
	cfg := n.active()
	if cfg == nil || !cfg.Machine().Type().IsControlPlane() {
		return nil, status.Error(codes.FailedPrecondition, "bootstrap can only be performed on a control plane node")
	}
	lost, forget, err := n.mayBootstrap()
	if err != nil {
		return nil, err
	}
	if !forget {
		data, err := cfg.Bytes()
		if err == nil {
			err = n.opts.Trustd.Serve(data)
		}
		if err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	if lost {
		return nil, status.Error(codes.Unavailable, "lab: the connection is cut before the answer")
	}
	return &machine.BootstrapResponse{Messages: []*machine.Bootstrap{{}}}, nil
}

// mayBootstrap refuses what the real node refuses, and notes the bootstrap.
func (n *Node) mayBootstrap() (lost, forget bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case !n.etcd.synced:
		return false, false, status.Error(codes.FailedPrecondition, "time is not in sync yet")
	case n.etcd.data:
		return false, false, status.Error(codes.AlreadyExists, "etcd data directory is not empty")
	case n.opts.Faults.BootstrapForgotten && !n.etcd.forgotten:
		n.etcd.forgotten = true
		return false, true, nil
	}
	n.etcd.data = true
	return n.opts.Faults.BootstrapLost, false, nil
}
