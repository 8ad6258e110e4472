package simulated

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// shell understands the commands that internal/rescue sends, and nothing
// else. It reads standard input byte by byte where a command does, so that
// what stands behind a password is left for the next program.
type shell struct {
	b              *boot
	user           string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// run gives the exit status.
func (s *shell) run(ctx context.Context, line string) int {
	words, err := splitWords(line)
	if err != nil || len(words) == 0 {
		return s.fail(2, "sh: 1: Syntax error: %v", err)
	}
	switch strings.Join(words, " ") {
	case "uname -m":
		fmt.Fprintln(s.stdout, s.b.m.opts.Machine)
		return 0
	case "cat /proc/sys/kernel/random/boot_id":
		fmt.Fprintln(s.stdout, s.b.id)
		return 0
	}
	if words[0] == "sudo" {
		return s.sudo(ctx, words[1:])
	}
	return s.agent(ctx, words, s.user == "root")
}

// sudo is `sudo -k -S -p ” -- COMMAND`: -k asks always, -S reads the
// password from standard input, -p sets an empty prompt.
func (s *shell) sudo(ctx context.Context, words []string) int {
	want := []string{"-k", "-S", "-p", "", "--"}
	if len(words) <= len(want) {
		return s.fail(1, "usage: sudo -k -S -p prompt -- command")
	}
	for i, w := range want {
		if words[i] != w {
			return s.fail(1, "sudo: the lab knows only -k -S -p '' --, not %q", words[i])
		}
	}
	if !s.b.m.opts.NoPassword {
		given, err := readLine(s.stdin)
		if err != nil || given != s.b.rescue.Password {
			return s.fail(1, "Sorry, try again.\nsudo: no password was provided\nsudo: 1 incorrect password attempt")
		}
	}
	return s.agent(ctx, words[len(want):], true)
}

// agent runs the agent's own code when the file is there and executable.
func (s *shell) agent(ctx context.Context, words []string, root bool) int {
	files, err := newFiles(s.b.rootDir())
	if err != nil {
		return s.fail(127, "sh: 1: %s: not found", words[0])
	}
	defer files.Close()
	info, err := files.root.Stat(local(words[0]))
	switch {
	case !strings.HasPrefix(words[0], "/") || err != nil:
		return s.fail(127, "sh: 1: %s: not found", words[0])
	case !info.Mode().IsRegular() || info.Mode()&0o100 == 0:
		return s.fail(126, "sh: 1: %s: Permission denied", words[0])
	}
	h := &rescueHost{b: s.b, exe: filepath.Join(s.b.rootDir(), words[0]), root: root}
	return h.runAgent(ctx, words[1:], s.stdin, s.stdout, s.stderr)
}

func (s *shell) fail(status int, format string, args ...any) int {
	fmt.Fprintf(s.stderr, format+"\n", args...)
	return status
}

// readLine reads up to a line feed and not a byte more.
func readLine(r io.Reader) (string, error) {
	const longest = 1024
	var line strings.Builder
	b := make([]byte, 1)
	for line.Len() < longest {
		if _, err := io.ReadFull(r, b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			return line.String(), nil
		}
		line.WriteByte(b[0])
	}
	return "", errors.New("the line is too long")
}

// splitWords splits as a shell does, with single quotes and backslashes.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quoted, in := false, false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case c == '\'':
			quoted, in = !quoted, true
		case quoted:
			word.WriteByte(c)
		case c == '\\' && i+1 < len(line):
			i++
			in = true
			word.WriteByte(line[i])
		case c == ' ':
			if in {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		case strings.IndexByte("\"$`;&|<>()*?#~\n", c) >= 0:
			return nil, fmt.Errorf("unexpected %q", c)
		default:
			in = true
			word.WriteByte(c)
		}
	}
	if quoted {
		return nil, errors.New("unterminated quoted string")
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}
