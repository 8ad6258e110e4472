package show

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Wrap breaks lines that are wider than width, see Break, and indents what
// follows; 0 is without end.
func Wrap(text string, width int) string {
	if width <= 0 {
		return text
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimLeft(line, " ")
		first := strings.Repeat(" ", len(line)-len(body))
		rest := first + "    "
		for i, part := range Break(strings.TrimSuffix(body, "\n"), width-len(rest)) {
			if i == 0 {
				b.WriteString(first)
			} else {
				b.WriteString(rest)
			}
			b.WriteString(part + "\n")
		}
	}
	return b.String()
}

// Break breaks a text into lines of at most width cells, between words alone:
// an ID, a path and all that stands in `…` is there to be copied, and stays
// whole. What is wider than a line is for the terminal to break, which knows
// when it is copied that it was one.
func Break(text string, width int) []string {
	var lines []string
	line := ""
	for text != "" {
		n := word(text)
		if line != "" && ansi.StringWidth(line+text[:n]) > width {
			lines, line = append(lines, line), strings.TrimLeft(text[:n], " ")
		} else {
			line += text[:n]
		}
		text = text[n:]
	}
	return append(lines, strings.TrimRight(line, " "))
}

// word is the length of a text's first word, with the spaces before it.
func word(text string) int {
	i := len(text) - len(strings.TrimLeft(text, " "))
	for i < len(text) && text[i] != ' ' {
		i++
		if text[i-1] == '`' {
			i += strings.IndexByte(text[i:], '`') + 1 // nothing is added when there is no other
		}
	}
	return i
}
