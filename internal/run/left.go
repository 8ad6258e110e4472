package run

// Left names how an aborted run has left its server. Every one of them is a
// state that nothing of Ironlot changes any more, but for LeftUnknown.
type Left string

// The states in which a run leaves a server.
const (
	LeftUntouched   Left = "untouched"         // as it was before the run
	LeftRescue      Left = "rescue"            // in the rescue system, or on the way there; no job runs
	LeftWritten     Left = "image-written"     // Talos is on the disk and has not been seen to run
	LeftMaintenance Left = "talos-maintenance" // Talos runs and may have no config yet
	LeftConfigured  Left = "talos-configured"  // Talos runs the lot's config
	LeftUnknown     Left = "job-may-run"       // the job on the machine could not be stopped
)

// LeftAt is how a run that ends in a phase leaves its server.
func LeftAt(p Phase) Left {
	switch p {
	case Preflight:
		return LeftUntouched
	case RebootRescue, WaitSSH, DiskPrep, Stage, Write:
		return LeftRescue
	case SysrqReset, BootNormal:
		return LeftWritten
	case ApplyConfig:
		return LeftMaintenance
	default:
		return LeftConfigured
	}
}

// again is how a node is installed whose run has ended, see Remedy.
const again = "provision it again with `starter provision --batch LOT.YAML --node NODE` when its lot has ended"

// Remedy says in one sentence what the state means for a node and what to do
// about it.
func (l Left) Remedy(n Node) string { return Remedy(l.told(), n) }

func (l Left) told() string {
	switch l {
	case LeftUntouched:
		return "nothing was done to the server; " + again
	case LeftRescue:
		return "the server is in the rescue system or boots it, and no job runs there; " + again + ", or reboot it at the provider"
	case LeftWritten:
		return "the system disk holds Talos without a config, which the next normal boot starts in maintenance; " + again + ", or stop it at the provider"
	case LeftMaintenance:
		return "Talos runs and was not seen with the lot's config: it may still wait for one, which anybody who reaches its API can give, or run another; " +
			again + ", with `reprovision: true` for it in the lot file when it runs another, or stop it at the provider"
	case LeftConfigured:
		return "Talos runs the lot's config and may still become Ready; look at it with talosctl, or set `reprovision: true` for it in the lot file and " + again
	default:
		return "reboot the server at the provider before anything else is done to it"
	}
}

// RemedyOfUnknown is what to do about a node when nobody knows any more how its
// run has ended.
func RemedyOfUnknown(n Node) string {
	return Remedy("look at the node itself with talosctl, and at its server at the provider; when it is not what it should be, "+again, n)
}
