//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/qemu"
)

// guest is a QEMU machine in its rescue system.
type guest struct {
	n      names
	client *ssh.Client
	data   int64
	size   int64
}

const (
	guestSerial = "BENCH"
	bootWithin  = 10 * time.Minute
)

func measureQEMU(ctx context.Context, o options, w *web, dir string) error {
	kit, err := qemu.NewKit(ctx, qemu.KitOptions{Cache: os.Getenv("IRONLOT_QEMU_CACHE")})
	if err != nil {
		return err
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return err
	}
	raw := o.spec.Size >> 20
	m, err := kit.New(ctx, qemu.Options{
		Name: "bench", Address: fmt.Sprintf("127.18.%d.2", os.Getpid()%200), Dir: filepath.Join(dir, "guest"), Delivered: qemu.Blank,
		// Their way wants the raw image in RAM.
		Memory: int(raw) + 1024, Faults: qemu.Faults{SHMSize: fmt.Sprintf("%dm", raw+512)},
		Disks: []qemu.DiskSpec{{Serial: guestSerial, Model: "QEMU LAB", Size: o.spec.Size + spare}},
	})
	if err != nil {
		return err
	}
	defer m.Close() //nolint:errcheck // its directory goes as well
	b := &guest{data: o.spec.Data, size: o.spec.Size}
	if err := b.boot(ctx, m, signer); err != nil {
		return err
	}
	defer b.client.Close()
	if err := b.prepare(ctx, w, o.verify); err != nil {
		return err
	}
	return compare(ctx, "In a QEMU machine, one emulated processor, no KVM", 1, b)
}

// boot netboots rescue, which the firmware does while disks have a boot
// signature.
func (b *guest) boot(ctx context.Context, m *qemu.Machine, signer ssh.Signer) error {
	if err := m.EditDisk(1, func(f layout.File, size int64) error { return layout.Create(f, size, "bench", nil) }); err != nil {
		return err
	}
	login := hardware.Rescue{User: "root", AuthorizedKeys: []string{strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))}}
	if err := m.PowerOn(hardware.BootRescue, login); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, bootWithin)
	defer cancel()
	if err := m.WaitConsole(ctx, 1, "rescue is up"); err != nil {
		return err
	}
	key := m.Boots()[0].HostKey
	var err error
	b.client, err = ssh.Dial("tcp", m.Address()+":2222", &ssh.ClientConfig{
		User: login.User, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, Timeout: time.Minute,
		HostKeyCallback: func(_ string, _ net.Addr, got ssh.PublicKey) error {
			if ssh.FingerprintSHA256(got) != key {
				return fmt.Errorf("the machine has another host key than it was given")
			}
			return nil
		},
	})
	return err
}

// prepare puts the programs onto the machine and finds the disk.
func (b *guest) prepare(ctx context.Context, w *web, verify string) error {
	b.n = names{
		get: "wget -q -O-", url: w.url + "/image.zst", sha256: w.sha256, serial: guestSerial, verify: verify,
		ram: "/dev/shm", staged: "/dev/shm/ironlot", agent: "/run/agent",
	}
	for _, program := range []string{"agent", "bench"} {
		if _, err := b.sh(ctx, fmt.Sprintf("wget -q -O /run/%[1]s %s/%[1]s && chmod +x /run/%[1]s", program, w.url), nil); err != nil {
			return err
		}
	}
	out, err := b.sh(ctx, "lsblk -dn -o NAME,SERIAL | grep "+guestSerial, nil)
	if err != nil {
		return err
	}
	b.n.disk = strings.Fields(out)[0]
	return nil
}

func (b *guest) names() names { return b.n }

func (b *guest) sh(_ context.Context, command string, told func(string)) (string, error) {
	session, err := b.client.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	var out bytes.Buffer
	session.Stdout = &out
	stderr, err := session.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := session.Start("bash -c '" + strings.ReplaceAll(command, "'", `'\''`) + "'"); err != nil {
		return "", err
	}
	said := listen(stderr, told)
	if err := session.Wait(); err != nil {
		return "", fmt.Errorf("%s: %w: %s%s", command, err, said, out.String())
	}
	return out.String(), nil
}

// dirty has nothing to do: QEMU's disk is a file whose holes cost the guest
// nothing.
func (b *guest) dirty(context.Context) error { return nil }

func (b *guest) limits(ctx context.Context) (limits, error) {
	return probeOn(ctx, b, "/run/bench", b.data)
}
