// Package qemu is the lab's machine with a real kernel: a QEMU guest with
// file-backed disks, Debian's kernel, mdadm, LVM, udev, sshd and sudo, real
// block devices, SysRq and a real boot from the disk that was written. Under
// KVM or, where there is none, software emulation. It proves what the
// software does; it says nothing about a provider's hardware, and the Talos
// in it is the lab's node, not Talos.
package qemu
