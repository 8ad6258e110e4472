package qemu

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ironlot/ironlot/internal/fault"
)

// kernelPackage is the newest kernel of Debian's metapackage for clouds.
const kernelPackage = "linux-image-cloud-amd64"

// packageNames are Debian's packages whose files make the lab's systems,
// libraries included. They are unpacked into the cache, never installed.
func packageNames() []string {
	return []string{
		"bash", "busybox-static", "coreutils", "dmsetup", "e2fsprogs", "gdisk", "grub-common", "grub-pc-bin",
		"lvm2", "mdadm", "mount", "openssh-client", "openssh-server", "openssh-sftp-server", "passwd",
		"libpam-modules", "libpam-modules-bin", "sudo", "udev", "util-linux", "util-linux-extra", "zstd",
		"libacl1", "libaio1", "libattr1", "libaudit1", "libblkid1", "libc6", "libcap-ng0", "libcap2", "libcom-err2", "libcrypt1",
		"libdevmapper-event1.02.1", "libdevmapper1.02.1", "libedit2", "libext2fs2", "libfdisk1", "libgcc-s1",
		"libgcrypt20", "libgpg-error0", "libgssapi-krb5-2", "libk5crypto3", "libkeyutils1", "libkmod2", "libkrb5-3",
		"libkrb5support0", "liblz4-1", "liblzma5", "libmount1", "libnsl2", "libpam0g", "libpcre2-8-0", "libpopt0",
		"libselinux1", "libsmartcols1", "libssl3", "libstdc++6", "libsystemd0", "libtinfo6", "libtirpc3", "libudev1", "libuuid1",
		"libwrap0", "libzstd1", "zlib1g", "libbsd0", "libmd0",
	}
}

// debian is a file of the archive.
type debian struct{ uri, file, sum string }

// resolvePackages asks apt for the files of the packages, kernel included.
func resolvePackages(ctx context.Context) ([]debian, error) {
	kernel, err := kernelName(ctx)
	if err != nil {
		return nil, err
	}
	args := append([]string{"download", "--print-uris", kernel}, packageNames()...)
	out, err := output(ctx, "", "apt-get", args...)
	if err != nil {
		return nil, fault.Operator("run `apt-get update` on a Debian 12 system and try again", "the packages of the QEMU lab are not known to apt: %w", err)
	}
	var all []debian
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) != 4 {
			continue
		}
		all = append(all, debian{strings.Trim(fields[0], "'"), fields[1], fields[3]})
	}
	if len(all) != len(packageNames())+1 {
		return nil, fault.Operator("run `apt-get update` and try again", "apt knows %d of the %d packages of the QEMU lab", len(all), len(packageNames())+1)
	}
	slices.SortFunc(all, func(a, b debian) int { return strings.Compare(a.file, b.file) })
	return all, nil
}

// kernelName follows the metapackage to the package of the kernel itself.
func kernelName(ctx context.Context) (string, error) {
	out, err := output(ctx, "", "apt-cache", "depends", "--important", kernelPackage)
	if err != nil {
		return "", fault.Operator("run on Debian 12 after `apt-get update`", "apt does not know the package %s: %w", kernelPackage, err)
	}
	for line := range strings.Lines(out) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "Depends: linux-image-"); ok {
			return "linux-image-" + name, nil
		}
	}
	return "", fault.Operator("run `apt-get update`", "the package %s depends on no kernel", kernelPackage)
}

// unpackPackages downloads the packages into dir and unpacks them below it.
// apt checks their digests against the archive's signed lists.
func unpackPackages(ctx context.Context, dir string, packages []debian) (root string, err error) {
	debs, root := filepath.Join(dir, "debs"), filepath.Join(dir, "root")
	for _, d := range []string{debs, root} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return "", err
		}
	}
	defer os.RemoveAll(debs)
	args := []string{"download", "-q"}
	for _, p := range packages {
		name, _, _ := strings.Cut(p.file, "_")
		args = append(args, name)
	}
	if _, err := output(ctx, debs, "apt-get", args...); err != nil {
		return "", fault.Operator("check the network and apt's sources", "the packages of the QEMU lab cannot be downloaded: %w", err)
	}
	for _, p := range packages {
		if _, err := output(ctx, debs, "dpkg-deb", "-x", p.file, root); err != nil {
			return "", fmt.Errorf("unpacking %s failed: %w", p.file, err)
		}
	}
	return root, nil
}

// output runs a tool and gives its standard output.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	cmd.Env = append(os.Environ(), "LC_ALL=C", "SOURCE_DATE_EPOCH=0")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// digest names what was made of these inputs.
func digest(parts ...any) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%v\x00", p)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
