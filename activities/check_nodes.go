package activities

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ironlot/ironlot/internal/clip"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/pause"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/run"
)

const (
	// checksAtOnce bounds how many nodes are looked at side by side.
	checksAtOnce = 32
	// checkTries is how often a node is checked that fails in passing, after
	// pauses of 1, 2, 4 and 8 s.
	checkTries = 5
)

// checkNodes checks several nodes of a lot, side by side; see check. What they
// have in common is looked at once. It fails only when the provider cannot be
// asked: what is wrong with a node is told with the node.
func (a *Activities) checkNodes(ctx context.Context, b *beat, in run.LotInput) ([]run.NodeCheck, error) {
	checks := make([]run.NodeCheck, len(in.Nodes))
	pending := make([]int, len(in.Nodes))
	for i := range pending {
		pending[i] = i
	}
	for try := 1; ; try++ {
		if err := a.checkRound(ctx, b, in, checks, pending); err != nil {
			return nil, err
		}
		passing := pending[:0]
		for _, i := range pending {
			if p := checks[i].Problem; p != nil && p.Class == string(fault.Transient) {
				passing = append(passing, i)
			}
		}
		if pending = passing; len(pending) == 0 || try == checkTries {
			return checks, nil
		}
		if err := pause.For(ctx, time.Second<<(try-1)); err != nil {
			return nil, err
		}
	}
}

// checkRound checks the pending nodes once.
func (a *Activities) checkRound(ctx context.Context, b *beat, in run.LotInput, checks []run.NodeCheck, pending []int) error {
	b.step("asking the provider about all servers")
	shared, err := a.sharing(ctx, in.Node(0).Node.Zone)
	if err != nil {
		return err
	}
	total := len(in.Nodes)
	var done atomic.Int64
	done.Store(int64(total - len(pending)))
	var group errgroup.Group
	group.SetLimit(checksAtOnce)
	for _, i := range pending {
		group.Go(func() error {
			checks[i] = shared.checkNode(ctx, in.Node(i))
			b.set(run.Progress{Step: "checking nodes", Done: done.Add(1), Total: int64(total)})
			return ctx.Err()
		})
	}
	return group.Wait()
}

// checkNode checks one node, without a heartbeat of its own.
func (a *Activities) checkNode(ctx context.Context, in run.NodeInput) run.NodeCheck {
	out, err := a.check(ctx, &beat{}, run.PhaseInput{Node: in.Node, Sealed: &in.Sealed})
	if err == nil {
		return run.NodeCheck{Name: in.Node.Name, Facts: out.Facts}
	}
	f := classified(err)
	return run.NodeCheck{Name: in.Node.Name, Problem: &run.Problem{
		Phase: run.Preflight, Class: string(f.Class), Message: clip.End(f.Message, maxMessage), Remedy: run.Remedy(clip.End(f.Remedy, maxMessage), in.Node),
		Tail: clip.Start(f.Tail, maxTail), Erased: run.Facts{}.Erased(run.Preflight),
	}}
}

// sharing gives activities that ask once for what many nodes have in common:
// the provider's list of a zone, its SSH keys, the image, addresses of names.
func (a *Activities) sharing(ctx context.Context, zone string) (*Activities, error) {
	listing, err := a.provider.List(ctx, zone)
	if err != nil {
		return nil, err
	}
	t := *a
	t.provider = &listed{Provider: a.provider, zone: zone, listing: listing, keys: once(func(ctx context.Context, _ struct{}) ([]string, error) {
		return a.provider.SSHKeyIDs(ctx, a.dialer.PublicKeys())
	})}
	t.look, t.lookup = once(a.look), once(a.lookup)
	return &t, nil
}

// listed is a provider that answers about the servers of a zone from a list.
// One that is not in it is asked for.
type listed struct {
	provider.Provider

	zone    string
	listing provider.Listing
	keys    func(context.Context, struct{}) ([]string, error) // of the worker
}

func (l *listed) Describe(ctx context.Context, zone, serverID string) (provider.Server, error) {
	if s, ok := l.listing.Servers[serverID]; ok && zone == l.zone {
		return s, nil
	}
	return l.Provider.Describe(ctx, zone, serverID)
}

func (l *listed) Networks(ctx context.Context, zone, serverID string) ([]provider.Network, error) {
	if _, ok := l.listing.Servers[serverID]; ok && zone == l.zone {
		return l.listing.Networks[serverID], nil
	}
	return l.Provider.Networks(ctx, zone, serverID)
}

func (l *listed) SSHKeyIDs(ctx context.Context, _ []string) ([]string, error) {
	return l.keys(ctx, struct{}{})
}

// once makes a function that asks once for each key, whoever comes first; all
// get the same answer.
func once[K comparable, V any](ask func(context.Context, K) (V, error)) func(context.Context, K) (V, error) {
	var mu sync.Mutex
	asked := map[K]func() (V, error){}
	return func(ctx context.Context, key K) (V, error) {
		mu.Lock()
		answer, ok := asked[key]
		if !ok {
			answer = sync.OnceValues(func() (V, error) { return ask(ctx, key) })
			asked[key] = answer
		}
		mu.Unlock()
		return answer()
	}
}
