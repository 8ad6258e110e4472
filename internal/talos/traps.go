package talos

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/config"
)

// traps warns of configs that Talos accepts and that then surprise.
func traps(cfg config.Provider) []string {
	var out []string
	out = append(out, networkTraps(cfg)...)
	out = append(out, diskTraps(cfg)...)
	if host := cfg.Cluster().Endpoint().Hostname(); unreachable(host) {
		out = append(out, fmt.Sprintf("cluster.controlPlane.endpoint is %s: no other machine reaches the Kubernetes API there", host))
	}
	return out
}

// networkTraps: any link or DHCP document turns off Talos's default DHCP on
// every interface; in the older form an interface that is named at all has
// no DHCP unless it says so.
func networkTraps(cfg config.Provider) []string {
	var out []string
	links := cfg.NetworkCommonLinkConfigs()
	addressed := len(cfg.NetworkDHCPConfigs()) > 0
	var names []string
	for _, link := range links {
		addressed = addressed || len(link.Addresses()) > 0
		names = append(names, link.Name())
	}
	switch {
	case len(links) == 0:
	case len(cfg.NetworkDHCPConfigs()) == 0 && !addressed:
		out = append(out, fmt.Sprintf("the link documents (%s) turn off default DHCP and give no address: the node will have none; add a DHCPv4Config for the public interface", strings.Join(names, ", ")))
	case len(cfg.NetworkDHCPConfigs()) == 0:
		out = append(out, fmt.Sprintf("the link documents (%s) turn off default DHCP on every interface: make sure that the public interface has its address, or add a DHCPv4Config", strings.Join(names, ", ")))
	}
	for _, device := range cfg.Machine().Network().Devices() {
		if len(device.Vlans()) > 0 && !device.DHCP() && len(device.Addresses()) == 0 && !device.Ignore() {
			out = append(out, fmt.Sprintf("machine.network.interfaces: %s has VLANs but neither dhcp nor addresses, so the interface itself gets no address", deviceName(device.Interface())))
		}
	}
	return out
}

// diskTraps: the image is on its disk already, and kernel names of disks
// change between boots.
func diskTraps(cfg config.Provider) []string {
	var out []string
	if install := cfg.Machine().Install(); install != nil {
		if install.Disk() != "" {
			out = append(out, fmt.Sprintf("machine.install.disk (%s) is not used: the lot's systemDisk chooses the disk", install.Disk()))
		}
		if install.Zero() {
			out = append(out, "machine.install.wipe is not used: the lot says which disks are erased")
		}
	}
	for _, disk := range cfg.Machine().Disks() {
		out = append(out, fmt.Sprintf("machine.disks names %s, and kernel names of disks change between boots: use a UserVolumeConfig with a diskSelector", disk.Device()))
	}
	return out
}

func unreachable(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (addr.IsLoopback() || addr.IsUnspecified())
}

func deviceName(name string) string {
	if name == "" {
		return "the selected device"
	}
	return name
}
