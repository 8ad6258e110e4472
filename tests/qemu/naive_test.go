package qemu

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"github.com/ironlot/ironlot/internal/lab/hardware"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/testenv"
)

// hand is a person logged in to a machine by SSH, with sudo.
type hand struct {
	s        *stack
	client   *ssh.Client
	password string
}

// bootWithin bounds a boot under emulation on a busy computer.
const bootWithin = 15 * time.Minute

// rescueByHand reboots the server into rescue through the provider and logs
// in.
func (s *stack) rescueByHand() *hand {
	s.t.Helper()
	number := s.rebootByHand(provider.BootRescue)
	s.console(number, "rescue is up")
	s.t.Logf("rescue answered %.1f s after power on", time.Since(s.boot(number).Started).Seconds())
	node := s.node().Node
	server, err := s.cloud.Describe(s.t.Context(), node.Zone, node.ServerID)
	require.NoError(s.t, err)
	password, err := s.cloud.RescuePassword(s.t.Context(), node.Zone, node.ServerID)
	require.NoError(s.t, err)
	return s.login(server.RescueUser, password)
}

// oldPassword is for sudo in the delivered system.
const oldPassword = "of the old system"

// installedByHand boots the delivered system and logs in.
func (s *stack) installedByHand() *hand {
	s.t.Helper()
	login := hardware.Rescue{User: "ubuntu", Password: oldPassword, AuthorizedKeys: []string{s.publicKey()}}
	s.machine.SetInstalled(login)
	number := s.rebootByHand(provider.BootNormal)
	s.console(number, "os is up")
	return s.login(login.User, login.Password)
}

func (s *stack) publicKey() string {
	data, err := os.ReadFile(s.fleet.Path("id_ed25519.pub"))
	require.NoError(s.t, err)
	return strings.TrimSpace(string(data))
}

// rebootByHand asks the provider for a reboot and waits for its boot.
func (s *stack) rebootByHand(boot provider.BootType) (number int) {
	s.t.Helper()
	node, before := s.node().Node, len(s.machine.Boots())
	s.eventually("the server takes a reboot", func() bool {
		server, err := s.cloud.Describe(s.t.Context(), node.Zone, node.ServerID)
		return err == nil && server.Usable
	})
	keys, err := s.cloud.SSHKeyIDs(s.t.Context(), []string{s.publicKey()})
	require.NoError(s.t, err)
	require.NoError(s.t, s.cloud.Reboot(s.t.Context(), node.Zone, node.ServerID, boot, keys))
	s.wait("a boot", func(_ qemu.State, boots []qemu.Boot) bool { return len(boots) > before })
	return before + 1
}

func (s *stack) wait(what string, holds func(qemu.State, []qemu.Boot) bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), bootWithin)
	defer cancel()
	require.NoError(s.t, s.machine.Wait(ctx, what, holds))
}

// console waits for a text on the console of a boot.
func (s *stack) console(number int, text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), bootWithin)
	defer cancel()
	require.NoError(s.t, s.machine.WaitConsole(ctx, number, text))
}

func (s *stack) boot(number int) qemu.Boot { return s.machine.Boots()[number-1] }

// printed reports whether a boot has shown a text on its console.
func (s *stack) printed(number int, text string) bool {
	return strings.Contains(strings.Join(s.boot(number).Console, "\n"), text)
}

func (s *stack) login(user, password string) *hand {
	s.t.Helper()
	key, err := os.ReadFile(s.fleet.Path("id_ed25519"))
	require.NoError(s.t, err)
	signer, err := ssh.ParsePrivateKey(key)
	require.NoError(s.t, err)
	client, err := ssh.Dial("tcp", s.machine.Address()+":2222", &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: time.Minute,
	})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { client.Close() })
	return &hand{s: s, client: client, password: password}
}

// try runs a command as root and gives all that it prints.
func (h *hand) try(command string) (string, error) {
	h.s.t.Helper()
	session, err := h.client.NewSession()
	require.NoError(h.s.t, err)
	defer session.Close()
	session.Stdin = strings.NewReader(h.password + "\n")
	var out testenv.Log // both streams write into it
	session.Stdout, session.Stderr = &out, &out
	err = session.Run("sudo -k -S -p '' -- bash -c '" + strings.ReplaceAll(command, "'", `'\''`) + "'")
	text := out.Tail(1 << 20)
	h.s.t.Logf("by hand: %s\n%s%v", command, text, err)
	return text, err
}

// do runs a command that must succeed.
func (h *hand) do(command string) string {
	h.s.t.Helper()
	out, err := h.try(command)
	require.NoError(h.s.t, err)
	return out
}

// reset resets the machine by SysRq, as the field did, and waits for the end
// of its boot.
func (h *hand) reset() {
	h.s.t.Helper()
	number := len(h.s.machine.Boots())
	session, err := h.client.NewSession()
	require.NoError(h.s.t, err)
	session.Stdin = strings.NewReader(h.password + "\n")
	// The connection dies with the machine.
	_ = session.Run("sudo -k -S -p '' -- bash -c 'sync; echo 1 >/proc/sys/kernel/sysrq; echo b >/proc/sysrq-trigger'")
	h.s.wait("the end of the boot", func(_ qemu.State, boots []qemu.Boot) bool { return boots[number-1].Ended != "" })
	require.Equal(h.s.t, "guest-reset", h.s.boot(number).Ended)
}

// disk is the kernel's name of a disk on this boot, by slot.
func (h *hand) disk(slot int) string {
	h.s.t.Helper()
	serial := map[int]string{1: "LAB0001A", 2: "LAB0001B"}[slot]
	for line := range strings.Lines(h.do("lsblk -dn -o NAME,SERIAL")) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[1] == serial {
			return "/dev/" + fields[0]
		}
	}
	h.s.t.Fatalf("no disk %s", serial)
	return ""
}

// write writes the image as the field report did, verifying nothing.
func (h *hand) write(device string) {
	h.s.t.Helper()
	start := time.Now()
	h.do(fmt.Sprintf("wget -q -O- %s | dd of=%s bs=4M iflag=fullblock oflag=direct conv=fsync", h.s.imageURL(images.Raw), device))
	h.s.t.Logf("dd of the raw image: %.1f MB/s", imageSize/1e6/time.Since(start).Seconds())
}

// release stops what holds the disks, as a person does who knows how.
func (h *hand) release() {
	h.s.t.Helper()
	h.do("lvm vgchange -an; for m in /dev/md1*; do mdadm --stop $m; done")
}

func (s *stack) imageURL(format images.Format) string {
	node := s.node().Node
	return node.Image.URL[:strings.LastIndex(node.Image.URL, "/")+1] + format.FileName()
}

// call makes a request to the provider's API.
func (s *stack) call(method, path, body string) (int, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.fleet.APIURL()+path, strings.NewReader(body))
	require.NoError(s.t, err)
	for _, line := range s.fleet.Environment() {
		if key, ok := strings.CutPrefix(line, "SCW_SECRET_KEY="); ok {
			request.Header.Set("X-Auth-Token", key)
		}
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	require.NoError(s.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	return answer.StatusCode, string(text)
}
