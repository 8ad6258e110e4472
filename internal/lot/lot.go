// Package lot reads lot files: YAML that names the servers to provision and
// what they become. Every mistake is reported with its line, all of them at
// once, before anything is touched.
package lot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/near"
	"github.com/ironlot/ironlot/internal/run"
)

// Bounds of a lot file.
const (
	MaxBytes = 1 << 20 // of the file itself and of each file that it names
	MaxNodes = 1000
)

// Lot is a lot file that holds no mistake.
type Lot struct {
	File        string // the path as given
	Name        string
	Lab         bool // the machines are simulated
	Rollout     run.Rollout
	Talosconfig string // path
	Context     string // of the talosconfig; empty: its current one
	Kubeconfig  string // path; empty: Kubernetes is not asked
	Nodes       []Node
	Warnings    []string // one sentence each

	talosconfigAt place
	kubeconfigAt  place
}

// Node is one server of a lot, defaults applied.
type Node struct {
	Run     run.Node
	Config  string   // path of the machine config
	Patches []string // paths, in the order in which they apply

	field    string // of the node in the file, such as nodes[2]
	configAt place
	firstAt  place             // of `bootstrap`
	shared   int               // how many of the patches are the defaults'
	values   map[string]string // of the defaults
	own      map[string]string // the node's own values
}

// Only leaves the named nodes in the lot and drops the others. Errors are
// NeedsOperator.
func (l *Lot) Only(names []string) error {
	for _, name := range names {
		if !slices.ContainsFunc(l.Nodes, func(n Node) bool { return n.Run.Name == name }) {
			return fault.Operator(near.OneOf(name, l.names()), "%s has no node %q", l.File, name)
		}
	}
	l.Nodes = slices.DeleteFunc(l.Nodes, func(n Node) bool { return !slices.Contains(names, n.Run.Name) })
	return nil
}

// names lists the nodes for a sentence.
func (l *Lot) names() []string {
	var all []string
	for _, n := range l.Nodes {
		all = append(all, n.Run.Name)
	}
	return all
}

// Load reads a lot file and checks all that can be checked without the
// network: the file itself, and that the files which it names are there. The
// error is of type Problems when the file was read.
func Load(path string) (*Lot, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, Problems{{File: path, Message: err.Error()}}
	}
	return Parse(path, data)
}

// Parse is Load for a file that was read already; the files that it names
// are looked up relative to path.
func Parse(path string, data []byte) (*Lot, error) {
	j := &journal{file: path}
	l := parse(j, data)
	if err := j.err(); err != nil {
		return nil, err
	}
	return l, nil
}

// parse notes the mistakes of a lot file, and gives what could be read of it
// all the same; nil: nothing.
func parse(j *journal, data []byte) *Lot {
	document := parseYAML(j, data)
	if document == nil {
		return nil
	}
	f := &file{}
	d := &decoder{journal: j}
	d.decode(document, reflect.ValueOf(f).Elem(), "")
	if f.keys == nil || d.values >= maxValues {
		return nil
	}
	c := &checker{journal: j, dir: filepath.Dir(j.file), files: map[string]error{}}
	l := c.lot(f)
	l.File = j.file
	return l
}

// parseYAML gives the one document of the file, or nil after noting why not.
func parseYAML(j *journal, data []byte) *yaml.Node {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		j.add(place{}, "is empty; `starter schema` and the examples show what belongs into a lot file")
		return nil
	case !utf8.Valid(data):
		j.add(place{}, "is not UTF-8 text; save it as UTF-8")
		return nil
	}
	var document, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	err := decoder.Decode(&document)
	if err != nil && !errors.Is(err, io.EOF) {
		j.add(syntaxError(data, err))
		return nil
	}
	if empty(document) {
		j.add(place{}, "holds no value; `starter schema` and the examples show what belongs into a lot file")
		return nil
	}
	for err == nil && empty(more) {
		more = yaml.Node{}
		err = decoder.Decode(&more)
	}
	switch {
	case errors.Is(err, io.EOF):
		return document.Content[0]
	case err != nil:
		j.add(syntaxError(data, err))
	default:
		j.add(place{line: more.Line, column: max(1, more.Column)}, "starts a second document; write one lot a file")
	}
	return nil
}

// empty reports whether a document holds nothing, such as what follows a
// trailing "---".
func empty(document yaml.Node) bool {
	return len(document.Content) != 1 || document.Content[0].ShortTag() == "!!null"
}

// syntaxError gives place and message of what the YAML parser refused. The
// parser tells the place in its text alone, so it is read out of there, to
// be shown and for nothing else.
func syntaxError(data []byte, err error) (at place, format, message string) {
	if tab := regexp.MustCompile(`(?m)^ *\t[ \t]*[^ \t#\r\n]`).FindIndex(data); tab != nil {
		at = place{line: 1 + bytes.Count(data[:tab[0]], []byte("\n")), column: 1}
		return at, "%s", "is indented with a tab, which YAML does not allow; use spaces"
	}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := regexp.MustCompile(`^line (\d+): (.*)`).FindStringSubmatch(text); m != nil {
		at.line, _ = strconv.Atoi(m[1])
		at.column, text = 1, m[2]
	}
	return at, "is not valid YAML near this place: %s; correct the file", text
}

// readFile reads a file of at most MaxBytes; a device, a pipe or a
// directory is refused.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, errors.New("the file does not exist; check the path")
	case err != nil:
		return nil, fmt.Errorf("the file cannot be read: %w", errors.Unwrap(err))
	case !info.Mode().IsRegular():
		return nil, errors.New("is not a regular file; name a file")
	case info.Size() > MaxBytes:
		return nil, fmt.Errorf("is larger than %d KiB; check that it is the right file", MaxBytes>>10)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read: %w", errors.Unwrap(err))
	}
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("is larger than %d KiB; check that it is the right file", MaxBytes>>10)
	}
	return data, nil
}
