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
	"slices"
	"strconv"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/lab/scwapi"
	"github.com/ironlot/ironlot/internal/lab/simulated"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
)

// Options describe a fleet. The zero value of each field but Dir is good.
type Options struct {
	Dir     string // where the fleet keeps its files; it must be empty or a lab's
	Lot     string // name of the lot; empty means lab
	Servers int    // 0 means 3
	// Base is the loopback address of the provider's API and the image
	// server; the machines follow behind it. Empty means 127.0.10.0.
	Base      string
	APIPort   int // 0 means 8080
	ImagePort int // 0 means 8081
	SSHPort   int // 0 means 2222: 22 needs root
	TalosPort int // 0 means 50000
	// Speed is how many times faster than real machines the lab's go. 0
	// means 60.
	Speed     float64
	Image     images.Spec         // the zero value means 64 MiB, 16 of them data
	Format    images.Format       // empty means zst
	DiskSize  int64               // of the system disk, bytes; the second one has twice that. 0 means 1 GiB
	Delivered simulated.Delivered // empty means raid1
	SwapNames bool                // kernel names of disks swap between boots
	Seed      uint64
	Faults    []Fault
	Log       func(line string) // consoles of the machines; may be nil
	// Hold is called where a simulated server, or the API on its behalf, is
	// about to do something, and may block: tests break things there. See
	// the Hold of scwapi, simulated and talosnode for the points. May be nil.
	Hold func(server int, point string)
	// Kit makes the machines QEMU guests with a real kernel, which boot in
	// their own time. Without it they are simulated.
	Kit  *qemu.Kit
	NVMe bool // the guests' disks are NVMe instead of SCSI
	// Bootstrap leaves it to the lot to start the cluster, on the first server.
	// Without it the cluster is there already, beside the servers.
	Bootstrap bool
	// PrivateNetwork attaches each server to a private network, with a VLAN
	// number of its own, and gives the lot `vlan: auto`. A simulated node whose
	// config has another VLAN, or none, never joins.
	PrivateNetwork bool
}

// Fleet is a running lab.
type Fleet struct {
	opts    Options
	dir     string
	base    netip.Addr
	api     *scwapi.API
	images  *images.Server
	cluster *talosnode.Cluster
	trustd  *talosnode.Trustd
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

// kubernetes is the endpoint in the lab's machine configs. No Kubernetes API
// answers there: .invalid never resolves (RFC 2606).
const kubernetes = "https://kubernetes.lab.invalid:6443"

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

func (o Options) withDefaults() Options {
	set := func(port *int, value int) {
		if *port == 0 {
			*port = value
		}
	}
	set(&o.APIPort, 8080)
	set(&o.ImagePort, 8081)
	set(&o.SSHPort, 2222)
	set(&o.TalosPort, 50000)
	set(&o.Servers, 3)
	if o.Lot == "" {
		o.Lot = "lab"
	}
	if o.Base == "" {
		o.Base = "127.0.10.0"
	}
	if o.Speed == 0 {
		o.Speed = 60
	}
	if o.Image.Size == 0 && o.Kit != nil {
		o.Image.Size, o.Image.Data = 128*layout.MiB, 16*layout.MiB
	}
	if o.Image.Size == 0 {
		o.Image.Size, o.Image.Data = 64*layout.MiB, 16*layout.MiB
	}
	if o.Format == "" {
		o.Format = images.Zstd
	}
	if o.DiskSize == 0 {
		o.DiskSize = max(1024*layout.MiB, 2*o.Image.Size)
	}
	if o.Delivered == "" {
		o.Delivered = simulated.RAID1
	}
	return o
}

// check refuses what cannot be.
func (o Options) check() (netip.Addr, error) {
	base, err := netip.ParseAddr(o.Base)
	switch {
	case o.Dir == "":
		return base, fault.Operator("name one", "the lab needs a directory")
	case err != nil || !base.Is4() || !base.IsLoopback():
		return base, fault.Operator("use one such as 127.0.10.0", "the lab's base address %q is not an IPv4 loopback address", o.Base)
	case o.Servers < 1 || o.Servers > 1000:
		return base, fault.Operator("change the number", "a lab has 1 to 1000 servers, not %d", o.Servers)
	case o.Speed < 0:
		return base, fault.Operator("use 1 for the speed of real machines, 60 for sixty times that", "the lab's speed %v is negative", o.Speed)
	case o.DiskSize < o.Image.Size:
		return base, fault.Operator("make the disk larger", "a disk of %d bytes is too small for an image of %d bytes", o.DiskSize, o.Image.Size)
	case !slices.Contains(images.Formats(), o.Format):
		return base, fault.Operator(fmt.Sprintf("use one of %v", images.Formats()), "there is no image format %q", o.Format)
	case !slices.Contains(o.deliveries(), o.Delivered):
		return base, fault.Operator(fmt.Sprintf("use one of %v", o.deliveries()), "the lab cannot deliver %q on its disks", o.Delivered)
	}
	if err := o.Image.Check(); err != nil {
		return base, err
	}
	for _, f := range o.Faults {
		if err := f.check(o.Servers, o.Kit != nil); err != nil {
			return base, err
		}
	}
	return base, nil
}

func (f *Fleet) start(ctx context.Context) error {
	if err := f.addressesFree(ctx); err != nil {
		return err
	}
	if err := f.prepareDir(); err != nil {
		return err
	}
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

// addressesFree refuses addresses that somebody uses, another lab as a rule:
// a machine that cannot listen would only seem to hang.
func (f *Fleet) addressesFree(ctx context.Context) error {
	for n := 1; n <= f.opts.Servers; n++ {
		for _, port := range []int{f.opts.SSHPort, f.opts.TalosPort} {
			listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(f.address(n).String(), strconv.Itoa(port)))
			if err != nil {
				return fault.Operator("end the other lab or choose another base address", "the address of server %d of the lab is in use: %w", n, err)
			}
			if err := listener.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Fleet) startAPI(ctx context.Context) error {
	latency := scwapi.RealLatency().Scaled(1 / f.opts.Speed)
	f.api = scwapi.New(scwapi.Options{Latency: &latency, Seed: f.opts.Seed, Hold: f.holdAPI})
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", f.addr(f.opts.APIPort))
	if err != nil {
		return fault.Operator("end the other lab or choose another base address", "the lab's API cannot listen: %w", err)
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

// Close stops everything and removes the disks. The files in the directory
// stay, for the runs that were started with them may be looked at.
func (f *Fleet) Close() error {
	f.stop()
	var errs []error
	if f.web != nil {
		errs = append(errs, f.web.Close())
	}
	for _, s := range f.servers {
		errs = append(errs, s.Metal().Close())
	}
	if f.api != nil {
		f.api.Wait()
	}
	errs = append(errs, os.RemoveAll(filepath.Join(f.dir, "images")), os.RemoveAll(filepath.Join(f.dir, "machines")))
	return errors.Join(errs...)
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
