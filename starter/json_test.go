package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/history"
	"github.com/ironlot/ironlot/internal/run"
	"github.com/ironlot/ironlot/internal/version"
	"github.com/ironlot/ironlot/starter/internal/show"
	"github.com/ironlot/ironlot/starter/internal/track"
)

// TestFieldsAreDocumented: docs/json.md promises exactly the fields that are
// there, and says which may be missing.
func TestFieldsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/json.md")
	require.NoError(t, err)
	promised := map[string][]string{}
	heading := ""
	row := regexp.MustCompile("^\\| (\\*?`[^`]+`\\*?) \\|")
	for line := range strings.Lines(string(page)) {
		if after, ok := strings.CutPrefix(line, "## "); ok {
			heading = strings.TrimSpace(after)
		}
		if m := row.FindStringSubmatch(line); m != nil {
			promised[heading] = append(promised[heading], strings.ReplaceAll(m[1], "`", ""))
		}
	}
	documented := map[string]any{
		"`starter lots`":                             track.Summary{},
		"`starter inventory`":                        track.Item{},
		"Events of `provision` and `status --watch`": show.Event{},
		"The result of `provision` and `status LOT`": show.Result{},
		"`starter status LOT NODE`":                  track.Node{},
		"`starter postmortem`":                       history.Lot{},
		"`starter provision --dry-run`":              checkFacts{},
		"`starter validate`":                         verdict{},
		"Wishes and `provision --detach`":            done{},
		"`starter ui`":                               uiFacts{},
		"`starter up`":                               upFacts{},
		"`starter keys`":                             keyFacts{},
		"`starter lab`":                              labFacts{},
		"`version`":                                  version.Build{},
		"A node, as its run is told":                 run.Node{},
		"Facts":                                      run.Facts{},
		"A problem":                                  run.Problem{},
	}
	for heading, value := range documented {
		require.Equal(t, fields(reflect.TypeOf(value), "", false), promised[heading], heading)
	}
	require.Len(t, promised, len(documented), "nothing else is promised")
}

// TestCommandsAreDocumented: docs/json.md tells of each command, also of one
// that gives no data.
func TestCommandsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/json.md")
	require.NoError(t, err)
	for _, c := range newConsole(t, "").root().Commands() {
		require.Regexp(t, "`(starter )?"+c.Name()+"[` ]", string(page))
	}
}

// sections are types that have a section of their own, where they are not it.
func sections() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[time.Time](), reflect.TypeFor[run.Intent](),
		reflect.TypeFor[run.Node](), reflect.TypeFor[run.Facts](), reflect.TypeFor[run.Problem](),
	}
}

// fields lists the JSON fields of a type in their order, in italics those
// that may be missing.
func fields(t reflect.Type, prefix string, optional bool) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Slice:
		return fields(t.Elem(), prefix+"[]", optional)
	case t.Kind() == reflect.Map:
		key := ".PHASE"
		if t.Key() != reflect.TypeFor[run.Phase]() {
			key = ".KEY"
		}
		return fields(t.Elem(), prefix+key, optional)
	case t.Kind() != reflect.Struct || prefix != "" && slices.Contains(sections(), t):
		if optional {
			return []string{"*" + prefix + "*"}
		}
		return []string{prefix}
	}
	var all []string
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() {
			continue
		}
		if f.Anonymous {
			all = append(all, fields(f.Type, prefix, optional)...)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		path := strings.TrimPrefix(prefix+"."+name, ".")
		all = append(all, fields(f.Type, path, optional || options != "")...)
	}
	return all
}

func TestYAMLHasTheFieldsOfJSON(t *testing.T) {
	t.Parallel()
	data, err := yamlOf([]byte(`{"z":"1","a":{"list":[{"n":1},{}],"empty":[]},"text":"a: b\n","yes":"true","time":"2026-12-01T12:00:00Z"}`))
	require.NoError(t, err)
	require.Equal(t, `z: "1"
a:
  list:
    - n: 1
    - {}
  empty: []
text: |
  a: b
yes: "true"
time: "2026-12-01T12:00:00Z"
`, string(data))
}
