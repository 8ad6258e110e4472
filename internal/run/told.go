package run

import "strings"

// Told says in one line how a node stands that has stopped: its state, where,
// and why. A reason that begins with the state tells all of it already.
func Told(state State, phase Phase, reason string) string {
	if strings.HasPrefix(reason, string(state)) {
		return reason
	}
	text := string(state)
	if phase != "" {
		text += " in " + string(phase)
	}
	return text + ": " + reason
}
