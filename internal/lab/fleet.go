// Package lab is a fleet on one machine that speaks the real protocols: the
// provider's HTTP API, SSH and SFTP, image downloads and the Talos gRPC API.
// The machines are simulated or QEMU guests; everything that runs against them
// is the real code. Nothing that happens here says how long a real machine
// takes.
package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/kubeapi"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/lab/scwapi"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
	"github.com/ironlot/ironlot/internal/listen"
)

// Fleet is a running lab.
type Fleet struct {
	opts    Options
	dir     string
	lock    *os.File // held while the directory is this fleet's
	filled  bool     // images and machines in the directory are this fleet's
	base    netip.Addr
	api     *scwapi.API
	images  *images.Server
	cluster *talosnode.Cluster
	trustd  *talosnode.Trustd
	kube    *kubeapi.API // nil without Options.Kubernetes
	servers []Server
	key     sshKey
	apiURL  string
	imgURL  string
	stop    context.CancelFunc
	web     *http.Server
}

// Server is a server of the fleet.
type Server struct {
	scwapi.Server
	Number  int                // from 1
	Node    string             // the node's name in the lot
	Machine *simulated.Machine // nil when the server is a QEMU guest
	Guest   *qemu.Machine      // nil when the server is simulated
}

// Metal is the server's machine, of whichever kind.
func (s Server) Metal() hardware.Machine {
	if s.Guest != nil {
		return s.Guest
	}
	return s.Machine
}

// The real machine's times, as far as they are known; the provider says that
// a reboot takes several minutes.
const (
	realPOST   = 90 * time.Second
	realRescue = 120 * time.Second
	realNormal = 20 * time.Second
)

// NewFleet starts a fleet and writes what is needed to use it into the
// directory. It runs until Close; the context must live as long.
func NewFleet(ctx context.Context, o Options) (*Fleet, error) {
	o = o.withDefaults()
	base, err := o.check()
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	f := &Fleet{opts: o, dir: dir, base: base, stop: stop, trustd: talosnode.NewTrustd()}
	if err := f.start(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Fleet) start(ctx context.Context) error {
	if err := f.takeDir(); err != nil {
		return err
	}
	if err := f.addressesFree(ctx); err != nil {
		return err
	}
	f.filled = true
	var err error
	if f.images, err = f.newImages(ctx); err != nil {
		return err
	}
	if f.imgURL, err = f.images.Listen(ctx, f.addr(f.opts.ImagePort)); err != nil {
		return err
	}
	if f.cluster, err = talosnode.NewCluster(f.opts.Lot, kubernetes); err != nil {
		return err
	}
	if !f.opts.Bootstrap {
		if err := f.trustd.Serve(f.cluster.ControlPlane); err != nil {
			return err
		}
	}
	if err := f.startKubernetes(ctx); err != nil {
		return err
	}
	if err := f.startAPI(ctx); err != nil {
		return err
	}
	for n := 1; n <= f.opts.Servers; n++ {
		if err := f.addServer(ctx, n); err != nil {
			return fmt.Errorf("cannot make server %d of the lab: %w", n, err)
		}
	}
	if err := f.applyFaults(); err != nil {
		return err
	}
	return f.writeFiles()
}

// newImages makes the image that the machines can boot.
func (f *Fleet) newImages(ctx context.Context) (*images.Server, error) {
	dir := filepath.Join(f.dir, "images")
	if f.opts.Kit == nil {
		return images.New(dir, f.opts.Image)
	}
	raw, err := f.opts.Kit.Image(ctx, f.opts.Image)
	if err != nil {
		return nil, err
	}
	return images.NewFrom(dir, raw)
}

// addressesFree refuses addresses that somebody uses, another lab as a rule,
// before anything is made: that lab's machines may be off, and its API is not.
func (f *Fleet) addressesFree(ctx context.Context) error {
	for _, port := range []int{f.opts.APIPort, f.opts.ImagePort} {
		if err := listen.Free(ctx, f.addr(port)); err != nil {
			return fault.Operator(otherBase, "an address of the lab itself is in use: %w", err)
		}
	}
	for n := 1; n <= f.opts.Servers; n++ {
		for _, port := range []int{f.opts.SSHPort, f.opts.TalosPort} {
			if err := listen.Free(ctx, net.JoinHostPort(f.address(n).String(), strconv.Itoa(port))); err != nil {
				return fault.Operator(otherBase, "the address of server %d of the lab is in use: %w", n, err)
			}
		}
	}
	return nil
}

const otherBase = "end the other lab or choose another base address"

func (f *Fleet) startAPI(ctx context.Context) error {
	latency := scwapi.RealLatency().Scaled(1 / f.opts.Speed)
	f.api = scwapi.New(scwapi.Options{Latency: &latency, Seed: f.opts.Seed, Hold: f.holdAPI})
	listener, err := listen.TCP(ctx, f.addr(f.opts.APIPort))
	if err != nil {
		return fault.Operator(otherBase, "the lab's API cannot listen: %w", err)
	}
	f.apiURL = "http://" + listener.Addr().String()
	f.web = &http.Server{Handler: f.api.Handler(), ReadHeaderTimeout: 10 * time.Second}
	go f.web.Serve(listener) //nolint:errcheck // it ends by Close
	return nil
}

// addr is an address of the fleet itself.
func (f *Fleet) addr(port int) string { return net.JoinHostPort(f.base.String(), strconv.Itoa(port)) }

// address is the address of a machine, counted from 1.
func (f *Fleet) address(n int) netip.Addr {
	a := f.base
	for range n {
		a = a.Next()
	}
	return a
}

// Close stops everything, removes the disks and leaves the directory.
func (f *Fleet) Close() error {
	f.stop()
	var errs []error
	if f.web != nil {
		errs = append(errs, f.web.Close())
	}
	if f.images != nil {
		errs = append(errs, f.images.Close())
	}
	for _, s := range f.servers {
		errs = append(errs, s.Metal().Close())
	}
	if f.kube != nil {
		errs = append(errs, f.kube.Close())
	}
	if f.api != nil {
		f.api.Wait()
	}
	return errors.Join(append(errs, f.leaveDir())...)
}

// Servers lists the servers.
func (f *Fleet) Servers() []Server { return append([]Server(nil), f.servers...) }

// API is the provider's simulated API, for counters and faults.
func (f *Fleet) API() *scwapi.API { return f.api }

// Images is the image server, for digests and faults.
func (f *Fleet) Images() *images.Server { return f.images }

// Cluster is the cluster that the nodes join, for its secrets.
func (f *Fleet) Cluster() *talosnode.Cluster { return f.cluster }

// APIURL is where the provider's API answers.
func (f *Fleet) APIURL() string { return f.apiURL }

// Path is the path of one of the fleet's files, such as lot.yaml.
func (f *Fleet) Path(name string) string { return filepath.Join(f.dir, name) }
