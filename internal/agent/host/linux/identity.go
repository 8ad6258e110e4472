//go:build linux

package linux

import (
	"path/filepath"
	"strings"
)

// identity is what a disk has of its own.
type identity struct{ serial, wwn, model string }

// identity asks the kernel first and udev's database where it is silent.
func (h *Host) identity(name string) identity {
	if file := h.text("sys/block", name, "loop/backing_file"); file != "" {
		base := filepath.Base(file)
		return identity{serial: strings.TrimSuffix(base, filepath.Ext(base)), model: "loop device"}
	}
	udev := h.udev(name)
	id := identity{
		serial: first(
			h.text("sys/block", name, "serial"),        // virtio
			h.text("sys/block", name, "device/serial"), // NVMe, eMMC
			h.vpdSerial(name),                          // SCSI, SATA
			udev["ID_SCSI_SERIAL"],
			udev["ID_SERIAL_SHORT"],
		),
		model: first(h.text("sys/block", name, "device/model"), udev["ID_MODEL"]),
	}
	for _, wwn := range []string{
		h.text("sys/block", name, "wwid"),        // NVMe
		h.text("sys/block", name, "device/wwid"), // SCSI, SATA
		udev["ID_WWN_WITH_EXTENSION"],
		udev["ID_WWN"],
	} {
		// A t10 name is made of vendor, model and serial: not worldwide.
		if id.wwn == "" && !strings.HasPrefix(wwn, "t10.") {
			id.wwn = wwn
		}
	}
	return id
}

// vpdSerial is the unit serial number page (SPC-4, 7.8.15): four bytes of
// header, then text.
func (h *Host) vpdSerial(name string) string {
	page := h.raw("sys/block", name, "device/vpd_pg80")
	if len(page) < 4 {
		return ""
	}
	length := min(int(page[2])<<8|int(page[3]), len(page)-4)
	for _, c := range page[4 : 4+length] {
		if c < 0x20 || c > 0x7e {
			return ""
		}
	}
	return strings.TrimSpace(string(page[4 : 4+length]))
}

// udev reads the properties that udev found (systemd, device database).
func (h *Host) udev(name string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(h.text("run/udev/data", "b"+h.text("sys/class/block", name, "dev"))) {
		if property, found := strings.CutPrefix(strings.TrimSpace(line), "E:"); found {
			key, value, _ := strings.Cut(property, "=")
			out[key] = value
		}
	}
	return out
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
