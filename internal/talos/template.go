package talos

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ironlot/ironlot/internal/fault"
)

// placeholder is what Render replaces. Its prefix keeps it apart from the
// ${…} of shell scripts and manifests in a config, which stay as they are.
var placeholder = regexp.MustCompile(`\$\{ironlot\.([^}]*)\}`)

// marker is how every placeholder starts.
const marker = "${ironlot."

// expand puts a node's values into a document's scalars. It works on parsed
// YAML, so that no value can become more than the one scalar it stands in: a
// plain ${ironlot.x} takes the type that its value has, one in quotes is text.
// Unknown names are NeedsOperator, one error each, joined.
func expand(in Named, values map[string]string) (Named, error) {
	if !bytes.Contains(in.Data, []byte(marker)) {
		return in, nil
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	decoder := yaml.NewDecoder(bytes.NewReader(in.Data))
	var problems []error
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return in, nil //nolint:nilerr // the loader that comes next says what is wrong with it
		}
		problems = append(problems, expandNode(in.Name, &document, values)...)
		if err := encoder.Encode(&document); err != nil {
			return in, problem(in, "cannot be written with the node's values", err)
		}
	}
	if err := errors.Join(append(problems, encoder.Close())...); err != nil {
		return in, err
	}
	return Named{Name: in.Name, Data: out.Bytes()}, nil
}

func expandNode(file string, n *yaml.Node, values map[string]string) []error {
	var problems []error
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, marker) {
		n.Value = placeholder.ReplaceAllStringFunc(n.Value, func(found string) string {
			name := placeholder.FindStringSubmatch(found)[1]
			value, ok := values[name]
			if !ok {
				problems = append(problems, fault.Operator("use one of "+strings.Join(slices.Sorted(maps.Keys(values)), ", "),
					"%s line %d: %q is no value of this node", file, n.Line, found))
			}
			return value
		})
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
			n.Tag = "" // it is read anew
		}
	}
	for _, child := range n.Content {
		problems = append(problems, expandNode(file, child, values)...)
	}
	return problems
}
