package chaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/scwapi"
	"github.com/ironlot/ironlot/tests/rig"
)

// storm breaks things in the order and at the pace that its seed gives.
type storm struct {
	r       *rig.Rig
	random  *rand.Rand
	workers []*rig.Worker
	frozen  *rig.Worker // thawed at the next strike
	struck  map[string]int
	resets  map[string]int // machines that reset themselves, by server
}

func newStorm(r *rig.Rig, seed uint64) *storm {
	s := &storm{r: r, random: rand.New(rand.NewPCG(seed, 2)), struck: map[string]int{}, resets: map[string]int{}}
	for range 2 {
		s.workers = append(s.workers, r.Worker())
	}
	return s
}

// pause is how long nothing strikes.
func (s *storm) pause() time.Duration {
	return time.Second + time.Duration(s.random.IntN(2000))*time.Millisecond
}

// strike breaks one thing.
func (s *storm) strike() error {
	if s.frozen != nil {
		s.frozen.Thaw()
		s.frozen = nil
	}
	name := s.draw()
	s.struck[name]++
	server := s.server()
	switch name {
	case "worker killed":
		i := s.random.IntN(len(s.workers))
		s.workers[i].Kill()
		s.workers[i] = s.r.Worker()
	case "worker frozen":
		s.frozen = s.workers[s.random.IntN(len(s.workers))]
		s.frozen.Freeze()
	case "connections cut":
		server.Machine.CutConnections()
	case "network away":
		server.Machine.SetNetwork(false)
		time.AfterFunc(3*time.Second, func() { server.Machine.SetNetwork(true) })
	case "machine reset":
		s.resets[server.Name]++
		server.Machine.Reset()
	default:
		return s.r.Fleet.API().AddFault(apiFault(name, server.ID))
	}
	return nil
}

// draw picks what breaks: what is rare in the field is rare here.
func (s *storm) draw() string {
	weights := []struct {
		name   string
		weight int
	}{
		{"worker killed", 3}, {"worker frozen", 1}, {"connections cut", 4}, {"network away", 2}, {"machine reset", 1},
		{"api 429", 3}, {"api 5xx", 3}, {"api stale", 2}, {"api reset", 2}, {"api lost answer", 1},
	}
	total := 0
	for _, w := range weights {
		total += w.weight
	}
	n := s.random.IntN(total)
	for _, w := range weights {
		if n -= w.weight; n < 0 {
			return w.name
		}
	}
	return weights[0].name
}

func (s *storm) server() lab.Server {
	servers := s.r.Fleet.Servers()
	return servers[s.random.IntN(len(servers))]
}

func apiFault(name, server string) scwapi.Fault {
	f := scwapi.Fault{Server: server, Times: 2}
	switch name {
	case "api 429":
		f.Kind, f.RetryAfter = scwapi.RateLimit, time.Second
	case "api 5xx":
		f.Kind, f.Status = scwapi.ServerError, 503
	case "api stale":
		f.Kind, f.Delay = scwapi.StaleStatus, time.Second
	case "api reset":
		f.Kind = scwapi.Reset
	default:
		f.Kind, f.Operation, f.Times = scwapi.LostAnswer, "RebootServer", 1
	}
	return f
}

// calm ends all faults that last, so that what is at work can end.
func (s *storm) calm() {
	if s.frozen != nil {
		s.frozen.Thaw()
		s.frozen = nil
	}
	s.r.Fleet.API().ClearFaults()
	for _, server := range s.r.Fleet.Servers() {
		server.Machine.SetNetwork(true)
	}
}

// String lists what was struck.
func (s *storm) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(s.struck)) {
		all = append(all, fmt.Sprintf("%d × %s", s.struck[name], name))
	}
	return strings.Join(all, ", ")
}
