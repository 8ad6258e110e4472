package history

import "strings"

// word is a piece of a text: a command or a file's key, or what stands around it.
type word struct {
	Text string
	Code bool
}

// words splits a text at its backquotes. One that has no other is a character.
func words(text string) []word {
	var all []word
	for text != "" {
		before, rest, opened := strings.Cut(text, "`")
		code, after, closed := strings.Cut(rest, "`")
		if !opened || !closed {
			return append(all, word{Text: text})
		}
		if before != "" {
			all = append(all, word{Text: before})
		}
		all, text = append(all, word{Text: code, Code: true}), after
	}
	return all
}
