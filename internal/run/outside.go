package run

import "fmt"

// Outside is how a run was ended by something else than itself: it has no
// result, and Temporal tells no more than this.
type Outside string

// The ways in which a run is ended from outside.
const (
	Terminated Outside = "terminated" // stopped nothing of what was at work
	Cancelled  Outside = "cancelled"  // has stopped its work before it ended
	TimedOut   Outside = "timed out"  // by a limit that Ironlot does not set
	Failed     Outside = "failed"     // its code gave up
)

// Message says what happened, and in which phase where that is known.
func (o Outside) Message(p Phase) string {
	in := ""
	if p != "" {
		in = " in " + string(p)
	}
	switch o {
	case Cancelled:
		return "its run was cancelled in Temporal" + in
	case TimedOut:
		return "its run was ended" + in + " by a time limit that somebody has set in Temporal"
	case Failed:
		return "its run failed" + in + " in the code of the workflow"
	default:
		return "its run was terminated in Temporal" + in
	}
}

// Remedy says what became of the work on a node's machine, and what to do.
func (o Outside) Remedy(p Phase, n Node) string {
	switch {
	case o == Cancelled, LeftAt(p) != LeftRescue:
		return LeftAt(p).Remedy(n)
	default:
		return Remedy("a job may still be at work on the machine; "+again+", which stops it first", n)
	}
}

// Text is what happened to a node's run in one sentence, for who does not know
// its phase.
func (o Outside) Text(n Node) string {
	return fmt.Sprintf("%s; `starter status %s %s` tells how its server was left", o.Message(""), n.Lot, n.Name)
}
