package rescue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/fault"
)

// agentCommand builds the command for the agent with these fixed words. As
// root it runs as it is, else below sudo: the password travels as the first
// line of standard input, never as an argument or in the environment. The
// request follows behind the marker in both cases.
func (s *Session) agentCommand(ctx context.Context, path string, request []byte, words ...string) (command, error) {
	line := quote(path) + " " + strings.Join(words, " ")
	stdin := append([]byte(api.StdinMarker+"\n"), request...)
	if !s.isRoot() {
		password, err := s.sudoPassword(ctx)
		if err != nil {
			return command{}, err
		}
		if strings.ContainsAny(password, "\r\n\x00") {
			return command{}, fault.Operator("ask the provider for a new rescue boot", "the rescue password holds a line break and cannot be given to sudo")
		}
		line = "sudo -k -S -p '' -- " + line
		stdin = append([]byte(password+"\n"), stdin...)
	}
	return command{line: line, name: "agent " + strings.Join(words, " "), stdin: stdin}, nil
}

// provenCommand is agentCommand for the agent that EnsureAgent has proved.
func (s *Session) provenCommand(ctx context.Context, request []byte, words ...string) (command, error) {
	path, err := s.agentPath()
	if err != nil {
		return command{}, err
	}
	return s.agentCommand(ctx, path, request, words...)
}

// call runs the agent and decodes its one answer.
func call[T any](ctx context.Context, s *Session, request any, words ...string) (T, error) {
	var zero T
	var body []byte
	if request != nil {
		var err error
		if body, err = json.Marshal(request); err != nil {
			return zero, fault.Operator("", "the request for the agent cannot be encoded: %w", err)
		}
		body = append(body, '\n')
	}
	c, err := s.provenCommand(ctx, body, words...)
	if err != nil {
		return zero, err
	}
	return answer[T](ctx, s, c)
}

// answer runs a command whose standard output is one api.Answer.
func answer[T any](ctx context.Context, s *Session, c command) (T, error) {
	var zero T
	var line []byte
	c.onLine = func(l []byte) error {
		line = append(line[:0], l...)
		return nil
	}
	err := s.exec(ctx, c)
	var failed *CommandError
	if err != nil && !errors.As(err, &failed) {
		return zero, err
	}
	return answered[T](s, c, line, failed)
}

// answered decodes the agent's one answer.
func answered[T any](s *Session, c command, line []byte, failed *CommandError) (T, error) {
	var zero T
	var got api.Answer[T]
	if json.Unmarshal(line, &got) != nil || (got.Value == nil && got.Error == nil) {
		return zero, s.noAnswer(c, failed)
	}
	if got.Error != nil {
		return zero, got.Error.Err()
	}
	return *got.Value, nil
}

// noAnswer explains a command that ended without the agent's answer. The
// agent always answers; exit status 1 without a word below sudo means that
// sudo never started it.
func (s *Session) noAnswer(c command, failed *CommandError) error {
	if failed == nil {
		return fault.Operator("check that the worker and its agent are of one version", "%s at %s ended without an answer", c.name, s.target.addr())
	}
	if !s.isRoot() && failed.Exit == 1 && strings.HasPrefix(c.line, "sudo ") {
		return failure(fault.NeedsOperator, ErrSudo, failed,
			"compare the rescue password in the provider's console, or boot rescue again to get a new one",
			"sudo at %s refused user %q", s.target.addr(), s.target.User).WithTail(s.clean(failed.Tail))
	}
	return (&fault.Error{
		Class:   fault.NeedsOperator,
		Message: failed.Error() + " at " + s.target.addr() + " and gave no answer",
		Remedy:  "read its output, and check that the rescue system can run it",
		Cause:   failed,
	}).WithTail(s.clean(failed.Tail))
}

// clean takes the password out of remote output, should it ever be there.
func (s *Session) clean(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.password == "" {
		return text
	}
	return strings.ReplaceAll(text, s.password, "[password]")
}

// quote makes one word of a path for a POSIX shell.
func quote(path string) string {
	if path != "" && strings.IndexFunc(path, func(r rune) bool { return r != '/' && !plain(r) }) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// word checks a key or boot ID that becomes a word of a command.
func word(what, value string) (string, error) {
	odd := strings.IndexFunc(value, func(r rune) bool { return !plain(r) })
	if value == "" || len(value) > 128 || odd >= 0 || value[0] == '-' {
		return "", fault.Operator("use up to 128 letters, digits, dots, dashes and underscores", "%q is no %s", value, what)
	}
	return value, nil
}

// plain reports whether a shell takes the character as it is.
func plain(r rune) bool {
	return r == '.' || r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// oneLine runs a plain command that prints one line.
func (s *Session) oneLine(ctx context.Context, line string) (string, error) {
	var out []byte
	err := s.exec(ctx, command{line: line, name: line, onLine: func(l []byte) error {
		if len(out) == 0 {
			out = append(out, bytes.TrimSpace(l)...)
		}
		return nil
	}})
	var failed *CommandError
	if errors.As(err, &failed) {
		return "", fault.Operator("check that the server runs its Linux rescue system", "%w at %s", failed, s.target.addr()).WithTail(failed.Tail)
	}
	return string(out), err
}
