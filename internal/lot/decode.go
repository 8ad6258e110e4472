package lot

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxValues bounds the values of a lot file after its aliases are followed,
// so that a small file with nested aliases cannot keep us busy.
const maxValues = 100_000

// section is embedded in every mapping of the lot file: where it stands and
// which keys it has.
type section struct {
	place
	keys map[string]place
}

// at is the place of a key; of a missing one, the place of its section.
func (s *section) at(key string) place {
	if p, ok := s.keys[key]; ok {
		return p
	}
	p := s.place
	p.field = join(p.field, key)
	return p
}

// has reports whether the key is there.
func (s *section) has(key string) bool {
	_, ok := s.keys[key]
	return ok
}

func (s *section) self() *section { return s }

// mapping is a Go struct that stands for a mapping of the file.
type mapping interface{ self() *section }

// scalar is a Go type that stands for a single value of the file.
type scalar interface {
	// take reads the value; wrong says what is wrong with it.
	take(n *yaml.Node, at place) (wrong string)
}

// decoder reads YAML nodes into the structs of file.go, noting everything
// that does not fit, with its place.
type decoder struct {
	*journal
	values int
}

// decode reads n into v, which is addressable.
func (d *decoder) decode(n *yaml.Node, v reflect.Value, field string) {
	at := place{line: n.Line, column: n.Column, field: field}
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if d.values++; d.values >= maxValues {
		if d.values == maxValues {
			d.add(at, "the file repeats too much through aliases; write it with fewer of them")
		}
		return
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		d.add(at, "has no value; give one, or remove the line")
		return
	}
	switch target := v.Addr().Interface().(type) {
	case scalar:
		if n.Kind != yaml.ScalarNode {
			d.add(at, "must be a single value, not %s", kindName(n))
		} else if wrong := target.take(n, at); wrong != "" {
			d.add(at, "%s", wrong)
		}
	case mapping:
		if n.Kind != yaml.MappingNode {
			d.add(at, "must be a mapping (key: value lines), not %s", kindName(n))
			return
		}
		*target.self() = section{place: at, keys: map[string]place{}}
		d.decodeMapping(n, v, target.self(), false)
	default:
		d.decodeList(n, v, at)
	}
}

// decodeList reads a sequence into a slice.
func (d *decoder) decodeList(n *yaml.Node, v reflect.Value, at place) {
	if n.Kind != yaml.SequenceNode {
		d.add(at, `must be a list ("- " lines), not %s`, kindName(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		if d.values >= maxValues {
			return
		}
		d.decode(item, v.Index(i), fmt.Sprintf("%s[%d]", at.field, i))
	}
}

// decodeMapping reads the keys of n into the struct v. Keys merged from an
// anchor (<<) come last and give way to the mapping's own.
func (d *decoder) decodeMapping(n *yaml.Node, v reflect.Value, s *section, merged bool) {
	known := fields(v)
	var merges []*yaml.Node
	own := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge" {
			merges = append(merges, value)
			continue
		}
		at := place{line: key.Line, column: key.Column, field: join(s.field, key.Value)}
		if key.Kind != yaml.ScalarNode {
			at.field = s.field
			d.add(at, "holds a key that is not a plain word")
			continue
		}
		if first, twice := own[key.Value]; twice {
			d.add(at, "is given twice, first in line %d; remove one", first)
			continue
		}
		own[key.Value] = key.Line
		target, ok := known[key.Value]
		if !ok {
			d.add(at, "%s", unknownKey(key.Value, known))
			continue
		}
		if merged && s.has(key.Value) {
			continue
		}
		s.keys[key.Value] = at
		d.decode(value, target, at.field)
	}
	for _, m := range merges {
		d.merge(m, v, s)
	}
}

// merge reads the mapping or mappings that << names.
func (d *decoder) merge(n *yaml.Node, v reflect.Value, s *section) {
	sources := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		sources = n.Content
	}
	for _, source := range sources {
		target := source
		if source.Kind == yaml.AliasNode {
			target = source.Alias
		}
		// A merged mapping that merges again could name itself.
		if d.values++; target.Kind != yaml.MappingNode || d.values >= maxValues || mergesAgain(target) {
			d.add(place{source.Line, source.Column, s.field}, "<< must name an anchored mapping without a << of its own")
			continue
		}
		d.decodeMapping(target, v, s, true)
	}
}

func mergesAgain(n *yaml.Node) bool {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() == "!!merge" {
			return true
		}
	}
	return false
}

// fields maps the keys of a section to the struct's fields; embedded
// structs other than section count as the struct's own.
func fields(v reflect.Value) map[string]reflect.Value {
	m := map[string]reflect.Value{}
	for i := range v.NumField() {
		switch f := v.Type().Field(i); {
		case f.Tag.Get("yaml") != "":
			m[f.Tag.Get("yaml")] = v.Field(i)
		case f.Anonymous && f.Type != reflect.TypeFor[section]():
			for key, field := range fields(v.Field(i)) {
				m[key] = field
			}
		}
	}
	return m
}

// kindName names a YAML node for people.
func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		return quote(n.Value)
	}
}

// quote shows a value of the file, shortened.
func quote(s string) string {
	if r := []rune(s); len(r) > 48 {
		s = string(r[:45]) + "..."
	}
	return fmt.Sprintf("%q", s)
}

func join(field, key string) string {
	return strings.TrimPrefix(field+"."+key, ".")
}
