package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/lab/simulated"
)

// labFlags are the flags of `starter lab`.
type labFlags struct {
	options   lab.Options
	imageMiB  int64
	dataMiB   int64
	diskMiB   int64
	format    string
	delivered string
	faults    []string
	quiet     bool
	machines  string
	cache     string
	talosInit string
}

// The kinds of machines.
const (
	machinesSimulated = "simulated"
	machinesQEMU      = "qemu"
)

// labCommand runs a simulated fleet until it is interrupted.
func (a *app) labCommand() *cobra.Command {
	f := &labFlags{}
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Run a fleet of simulated servers to try everything out",
		Long: `Run a fleet of simulated servers: the provider's API, machines with SSH and
disks, Talos nodes and an image server, all on loopback addresses of this
computer. Everything that provisions them is the real code over the real
protocols; the machines are simulated, and no result says anything about real
hardware. With --machines qemu they are QEMU guests with a real Linux kernel,
real md, LVM and SysRq, and a real boot from the written disk: see
docs/lab-qemu.md for what that needs. The lab runs until Ctrl-C and writes into its directory all that is
needed to use it, lab.env and lot.yaml first.

` + faultList(),
		Args: takes(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd.Context(), a)
		},
	}
	f.register(cmd)
	return cmd
}

func (f *labFlags) register(cmd *cobra.Command) {
	o, flags := &f.options, cmd.Flags()
	flags.IntVar(&o.Servers, "servers", 3, "number of servers, 1 to 1000")
	flags.StringVar(&o.Dir, "dir", "", "directory for the lab's files (default: lab in the state directory)")
	flags.StringVar(&o.Lot, "lot", "lab", "name of the lot")
	flags.Float64Var(&o.Speed, "speed", 60, "how many times faster than real machines")
	flags.StringVar(&o.Base, "base", "127.0.10.0", "loopback address of API and image server; the machines follow behind it")
	flags.IntVar(&o.APIPort, "api-port", 8080, "port of the provider's API")
	flags.IntVar(&o.ImagePort, "image-port", 8081, "port of the image server")
	flags.Int64Var(&f.imageMiB, "image-size", 64, fmt.Sprintf("size of the raw image in MiB; the real one has %d", images.FullSize/layout.MiB))
	flags.Int64Var(&f.dataMiB, "image-data", 0, "how much of the image is not zero, in MiB (default: a quarter)")
	flags.StringVar(&f.format, "image-format", string(images.Zstd), "raw, zst, xz or gz")
	flags.Int64Var(&f.diskMiB, "disk-size", 1024, "size of each system disk in MiB")
	flags.StringVar(&f.delivered, "delivered", string(simulated.RAID1), "what lies on the disks at first: raid1, lvm, blank, and on QEMU machines many")
	flags.BoolVar(&o.Bootstrap, "bootstrap", false, "let the lot start its cluster, on the first server; without it the cluster is there already")
	flags.BoolVar(&o.PrivateNetwork, "private-network", false, "give each server a private network with a VLAN of its own, and the lot vlan: auto; a node with another VLAN never joins")
	flags.BoolVar(&o.Kubernetes, "kubernetes", false, "start a Kubernetes API that the nodes register with, and give the lot its kubeconfig")
	flags.BoolVar(&o.SwapNames, "swap-names", false, "let the kernel names of disks swap between boots")
	flags.Uint64Var(&o.Seed, "seed", 1, "of everything random")
	flags.StringArrayVar(&f.faults, "fault", nil, "a fault, NAME or NAME@SERVER, may be repeated; see above")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "do not show the machines' consoles")
	flags.StringVar(&f.machines, "machines", machinesSimulated, "simulated, or qemu: guests with a real kernel, which take minutes")
	flags.StringVar(&f.cache, "qemu-cache", "", "directory for what QEMU machines are made of (default: ironlot/qemu in the user's cache)")
	flags.StringVar(&f.talosInit, "qemu-talosinit", "", "the executable lab-talosinit (default: beside this program or in bin)")
	flags.BoolVar(&o.NVMe, "nvme", false, "give QEMU machines NVMe disks instead of SCSI")
	words(cmd, "fault", lab.FaultNames()...)
	words(cmd, "image-format", "raw", "zst", "xz", "gz")
	words(cmd, "delivered", "raid1", "lvm", "many", "blank")
	words(cmd, "machines", machinesSimulated, machinesQEMU)
	freeText(cmd, "servers", "lot", "speed", "base", "api-port", "image-port", "image-size", "image-data", "disk-size", "seed")
	_ = cmd.MarkFlagDirname("dir") // fails for unknown flags only
	_ = cmd.MarkFlagDirname("qemu-cache")
}

func (f *labFlags) run(ctx context.Context, a *app) error {
	o, err := f.complete(a)
	if err != nil {
		return err
	}
	if err := f.kit(ctx, &o, a); err != nil {
		return err
	}
	if !f.quiet {
		o.Log = (&consoles{out: a.stderr}).line
	}
	// The fleet outlives the interrupt, so that Close ends it in order.
	fleet, err := lab.NewFleet(context.WithoutCancel(ctx), o)
	if err != nil {
		return err
	}
	if a.structured() {
		err = a.encode(labReport(fleet))
	} else {
		_, err = fmt.Fprint(a.stdout, labGreeting(fleet, o))
	}
	if err != nil {
		return errors.Join(err, fleet.Close())
	}
	<-ctx.Done()
	fmt.Fprintln(a.stderr, "stopping the lab; its disks are removed")
	return fleet.Close()
}

// kit makes the fleet's machines QEMU guests if they are to be.
func (f *labFlags) kit(ctx context.Context, o *lab.Options, a *app) error {
	switch f.machines {
	case machinesSimulated:
		return nil
	case machinesQEMU:
	default:
		return fault.Operator("use simulated or qemu", "there are no machines of the kind %q", f.machines)
	}
	fmt.Fprintln(a.stderr, "preparing QEMU machines: some minutes the first time, seconds later")
	var err error
	o.Kit, err = qemu.NewKit(ctx, qemu.KitOptions{Cache: f.cache, TalosInit: f.talosInit})
	return err
}

// labFacts is the lab with -o json.
type labFacts struct {
	Simulated   bool        `json:"simulated"`
	APIURL      string      `json:"apiUrl"`
	Environment string      `json:"environment"` // file to source
	Lot         string      `json:"lot"`         // lot file
	Servers     []labServer `json:"servers"`
}

type labServer struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Node    string `json:"node"`
	Address string `json:"address"`
}

func labReport(fleet *lab.Fleet) labFacts {
	facts := labFacts{Simulated: true, APIURL: fleet.APIURL(), Environment: fleet.Path("lab.env"), Lot: fleet.Path("lot.yaml")}
	for _, s := range fleet.Servers() {
		facts.Servers = append(facts.Servers, labServer{ID: s.ID, Name: s.Name, Node: s.Node, Address: s.Metal().Address()})
	}
	return facts
}

// consoles shows the machines' consoles, a line at a time.
type consoles struct {
	mu  sync.Mutex
	out io.Writer
}

func (c *consoles) line(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintln(c.out, s)
}

// complete turns flags into options.
func (f *labFlags) complete(a *app) (lab.Options, error) {
	for _, given := range []struct {
		flag string
		is   float64
	}{
		{"--servers", float64(f.options.Servers)}, {"--speed", f.options.Speed}, {"--disk-size", float64(f.diskMiB)},
		{"--image-size", float64(f.imageMiB)}, {"--api-port", float64(f.options.APIPort)}, {"--image-port", float64(f.options.ImagePort)},
	} {
		if given.is == 0 {
			return lab.Options{}, refuse("give a number above 0, or leave it out", "a lab with %s 0 cannot be", given.flag)
		}
	}
	o := f.options
	if f.machines == machinesQEMU && f.imageMiB < qemu.MinImage/layout.MiB {
		f.imageMiB = qemu.MinImage / layout.MiB // room for a kernel
	}
	if f.dataMiB == 0 {
		f.dataMiB = f.imageMiB / 4
	}
	o.Image = images.Spec{Size: f.imageMiB * layout.MiB, Data: f.dataMiB * layout.MiB, Seed: o.Seed}
	o.DiskSize = max(f.diskMiB*layout.MiB, o.Image.Size)
	o.Format, o.Delivered = images.Format(f.format), simulated.Delivered(f.delivered)
	for _, s := range f.faults {
		fault, err := lab.ParseFault(s)
		if err != nil {
			return o, err
		}
		o.Faults = append(o.Faults, fault)
	}
	if o.Dir == "" {
		state, err := a.home()
		if err != nil {
			return o, err
		}
		o.Dir = filepath.Join(state.Dir, "lab")
	}
	return o, nil
}

func labGreeting(fleet *lab.Fleet, o lab.Options) string {
	var b strings.Builder
	if o.Kit != nil {
		fmt.Fprintf(&b, "EMULATED: a lab of %d QEMU guests with a real Linux kernel. Provider, firmware and Talos are the lab's; none of it is real hardware.\n\n", o.Servers)
	} else {
		fmt.Fprintf(&b, "SIMULATED: a lab of %d servers, %g times faster than real ones. None of it is real hardware.\n\n", o.Servers, o.Speed)
	}
	fmt.Fprintf(&b, "  %-10s %-16s %-38s %s\n", "SERVER", "NODE", "ID", "ADDRESS")
	for _, s := range fleet.Servers() {
		fmt.Fprintf(&b, "  %-10s %-16s %-38s %s\n", s.Name, s.Node, s.ID, s.Metal().Address())
	}
	fmt.Fprintf(&b, "\nThe provider's API answers at %s. In another terminal:\n\n", fleet.APIURL())
	fmt.Fprintf(&b, "  source %s\n", fleet.Path("lab.env"))
	fmt.Fprintf(&b, "  starter up                      # Temporal and a worker, in a terminal of its own\n")
	fmt.Fprintf(&b, "  starter provision --batch %s\n\n", fleet.Path("lot.yaml"))
	fmt.Fprintf(&b, "Ctrl-C stops the lab.\n")
	return b.String()
}

func faultList() string {
	var b strings.Builder
	b.WriteString("Faults (NAME@2 strikes the second server alone):\n")
	help := lab.FaultHelp()
	for _, name := range lab.FaultNames() {
		fmt.Fprintf(&b, "  %-18s %s\n", name, help[name])
	}
	return b.String()
}
