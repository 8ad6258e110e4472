package lot

import (
	"fmt"

	"github.com/ironlot/ironlot/internal/count"
)

// rolloutWarnings tell what of the rollout does nothing with so few nodes. It
// is no mistake: nodes may be added while the lot is at work.
func (l *Lot) rolloutWarnings() []string {
	var warnings []string
	r, nodes := l.Rollout, len(l.Nodes)
	if r.Canary > nodes {
		warnings = append(warnings, fmt.Sprintf(
			"rollout.canary is %d and there are %s: each of them is a canary, none waits for another, and so it is with the next %d that are added",
			r.Canary, count.Of(nodes, "node"), r.Canary-nodes))
	}
	if r.MaxStuck != nil && *r.MaxStuck >= nodes {
		warnings = append(warnings, fmt.Sprintf(
			"rollout.maxStuck is %d and there are %s: the lot does not pause itself even when all of them are stuck",
			*r.MaxStuck, count.Of(nodes, "node")))
	}
	return warnings
}
