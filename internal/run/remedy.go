package run

import (
	"fmt"
	"strings"
)

// RetryWithFile is the command of remedies that begin with a correction in the
// lot file, see Remedy.
const RetryWithFile = "`starter retry LOT NODE --batch LOT.YAML`"

// Remedy is what to do, as an activity has told it, with the commands in it as
// they are typed for a node: the agent does not know of which node of which lot
// its remedy will be read. It is put in once, where a problem is made or read,
// so that whoever shows a problem shows the same.
func Remedy(told string, n Node) string {
	return strings.NewReplacer(" LOT NODE", " "+n.Lot+" "+n.Name, "--node NODE", "--node "+n.Name, "starter add LOT ", "starter add "+n.Lot+" ").Replace(told)
}

// NamesRetry reports whether the remedy says itself how to let the run go on,
// with flags that a plain retry lacks.
func (p *Problem) NamesRetry() bool { return strings.Contains(p.Remedy, "starter retry ") }

// Next is how a run that is stuck goes on or ends, in commands. A retry that the
// remedy names, with its flags, is not contradicted by a plain one.
func (p *Problem) Next(n Node) string {
	abort := fmt.Sprintf("`starter abort %s %s`", n.Lot, n.Name)
	if p.NamesRetry() {
		return "Or " + abort
	}
	return fmt.Sprintf("`starter retry %s %s` (with `--batch LOT.YAML` after a correction in the lot file) or %s", n.Lot, n.Name, abort)
}
