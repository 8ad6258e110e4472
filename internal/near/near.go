// Package near guesses which word was meant.
package near

import (
	"fmt"
	"strings"

	"github.com/ironlot/ironlot/internal/clip"
)

// OneOf is the remedy of a name that is not among those that are known.
func OneOf(typed string, known []string) string {
	remedy := "name one of " + clip.Names(known)
	if meant := Name(typed, known); meant != "" {
		return fmt.Sprintf("did you mean %s? Otherwise %s", meant, remedy)
	}
	return remedy
}

// Name is the name closest to what was typed, or none when nothing is close, or
// two are: who has numbered his nodes means any of them.
func Name(typed string, names []string) string {
	if best := closest(typed, names); len(best) == 1 {
		return best[0]
	}
	return ""
}

// Word is the word closest to what was typed, or none when nothing is
// close.
func Word(typed string, words []string) string {
	if best := closest(typed, words); len(best) > 0 {
		return best[0]
	}
	return ""
}

// closest gives the words that are as close to what was typed as any is.
func closest(typed string, words []string) []string {
	if len(typed) > 64 {
		return nil
	}
	var best []string
	least := max(1, min(3, len(typed)/3))
	for _, w := range words {
		switch d := distance(strings.ToLower(typed), strings.ToLower(w)); {
		case d > least:
		case d < least, len(best) == 0:
			best, least = []string{w}, d
		default:
			best = append(best, w)
		}
	}
	return best
}

// distance is the fewest letters to put in, take out, change or swap with
// their neighbour (optimal string alignment).
func distance(a, b string) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}
