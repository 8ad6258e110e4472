// Package count counts things in words.
package count

import "fmt"

// Of is so many of something, which has a plain plural: 1 node, 2 nodes.
func Of(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Do is what so many of something do, with a plain verb: 1 node waits, 2 nodes
// wait.
func Do(n int, what, verb string) string {
	if n == 1 {
		verb += "s"
	}
	return Of(n, what) + " " + verb
}
