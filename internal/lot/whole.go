package lot

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// Check reads a lot file and makes the configs of its nodes, or of those that are
// named alone. All that is wrong with the file and with the configs is told
// together, as Problems, and with it a name that no node has. With an error there
// is no lot, and of what was rendered the warnings alone.
func Check(ctx context.Context, path string, names []string) (*Lot, *Rendered, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, &Rendered{}, Problems{{File: path, Message: err.Error()}}
	}
	j := &journal{file: path}
	l := parse(j, data)
	if l == nil {
		return nil, &Rendered{}, j.err()
	}
	var unknown error
	if len(names) > 0 && !j.has("nodes") { // else the names may be what is wrong
		unknown = l.Only(names)
	}
	if j.has("cluster") {
		l.Talosconfig, l.Kubeconfig = "", ""
	}
	rendered, err := l.render(ctx, j, j.unsound(l))
	if err != nil {
		return nil, &Rendered{}, err
	}
	if err := errors.Join(j.err(), unknown); err != nil {
		return nil, &Rendered{Warnings: rendered.Warnings}, err
	}
	return l, rendered, nil
}

// has reports whether there is a mistake in a part of the file.
func (j *journal) has(part string) bool {
	return slices.ContainsFunc(j.problems, func(p Problem) bool {
		key, _ := cut(p.Field)
		return key == part
	})
}

// unsound are the nodes whose config cannot be judged, by their field: what it is
// made of is wrong already, and more would be said about it than is true.
func (j *journal) unsound(l *Lot) map[string]bool {
	wrong := map[string]bool{}
	for _, p := range j.problems {
		field, key := nodeField(p.Field)
		if field == "" || slices.Contains(apart(), key) {
			continue
		}
		if field != "defaults" {
			wrong[field] = true
			continue
		}
		for _, n := range l.Nodes {
			wrong[n.field] = true
		}
	}
	for _, n := range l.Nodes {
		if n.Run.ServerID == "" || n.Run.ServerName == "" { // which configs may ask for
			wrong[n.field] = true
		}
	}
	return wrong
}

// apart are the keys of a node that its config is not made of.
func apart() []string {
	return []string{"server", "systemDisk", "secondaryDisks", "delivery", "reprovision", "rescue", "boot", "talosPort", "ready", "timeouts", "bootstrap"}
}

// nodeField splits the field of a mistake into the node, or the defaults, and
// the key there. Empty: it is of neither.
func nodeField(field string) (node, key string) {
	part, rest := cut(field)
	switch part {
	case "defaults":
		key, _ = cut(rest)
		return part, key
	case "nodes":
		node, rest, _ = strings.Cut(field, ".")
		key, _ = cut(rest)
		return node, key
	default:
		return "", ""
	}
}

// cut gives the first key of a field, and what follows it: of nodes[2].server.id
// these are nodes and 2].server.id, of defaults.config defaults and config.
func cut(field string) (first, rest string) {
	if i := strings.IndexAny(field, ".["); i >= 0 {
		return field[:i], field[i+1:]
	}
	return field, ""
}
