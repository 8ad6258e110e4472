package lot

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/ironlot/ironlot/internal/near"
)

// unknownKey is the message for a key that a section does not have.
func unknownKey(key string, known map[string]reflect.Value) string {
	names := slices.Sorted(maps.Keys(known))
	if meant := near.Word(key, names); meant != "" {
		return "is not a key here; did you mean " + meant + "?"
	}
	return "is not a key here; the keys are " + strings.Join(names, ", ")
}

// unknownWord is the message for a value that is not one of a few words.
func unknownWord(value string, words []string) string {
	list := strings.Join(words, ", ")
	if meant := near.Word(value, words); meant != "" {
		return "must be one of " + list + ", not " + quote(value) + "; did you mean " + meant + "?"
	}
	return "must be one of " + list + ", not " + quote(value)
}
