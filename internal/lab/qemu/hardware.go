package qemu

import (
	"fmt"
	"strconv"
	"strings"
)

// wiring is a machine as QEMU's command line describes it.
type wiring struct {
	name    string
	memory  int // MiB
	serial  string
	disks   []disk
	order   []int // slots in the order in which the kernel will find the disks
	boot    int   // slot whose boot loader runs; -1: none
	kernel  string
	initrd  string
	cmdline string
	files   map[string]string // what the guest finds in fw_cfg: name → file
	forward []forward
	faults  Faults
}

// forward is a port of the machine that can be reached from this computer.
type forward struct {
	address string
	port    int // on address
	guest   int
}

// consoleArgs go to every kernel: a serial console, the kernel's own names
// for network cards, a panic that resets, and what an emulator needs that may
// not get a processor for seconds: no check of the timer, which was seen to
// panic kernels then, and no watchdog. Guards against other guests of the same
// processor cost it a tenth of a boot, and there are none.
const consoleArgs = "console=ttyS0 quiet loglevel=4 net.ifnames=0 panic=1 no_timer_check nowatchdog mitigations=off init_on_alloc=0"

// args is QEMU's command line, for kvm or tcg. One processor: with two, emulation was seen to
// panic a kernel in its first seconds.
func (w wiring) args(accelerator string) []string {
	args := []string{
		"-name", w.name, "-machine", "pc,accel=" + accelerator, "-cpu", "max", "-smp", "1", "-m", strconv.Itoa(w.memory),
		"-nodefaults", "-no-user-config", "-display", "none", "-boot", "strict=on",
		"-smbios", "type=1,manufacturer=Ironlot,product=lab,serial=" + w.serial,
		"-device", "virtio-scsi-pci,id=scsi",
		"-netdev", w.network(), "-device", "virtio-net-pci,netdev=net,romfile=",
	}
	for position, slot := range w.order {
		args = append(args, w.disk(slot, position)...)
	}
	for name, file := range w.files {
		args = append(args, "-fw_cfg", "name=opt/org.ironlot.lab/"+name+",file="+escape(file))
	}
	if w.kernel != "" {
		args = append(args, "-kernel", w.kernel, "-initrd", w.initrd, "-append", consoleArgs+" "+w.cmdline)
	}
	return args
}

func (w wiring) network() string {
	net := "user,id=net,restrict=off"
	for _, f := range w.forward {
		net += fmt.Sprintf(",hostfwd=tcp:%s:%d-:%d", f.address, f.port, f.guest)
	}
	return net
}

// disk is one disk. Files stay sparse: what the guest discards or zeroes is
// punched out.
func (w wiring) disk(slot, position int) []string {
	d := w.disks[slot]
	id := driveName(slot)
	drive := "if=none,id=" + id + ",format=raw,cache=unsafe,discard=unmap,detect-zeroes=unmap"
	if d.readOnly || w.faults.ReadOnlyDisk == slot+1 {
		drive += ",readonly=on"
	}
	if w.faults.WriteErrorDisk == slot+1 {
		drive += fmt.Sprintf(",rerror=report,werror=report,file.driver=blkdebug,file.image.driver=file,file.image.filename=%s"+
			",file.inject-error.0.event=write_aio,file.inject-error.0.iotype=write,file.inject-error.0.errno=5,file.inject-error.0.sector=%d", escape(d.path), w.faults.WriteErrorAt/512)
	} else {
		drive += ",file=" + escape(d.path)
	}
	bootIndex := ""
	if slot == w.boot {
		bootIndex = ",bootindex=1"
	}
	if d.spec.NVMe {
		return []string{"-drive", drive, "-device", fmt.Sprintf("nvme,id=nvme%d,serial=%s,addr=0x%x", slot, d.spec.Serial, 0x10+position),
			"-device", fmt.Sprintf("nvme-ns,bus=nvme%d,drive=%s%s", slot, id, bootIndex)}
	}
	device := fmt.Sprintf("scsi-hd,bus=scsi.0,scsi-id=%d,drive=%s,serial=%s,device_id=%s,vendor=IRONLOT,product=%s%s",
		position, id, d.spec.Serial, d.spec.Serial, strings.ReplaceAll(d.spec.Model, ",", " "), bootIndex)
	if d.spec.WWN != "" {
		device += ",wwn=" + d.spec.WWN
	}
	return []string{"-drive", drive, "-device", device}
}

// driveName is QEMU's name of the disk in a slot, counted from 0.
func driveName(slot int) string { return "disk" + strconv.Itoa(slot+1) }

// escape doubles commas, as QEMU's option parser wants.
func escape(path string) string { return strings.ReplaceAll(path, ",", ",,") }
