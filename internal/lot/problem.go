package lot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one mistake in a lot file: where it is, and what to do.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`   // from 1; 0: the file as a whole
	Column  int    `json:"column,omitempty"` // from 1
	Field   string `json:"field,omitempty"`  // such as nodes[2].server.id
	Message string `json:"message"`
}

// String is the mistake as one line: file:line:column: field: message.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems are all mistakes of a lot file, in the order of its lines.
type Problems []Problem

// Error gives one line a mistake.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// place is where a value stands in the lot file.
type place struct {
	line, column int
	field        string
}

// journal collects the mistakes of one file.
type journal struct {
	file     string
	problems Problems
	seen     map[Problem]bool
}

// add notes a mistake; the same one at the same place counts once, so that
// a default which many nodes share is reported a single time.
func (j *journal) add(at place, format string, args ...any) {
	p := Problem{File: j.file, Line: at.line, Column: at.column, Field: at.field, Message: fmt.Sprintf(format, args...)}
	if j.seen[p] {
		return
	}
	if j.seen == nil {
		j.seen = map[Problem]bool{}
	}
	j.seen[p] = true
	j.problems = append(j.problems, p)
}

// err gives all mistakes sorted by place, or nil.
func (j *journal) err() error {
	if len(j.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(j.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return j.problems
}
