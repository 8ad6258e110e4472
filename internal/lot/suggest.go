package lot

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// unknownKey is the message for a key that a section does not have.
func unknownKey(key string, known map[string]reflect.Value) string {
	names := slices.Sorted(maps.Keys(known))
	if near := nearest(key, names); near != "" {
		return "is not a key here; did you mean " + near + "?"
	}
	return "is not a key here; the keys are " + strings.Join(names, ", ")
}

// unknownWord is the message for a value that is not one of a few words.
func unknownWord(value string, words []string) string {
	list := strings.Join(words, ", ")
	if near := nearest(value, words); near != "" {
		return "must be one of " + list + ", not " + quote(value) + "; did you mean " + near + "?"
	}
	return "must be one of " + list + ", not " + quote(value)
}

// nearest is the word closest to what was typed, or none when nothing is
// close.
func nearest(typed string, words []string) string {
	if len(typed) > 64 {
		return ""
	}
	best, least := "", max(1, min(3, len(typed)/3))+1
	for _, w := range words {
		if d := distance(strings.ToLower(typed), strings.ToLower(w)); d < least {
			best, least = w, d
		}
	}
	return best
}

// distance is the Levenshtein distance: the fewest letters to put in, take
// out or change.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
