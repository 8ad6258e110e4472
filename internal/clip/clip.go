// Package clip cuts texts to what fits, at a rune's border.
package clip

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const mark = "…" // stands for what was cut off

// End keeps the start of a text: at most limit bytes, which are more than
// three.
func End(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}

// Start keeps the end of a text: at most limit bytes, which are more than
// three.
func Start(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := len(s) - limit + len(mark)
	for cut < len(s) && !utf8.RuneStart(s[cut]) {
		cut++
	}
	return mark + s[cut:]
}

// Names lists names for a sentence, sorted, not more than fit into one.
func Names(names []string) string {
	const most = 20
	names = slices.Sorted(slices.Values(names))
	if more := len(names) - most; more > 0 {
		names = append(names[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
