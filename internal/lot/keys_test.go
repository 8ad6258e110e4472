package lot

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSchemaKeys holds the schema's keys against the structs': a key in one
// alone would be refused by the editor or by Load.
func TestSchemaKeys(t *testing.T) {
	t.Parallel()
	var root map[string]any
	require.NoError(t, json.Unmarshal(schema, &root))
	want := map[string]bool{}
	schemaKeys(root, root, "", want)
	got := map[string]bool{}
	structKeys(reflect.TypeFor[file](), "", got)
	require.Equal(t, want, got)

	reference, err := os.ReadFile("../../docs/lot-file.md")
	require.NoError(t, err)
	for key := range got {
		last := key[strings.LastIndex(key, ".")+1:]
		require.Contains(t, string(reference), "`"+last+"`", "docs/lot-file.md does not explain %s", key)
	}
}

func schemaKeys(root, node map[string]any, prefix string, keys map[string]bool) {
	if name, ok := node["$ref"].(string); ok {
		defs := root["$defs"].(map[string]any)
		node = defs[strings.TrimPrefix(name, "#/$defs/")].(map[string]any)
	}
	if items, ok := node["items"].(map[string]any); ok {
		schemaKeys(root, items, prefix, keys)
	}
	properties, _ := node["properties"].(map[string]any)
	for key, value := range properties {
		keys[join(prefix, key)] = true
		schemaKeys(root, value.(map[string]any), join(prefix, key), keys)
	}
}

func structKeys(t reflect.Type, prefix string, keys map[string]bool) {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	leaves := []reflect.Type{reflect.TypeFor[text](), reflect.TypeFor[flag](), reflect.TypeFor[number](), reflect.TypeFor[section]()}
	if slices.Contains(leaves, t) {
		return
	}
	for i := range t.NumField() {
		f := t.Field(i)
		at := prefix
		if key := f.Tag.Get("yaml"); key != "" {
			at = join(prefix, key)
			keys[at] = true
		}
		structKeys(f.Type, at, keys)
	}
}
