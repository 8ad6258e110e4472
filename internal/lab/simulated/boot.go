package simulated

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/listen"
	"github.com/ironlot/ironlot/internal/pause"
)

// errGone is what the code of a boot gets that is over.
var errGone = errors.New("the machine was reset")

// boot is one boot of a machine, from power on to the next reset.
type boot struct {
	m      *Machine
	number int
	id     string // the kernel's boot ID
	bootAs hardware.BootType
	rescue hardware.Rescue
	dir    string // RAM: gone with the boot
	key    []byte // seed of the rescue system's host key
	names  []string
	order  []int // slots in the order in which the kernel found the disks
	ctx    context.Context
	cancel context.CancelFunc
	done   chan struct{}

	gate sync.RWMutex // held for reading by every access to a disk
	dead bool

	mu       sync.Mutex
	stack    *stack // what the kernel has put on the disks
	counts   []DiskCount
	written  int64
	commands []string
}

// newBoot decides what is random about a boot. m.mu is held.
func newBoot(m *Machine, bootAs hardware.BootType, rescue hardware.Rescue, number int) *boot {
	ctx, cancel := context.WithCancel(context.Background())
	b := &boot{
		m: m, number: number, id: uuid.NewString(), bootAs: bootAs, rescue: rescue,
		dir: filepath.Join(m.opts.Dir, "ram", strconv.Itoa(number)), key: newKeySeed(),
		ctx: ctx, cancel: cancel, done: make(chan struct{}),
		counts: make([]DiskCount, len(m.disks)), stack: &stack{},
	}
	b.order = make([]int, len(m.disks))
	for i := range b.order {
		b.order[i] = i
	}
	if m.opts.SwapNames {
		m.random.Shuffle(len(b.order), func(i, j int) { b.order[i], b.order[j] = b.order[j], b.order[i] })
	}
	b.names = make([]string, len(m.disks))
	for position, slot := range b.order {
		b.names[slot] = "sd" + string(rune('a'+position))
	}
	return b
}

// kill takes the power away. After it no write of this boot reaches a disk.
func (b *boot) kill() {
	b.gate.Lock()
	b.dead = true
	b.gate.Unlock()
	b.cancel()
}

// run is the machine's life from power on.
func (b *boot) run() {
	if !b.sleep(b.m.opts.Delays.POST) {
		return
	}
	choice, reason := chooseBoot(b.m.disks, b.bootAs, b.m.currentFaults().OldSystem)
	b.m.logf("firmware: %s", reason)
	if choice.kind == bootNothing {
		b.m.setState(NoBoot)
		return
	}
	b.m.setState(Booting)
	switch choice.kind {
	case bootNothing: // seen above
	case bootRescue:
		b.runRescue()
	case bootOS:
		b.runOS()
	case bootTalos:
		b.runTalos()
	}
}

func (b *boot) runRescue() {
	if !b.sleep(b.m.opts.Delays.Rescue) {
		return
	}
	if b.m.currentFaults().RescueNeverUp {
		b.hang("rescue: waiting for the network …")
		return
	}
	for _, dir := range []string{b.ramDir(), b.home()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			b.hang("rescue: %v", err)
			return
		}
	}
	b.assemble()
	b.serveSSH(InRescue, b.key, b.rescueAuth())
}

func (b *boot) runOS() {
	if b.sleep(b.m.opts.Delays.Normal) {
		b.serveSSH(InOS, b.m.osKey, nil)
	}
}

// serveSSH opens the SSH port, and only then is the machine in its state.
func (b *boot) serveSSH(state State, key []byte, auth *authorized) {
	addr := net.JoinHostPort(b.m.opts.Address, strconv.Itoa(b.m.opts.SSHPort))
	listener, err := listen.TCP(b.ctx, addr)
	if err != nil {
		b.hang("sshd: %v", err)
		return
	}
	b.m.logf("%s: boot ID %s, SSH on %s", state, b.id, addr)
	b.m.setState(state)
	if state == InRescue {
		b.m.hold("rescue")
	}
	newSSHServer(b, key, auth).serve(listener)
}

func (b *boot) hang(format string, args ...any) {
	b.m.logf(format, args...)
	b.m.setState(Hung)
}

// sleep reports whether the boot is still alive afterwards.
func (b *boot) sleep(d time.Duration) bool {
	return pause.For(b.ctx, d) == nil
}

// ramDir is /dev/shm/ironlot of the rescue system.
func (b *boot) ramDir() string { return filepath.Join(b.dir, "shm") }

// rootDir is / of the rescue system, as far as SFTP shows it.
func (b *boot) rootDir() string { return filepath.Join(b.dir, "root") }

func (b *boot) home() string { return filepath.Join(b.rootDir(), homePath(b.rescue.User)) }

func homePath(user string) string {
	if user == "root" {
		return "/root"
	}
	return "/home/" + user
}

func (b *boot) record(command string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.commands = append(b.commands, command)
}

// Boot is what is known about one boot of a machine.
type Boot struct {
	Number   int
	ID       string // the kernel's boot ID
	Type     hardware.BootType
	HostKey  string      // SHA256:… fingerprint of the rescue system
	Commands []string    // that were run over SSH, as the shell got them
	Disks    []DiskCount // by slot
	Data     int64       // bytes written to all disks, writes of nothing but zeros left out
}

// Boots lists the machine's boots, the current one last.
func (m *Machine) Boots() []Boot {
	m.mu.Lock()
	history := append([]*boot(nil), m.history...)
	m.mu.Unlock()
	var all []Boot
	for _, b := range history {
		b.mu.Lock()
		all = append(all, Boot{
			Number: b.number, ID: b.id, Type: b.bootAs, HostKey: fingerprint(b.key),
			Commands: append([]string(nil), b.commands...), Disks: append([]DiskCount(nil), b.counts...),
			Data: b.written,
		})
		b.mu.Unlock()
	}
	return all
}

func (b *boot) device(slot int, part int) string {
	if part == 0 {
		return b.names[slot]
	}
	return fmt.Sprintf("%s%d", b.names[slot], part)
}
