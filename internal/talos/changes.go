package talos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/ironlot/ironlot/internal/fault"
)

// Changes lists the keys by which two configs differ, sorted. A document but
// the main one is named by its kind and name.
func Changes(from, to []byte) ([]string, error) {
	old, err := flat(from)
	if err != nil {
		return nil, err
	}
	fresh, err := flat(to)
	if err != nil {
		return nil, err
	}
	keys := map[string]bool{}
	for key, value := range old {
		if other, ok := fresh[key]; !ok || other != value {
			keys[key] = true
		}
	}
	for key := range fresh {
		if _, ok := old[key]; !ok {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys)), nil
}

// flat is a config as one value a key. Lists count as one value.
func flat(data []byte) (map[string]string, error) {
	all := map[string]string{}
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var doc map[string]any
		err := decoder.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil { // its text may quote a secret
			return nil, fault.Operator("", "a machine config is not readable as YAML")
		}
		spread(all, documentName(doc), doc)
	}
}

func documentName(doc map[string]any) string {
	kind, ok := doc["kind"].(string)
	if !ok {
		return ""
	}
	if name, ok := doc["name"].(string); ok {
		return kind + "/" + name
	}
	return kind
}

func spread(all map[string]string, prefix string, value any) {
	m, ok := value.(map[string]any)
	if !ok || len(m) == 0 {
		all[prefix] = fmt.Sprintf("%#v", value)
		return
	}
	for key, value := range m {
		name := key
		if prefix != "" {
			name = prefix + "." + key
		}
		spread(all, name, value)
	}
}
