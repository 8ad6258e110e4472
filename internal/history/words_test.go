package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]word{
		"":                         nil,
		"replace the disk":         {{Text: "replace the disk"}},
		"then `starter retry a b`": {{Text: "then "}, {Text: "starter retry a b", Code: true}},
		"`a` or `b`, not":          {{Text: "a", Code: true}, {Text: " or "}, {Text: "b", Code: true}, {Text: ", not"}},
		"a `b` and a `":            {{Text: "a "}, {Text: "b", Code: true}, {Text: " and a `"}},
	} {
		require.Equal(t, want, words(text), text)
	}
}
