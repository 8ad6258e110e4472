package qemu

import (
	"bytes"
	"context"
	_ "embed"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

//go:embed guest/init
var guestInit []byte

//go:embed guest/deliver
var guestDeliver []byte

// revision is raised when what is built changes without an input that the
// digest sees.
const revision = 1

// system is what was built for all machines.
type system struct {
	dir       string // of the cache entry
	kernel    string // vmlinuz
	initrd    string // RAM disk of the rescue system, not compressed
	installed string // the same, compressed, for the delivered system's own boot
	root      string // unpacked packages
	key       string // digest of all inputs
}

// buildSystem makes the rescue system, once for each set of inputs.
func buildSystem(ctx context.Context, c cache) (system, error) {
	packages, err := resolvePackages(ctx)
	if err != nil {
		return system{}, err
	}
	unpacked, err := c.get(ctx, "packages-"+digest(packages), func(ctx context.Context, dir string) error {
		_, err := unpackPackages(ctx, dir, packages)
		return err
	})
	if err != nil {
		return system{}, err
	}
	key := digest(revision, packages, string(guestInit), string(guestDeliver), etcFiles(), rescuePrograms(), busyboxTools(), rescueModules())
	s := system{root: filepath.Join(unpacked, "root"), key: key}
	s.dir, err = c.get(ctx, "rescue-"+key, func(_ context.Context, dir string) error { return makeRescue(dir, s.root) })
	if err != nil {
		return system{}, err
	}
	s.kernel = filepath.Join(s.dir, "vmlinuz")
	s.initrd = filepath.Join(s.dir, "initrd.cpio")
	s.installed = filepath.Join(s.dir, "initrd.cpio.zst")
	return s, nil
}

// makeRescue writes kernel and RAM disk.
func makeRescue(dir, root string) error {
	k, err := findKernel(root)
	if err != nil {
		return err
	}
	image, err := os.ReadFile(k.image)
	if err != nil {
		return err
	}
	t, err := rescueTree(root, k)
	if err != nil {
		return err
	}
	var cpio bytes.Buffer
	if err := writeCPIO(&cpio, t); err != nil {
		return err
	}
	packed, err := compress(cpio.Bytes())
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{"vmlinuz": image, "initrd.cpio": cpio.Bytes(), "initrd.cpio.zst": packed} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// compress packs for a kernel that unpacks under emulation: fast, and always
// the same bytes.
func compress(data []byte) ([]byte, error) {
	// The kernel takes windows of up to 8 MiB in a RAM disk.
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(4<<20), zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return nil, err
	}
	defer w.Close()
	return w.EncodeAll(data, nil), nil
}

// rescuePrograms are the files of the rescue system, as patterns.
func rescuePrograms() []string {
	return []string{
		"bin/bash", "bin/busybox", "bin/dd", "bin/lsblk", "bin/mount", "bin/umount", "bin/sync", "bin/udevadm",
		"sbin/blkid", "sbin/blkdiscard", "sbin/blockdev", "sbin/dmsetup", "sbin/lvm", "sbin/mdadm", "sbin/mke2fs",
		"sbin/mkswap", "sbin/sgdisk", "sbin/swapoff", "sbin/swapon", "sbin/wipefs", "sbin/fsck.ext4",
		"usr/bin/sudo", "usr/bin/zstd", "usr/sbin/chpasswd", "usr/sbin/sshd",
		"usr/lib/openssh/sftp-server", "usr/libexec/sudo/*.so", "sbin/unix_chkpwd",
		"lib/x86_64-linux-gnu/security/pam_unix.so", "lib/x86_64-linux-gnu/security/pam_permit.so", "lib/x86_64-linux-gnu/security/pam_deny.so",
		"lib/systemd/systemd-udevd", "lib/udev/ata_id", "lib/udev/scsi_id",
		"lib/udev/rules.d/01-md-raid-creating.rules", "lib/udev/rules.d/50-udev-default.rules",
		"lib/udev/rules.d/55-dm.rules", "lib/udev/rules.d/56-lvm.rules", "lib/udev/rules.d/60-block.rules",
		"lib/udev/rules.d/60-persistent-storage.rules", "lib/udev/rules.d/60-persistent-storage-dm.rules",
		"lib/udev/rules.d/63-md-raid-arrays.rules", "lib/udev/rules.d/64-md-raid-assembly.rules",
		"lib/udev/rules.d/69-lvm.rules", "lib/udev/rules.d/95-dm-notify.rules",
		"etc/lvm/lvm.conf", "etc/mke2fs.conf",
	}
}

// busyboxTools are what the scripts and a person's hands use beside that.
func busyboxTools() []string {
	return []string{
		"awk", "cat", "chmod", "chown", "cmp", "cp", "cut", "date", "df", "du", "env", "find", "free", "grep", "head", "hexdump", "hostname",
		"id", "insmod", "ip", "kill", "ln", "ls", "lsmod", "mkdir", "mknod", "mv", "nc", "ps", "readlink", "rm", "rmdir", "sed", "setsid",
		"sha256sum", "sh", "sleep", "sort", "stat", "switch_root", "tail", "tar", "tee", "test", "touch", "tr", "true", "false", "uname",
		"wc", "wget", "which", "xargs", "printf", "basename", "dirname", "dmesg", "nohup", "pidof", "od",
	}
}

// rescueModules are the drivers of the machine and what the provider's arrays
// and filesystems need. NVMe and ext4 are built into Debian's kernel.
func rescueModules() []string {
	return []string{
		"qemu_fw_cfg", "virtio_pci", "virtio_net", "virtio_scsi", "sd_mod", "nvme", "md_mod", "raid0", "raid1", "raid10",
		"dm_mod", "loop", "ext4", "xfs",
	}
}

func rescueTree(root string, k kernel) (tree, error) {
	p := &picker{root: root, tree: tree{}}
	if err := p.pick(rescuePrograms()...); err != nil {
		return nil, err
	}
	for _, tool := range busyboxTools() {
		p.tree.link("bin/"+tool, "busybox")
	}
	for name, content := range etcFiles() {
		p.tree.file(name, 0o644, []byte(content))
	}
	p.tree.file("etc/shadow", 0o640, []byte("root:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n"))
	p.tree.file("etc/sudoers", 0o440, []byte(sudoers))
	p.tree.file("init", 0o755, guestInit)
	p.tree.file("lab/deliver", 0o755, guestDeliver)
	p.tree.charDevice("dev/console", 5, 1)
	p.tree.dir("root", 0o700)
	p.tree.dir("tmp", fsSticky)
	for _, dir := range []string{"proc", "sys", "dev", "run", "home", "mnt", "boot", "var/log", "var/lib", "etc/sudoers.d", "usr/local/bin"} {
		p.tree.dir(dir, 0o755)
	}
	p.tree.link("var/run", "/run")
	return p.tree, k.add(p.tree, rescueModules()...)
}

// fsSticky is the mode of /tmp without its sticky bit: one user lives there.
const fsSticky = 0o777

// sudoers is Ubuntu's: sudo asks for the user's password.
const sudoers = `Defaults	env_reset
Defaults	mail_badpass
Defaults	secure_path="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
Defaults	use_pty
Defaults	lecture=never
root	ALL=(ALL:ALL) ALL
@includedir /etc/sudoers.d
`

// etcFiles are the small files of the system.
func etcFiles() map[string]string {
	pam := "auth required pam_unix.so\naccount required pam_unix.so\nsession required pam_permit.so\npassword required pam_deny.so\n"
	return map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/bash\nsshd:x:100:65534::/run/sshd:/bin/false\n",
		"etc/group": "root:x:0:\ntty:x:5:\ndisk:x:6:\nkmem:x:15:\nlp:x:7:\ndialout:x:20:\ncdrom:x:24:\ntape:x:26:\naudio:x:29:\nvideo:x:44:\n" +
			"input:x:101:\nsgx:x:102:\nkvm:x:103:\nrender:x:104:\nnogroup:x:65534:\n",
		"etc/hosts":            "127.0.0.1 localhost lab-rescue lab-os\n",
		"etc/nsswitch.conf":    "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
		"etc/os-release":       "NAME=\"Ironlot lab\"\nID=ironlot-lab\nPRETTY_NAME=\"Ironlot lab, Debian's packages\"\n",
		"etc/pam.d/sshd":       pam,
		"etc/pam.d/sudo":       pam,
		"etc/pam.d/other":      pam,
		"etc/mdadm/mdadm.conf": "HOMEHOST <ignore>\n",
		"etc/ssh/sshd_config": "HostKey /etc/ssh/ssh_host_ed25519_key\nUsePAM yes\nPermitRootLogin prohibit-password\n" +
			"PasswordAuthentication yes\nUseDNS no\nPrintMotd no\nMaxSessions 100\nMaxStartups 100\nSubsystem sftp /usr/lib/openssh/sftp-server\n",
	}
}
