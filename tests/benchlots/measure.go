//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/home"
	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/seal"
	"github.com/ironlot/ironlot/internal/testenv"
)

// lotName is the lot's.
const lotName = "bench"

// site is everything that runs.
type site struct {
	o        options
	state    string // Temporal's database, Ironlot's state, logs
	disks    string // the lab's directory
	watched  *fleet
	lab      *lab.Fleet
	temporal *server
	server   string // its name
	client   client.Client
	env      []string // of the starter and the worker
}

// measure runs a lot to its end and reads from it what is to be told.
func measure(ctx context.Context, o options) (_ *result, err error) {
	s := &site{o: o}
	start, err := o.temporal()
	if err != nil {
		return nil, err
	}
	if s.state, err = os.MkdirTemp("", "ironlot-benchlots-"); err != nil {
		return nil, err
	}
	defer func() {
		if o.keep {
			fmt.Fprintln(os.Stderr, "logs and Temporal's database are in", s.state)
			return
		}
		err = errors.Join(err, os.RemoveAll(s.state))
	}()
	if s.disks, err = os.MkdirTemp(o.dir, "ironlot-benchlots-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.disks)) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	fmt.Fprintf(os.Stderr, "making %d simulated machines\n", o.nodes)
	if err := s.startLab(ctx); err != nil {
		return nil, err
	}
	defer func() { cancel(); err = errors.Join(err, s.lab.Close()) }()
	if err := s.startTemporal(ctx, start); err != nil {
		return nil, err
	}
	defer func() { s.client.Close(); err = errors.Join(err, s.temporal.stop()) }()
	r := &result{Server: s.server, Nodes: o.nodes, MachineSeconds: o.machineTime.Seconds(), Spread: o.spread, Seed: o.seed, ProviderRate: o.rate, Cores: runtime.NumCPU(), LoadBefore: load()}
	if err := s.provision(ctx, r); err != nil {
		return nil, fmt.Errorf("%w; see the logs in %s with -keep", err, s.state)
	}
	return r, s.read(ctx, r)
}

// startLab makes the machines. Their speed is such that a usual one takes the
// wanted time.
func (s *site) startLab(ctx context.Context) error {
	s.watched = &fleet{ctx: ctx}
	for range s.o.nodes {
		s.watched.machines = append(s.watched.machines, &machine{})
	}
	var err error
	s.lab, err = lab.NewFleet(context.WithoutCancel(ctx), lab.Options{
		Dir: s.disks, Lot: lotName, Servers: s.o.nodes, Base: "127.77.0.0",
		APIPort: testenv.Port(), ImagePort: testenv.Port(), Workers: true,
		Speed:  lab.RealTime().Seconds() / (s.o.machineTime - jobTime() - readyHold).Seconds(),
		Spread: s.o.spread, Seed: s.o.seed, Hold: s.watched.hold,
		Image: images.Spec{Size: 8 * layout.MiB, Data: layout.MiB}, DiskSize: 24 * layout.MiB,
	})
	if err != nil {
		return err
	}
	for i, m := range s.watched.machines {
		m.slowness = s.lab.Slowness(i + 1)
		m.own = s.lab.OwnTime(i+1) + time.Duration(float64(jobTime())*m.slowness) + readyHold
	}
	return nil
}

// provision runs the worker and `starter provision`, and watches both.
func (s *site) provision(ctx context.Context, r *result) error {
	dir := filepath.Join(s.state, "home")
	h, err := home.Open(func(string) (string, bool) { return dir, true })
	if err != nil {
		return err
	}
	if _, err := seal.LoadOrCreateIdentity(h.IdentityFile()); err != nil {
		return err
	}
	s.env = append(s.lab.Environment(), "HOME="+s.state, "PATH="+os.Getenv("PATH"), home.EnvHome+"="+dir, "TEMPORAL_ADDRESS="+s.temporal.address)
	args := []string{"--agents", s.o.bin}
	if s.o.rate > 0 {
		args = append(args, "--provider-rate", strconv.FormatFloat(s.o.rate, 'f', -1, 64))
	}
	worker, err := spawn(filepath.Join(s.o.bin, "worker"), filepath.Join(s.state, "worker.log"), s.env, args...)
	if err != nil {
		return err
	}
	defer end(worker)
	if err := s.polled(ctx); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "provisioning: about %s\n", (s.o.machineTime * 5 / 4).Round(time.Second))
	began := time.Now()
	starter, err := spawn(filepath.Join(s.o.bin, "starter"), filepath.Join(s.state, "starter.log"), s.env, "provision", "--yes", "--batch", s.lab.Path("lot.yaml"))
	if err != nil {
		return err
	}
	r.Processes = slices.Concat([]*process{{Name: "worker", pid: worker.Process.Pid}}, s.temporal.processes,
		[]*process{{Name: "starter", pid: starter.Process.Pid}, {Name: "the lab and its machines", pid: os.Getpid()}})
	before, err := coresNow()
	if err != nil {
		return err
	}
	sampling, stop := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() { sampleAll(sampling, r.Processes) })
	stopped := context.AfterFunc(ctx, func() { _ = starter.Process.Kill() })
	err = starter.Wait()
	stopped()
	r.StarterSeconds = time.Since(began).Seconds()
	stop()
	done.Wait()
	after, coresErr := coresNow()
	r.Beside, r.LoadAfter = besideOf(before, after, r.Processes), load()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("not every node became Ready: `starter provision` ended with %w", err)
	}
	return coresErr
}

// end ends a program in order.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(os.Interrupt)
	_ = cmd.Wait() // how it ended is nobody's concern any more
}

// polled waits until the worker takes work.
func (s *site) polled(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		queue, err := s.client.DescribeTaskQueue(ctx, run.ProviderTaskQueue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
		if err == nil && len(queue.GetPollers()) > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.New("the worker takes no work")
		case <-time.After(100 * time.Millisecond):
		}
	}
}
