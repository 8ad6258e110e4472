package run

import "strings"

// retryCommand begins the commands in remedies. Who writes one does not know
// of which node of which lot it will be read.
const retryCommand = "starter retry LOT NODE"

// NamesRetry reports whether the remedy says itself how to let the run go on,
// with flags that a plain retry lacks.
func (p *Problem) NamesRetry() bool { return strings.Contains(p.Remedy, retryCommand) }

// RemedyFor is the remedy with its commands as they are typed for a node.
func (p *Problem) RemedyFor(n Node) string {
	return strings.NewReplacer(" LOT NODE", " "+n.Lot+" "+n.Name, "--node NODE", "--node "+n.Name, "starter add LOT ", "starter add "+n.Lot+" ").Replace(p.Remedy)
}
