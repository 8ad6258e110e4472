//go:build linux

// Lab-talosinit is PID 1 of the disk image that the QEMU lab's servers get:
// it brings up what Talos' init would and serves the lab's Talos node. It is
// not Talos, and says so in its Version.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/lab/qemu"
	"github.com/ironlot/ironlot/internal/lab/state"
	"github.com/ironlot/ironlot/internal/lab/talosnode"
)

// settingsFile is what the lab gives to the node at each boot.
const settingsFile = "/sys/firmware/qemu_fw_cfg/by_name/opt/org.ironlot.lab/talos/raw"

// address is the machine's in QEMU's user network.
const address = "10.0.2.15"

// port is the Talos API's.
const port = "50000"

func main() {
	if err := boot(context.Background()); err != nil {
		say("halted: " + err.Error())
	}
	select {} // PID 1 must not end
}

func boot(ctx context.Context) error {
	if err := mounts(); err != nil {
		return err
	}
	redirect()
	if err := modules(); err != nil {
		return err
	}
	if err := network(ctx); err != nil {
		return err
	}
	settings, err := readSettings()
	if err != nil {
		return err
	}
	disks, err := findDisks(ctx)
	if err != nil {
		return err
	}
	store := &state.Store{Disks: func() ([]state.Disk, error) { return disks, nil }}
	say(fmt.Sprintf("system disk %s, STATE %s, EPHEMERAL %s", store.Where(layout.Meta), store.Where(layout.State), store.Where(layout.Ephemeral)))
	trustd := talosnode.NewTrustd()
	if len(settings.ControlPlane) > 0 {
		if err := trustd.Serve(settings.ControlPlane); err != nil {
			return err
		}
	}
	options := talosnode.Options{
		Addr: address + ":" + port, Host: settings.Address, Store: flushed{store}, Version: settings.Version, UUID: dmi("product_uuid"), Serial: dmi("product_serial"),
		Delays: settings.Delays, Faults: settings.Faults, Trustd: trustd, Log: say,
	}
	if settings.CheckVLANs {
		options.VLANs = func() []uint32 { return settings.VLANs }
	}
	ephemerals, err := store.Count(layout.Ephemeral)
	if err != nil {
		return err
	}
	options.Faults.KubeletCrash = options.Faults.KubeletCrash || ephemerals > 1
	_, err = talosnode.Start(ctx, options)
	return err
}

// flushed is a store whose configs survive a power cut.
type flushed struct{ *state.Store }

// Save keeps a config on the disk.
func (f flushed) Save(config []byte) error {
	err := f.Store.Save(config)
	unix.Sync()
	return err
}

func readSettings() (qemu.TalosSettings, error) {
	var s qemu.TalosSettings
	data, err := os.ReadFile(settingsFile)
	if err != nil {
		return s, fmt.Errorf("the lab has given nothing to this boot: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("what the lab has given to this boot is not readable: %w", err)
	}
	return s, nil
}

func dmi(name string) string {
	data, err := os.ReadFile("/sys/class/dmi/id/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// say writes a line to the console.
func say(text string) {
	fmt.Fprintf(os.Stdout, "talos: %s\n", text)
}

// within bounds how long the kernel may take to find the hardware.
const within = 30 * time.Second
