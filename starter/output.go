package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The forms of output, of which text is the same as table.
const (
	outputTable = "table"
	outputWide  = "wide"
	outputJSON  = "json"
	outputYAML  = "yaml"
)

func outputs() []string { return []string{outputTable, outputWide, outputJSON, outputYAML} }

// checkOutput refuses an output that is not known.
func (a *app) checkOutput() error {
	if a.output == "text" {
		a.output = outputTable
	}
	if !slices.Contains(outputs(), a.output) {
		return fmt.Errorf("the output %q is not known: use one of %s", a.output, strings.Join(outputs(), ", "))
	}
	return nil
}

// structured reports whether the output is for programs.
func (a *app) structured() bool { return a.output == outputJSON || a.output == outputYAML }

// encode writes a value to stdout for programs.
func (a *app) encode(v any) error { return encode(a.stdout, v, a.output) }

// encode writes a value for programs: JSON on one line, or a YAML document
// with the same fields in the same order.
func encode(w io.Writer, v any, output string) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if output == outputYAML {
		if data, err = yamlOf(data); err != nil {
			return err
		}
		data = append([]byte("---\n"), data...)
	} else {
		data = append(data, '\n')
	}
	_, err = w.Write(data)
	return err
}

// yamlOf gives JSON in YAML's block style. JSON is YAML already.
func yamlOf(data []byte) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	block(&document)
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(&document); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

func block(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		block(c)
	}
}
