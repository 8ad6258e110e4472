package main

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// steerable refuses a wish for a node without a run that could take it, and
// says what a person can do in its place.
func steerable(l track.Lot, n track.Node, update string) error {
	name := n.Node.Name
	switch n.State {
	case run.Queued:
		return refuse(startRemedy(l, n), "%s refused: node %s is queued and has not been started", update, name)
	case run.Refused:
		return refuse(endedRemedy(l, n, update, "provision it"), "%s refused: node %s was refused and never started (%s)", update, name, n.Reason)
	case run.Ready:
		return refuse(endedRemedy(l, n, update, "to install it again, set `reprovision: true` for it in the lot file and provision it"), "%s refused: node %s is Ready, and its run has ended", update, name)
	case run.Aborted:
		return refuse(endedRemedy(l, n, update, "to install it again, provision it"), "%s refused: node %s is aborted, and its run has ended", update, name)
	case run.Running, run.Stuck: // it has a run
	}
	return nil
}

// endedRemedy is how a node is installed whose run has ended, or never began.
// Who wants to abort it wants no such thing, and has what he wants.
func endedRemedy(l track.Lot, n track.Node, update, provision string) string {
	if update == run.UpdateAbort {
		return "there is nothing left to abort"
	}
	text := fmt.Sprintf("%s with `starter provision --batch LOT.YAML --node %s`", provision, n.Node.Name)
	if l.Open {
		text += fmt.Sprintf(" once lot %s has ended", l.Name)
	}
	return text
}

// startRemedy is how a queued node comes to be started.
func startRemedy(l track.Lot, n track.Node) string {
	abort := fmt.Sprintf("`starter abort %s %s`", l.Name, n.Node.Name)
	switch {
	case l.Paused != nil:
		return fmt.Sprintf("the lot is %s: let it start nodes again with `starter resume %s`, or end the node with %s", l.Paused, l.Name, abort)
	case n.Waits != "":
		return fmt.Sprintf("it waits because %s, as `starter status %s` tells; %s ends it before it starts", n.Waits, l.Name, abort)
	case l.Held != "":
		return fmt.Sprintf("it waits because %s: look after that, or end the node with %s", l.Held, abort)
	default:
		return fmt.Sprintf("it starts when its turn comes; %s ends it before that", abort)
	}
}

// nodeRemedy is what a person can do when a node's run refuses a wish.
func nodeRemedy(l track.Lot, n track.Node, update string) string {
	status := fmt.Sprintf("look at it with `starter status %s %s`", l.Name, n.Node.Name)
	switch {
	case update == run.UpdateRetry && n.State == run.Running:
		return fmt.Sprintf("follow it with `starter status %s --watch`, or end its run with `starter abort %s %s`", l.Name, l.Name, n.Node.Name)
	case update == run.UpdateRetry:
		return "" // the run itself says which phase or disk it takes
	default:
		return status
	}
}

// lotRemedy is what a person can do when a lot refuses a wish.
func lotRemedy(ctx context.Context, c client.Client, lotName, update string) string {
	if update == run.UpdateAdd {
		return "" // the lot says what is wrong with the nodes
	}
	l, err := track.New(c, lotName).Look(ctx)
	switch {
	case err == nil && l.Paused != nil:
		return fmt.Sprintf("it starts nodes again with `starter resume %s`", lotName)
	case err == nil && l.Held != "":
		return fmt.Sprintf("its queued nodes wait because %s: look after that", l.Held)
	default:
		return fmt.Sprintf("look at it with `starter status %s`", lotName)
	}
}
