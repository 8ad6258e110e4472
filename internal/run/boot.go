package run

// BootPolicy bounds how often a boot that does not come is asked for. The
// zero value means the default; with Reboots set, PowerCycles counts as it is.
type BootPolicy struct {
	Reboots     int `json:"reboots"`     // through the provider, the first one included
	PowerCycles int `json:"powerCycles"` // stop and start, after the reboots
}

// Defaults of BootPolicy.
const (
	DefaultReboots     = 2
	DefaultPowerCycles = 1
)

// OrDefault gives the policy, or the default for the zero value.
func (p BootPolicy) OrDefault() BootPolicy {
	if p.Reboots <= 0 {
		return BootPolicy{Reboots: DefaultReboots, PowerCycles: DefaultPowerCycles}
	}
	return p
}

// Tries is how often a boot is asked for before a person has to look.
func (p BootPolicy) Tries() int {
	p = p.OrDefault()
	return p.Reboots + max(0, p.PowerCycles)
}

// PowerCycle reports whether a boot that has failed so often is now asked for
// by stop and start.
func (p BootPolicy) PowerCycle(failed int) bool { return failed >= p.OrDefault().Reboots }
