package talos

import (
	"fmt"
	"regexp"
	"strings"
)

const hidden = "…"

var (
	// Values of keys that are named like secrets, in YAML and in JSON.
	secretPair = regexp.MustCompile(`(?i)[\w-]*(?:token|secret|key|crt|cert|pass|auth|psk)[\w-]*["']?[ \t]*:[ \t]*["']?([^\s"',}]{4,})`)
	// Long words with letters and digits: keys, certificates, hashes.
	longWord = regexp.MustCompile(`[\w+/=.-]{20,}`)
	// What YAML errors quote of a value.
	quoted = regexp.MustCompile("`[^`]*`")
	// User and password in a URL.
	userinfo = regexp.MustCompile(`://[^/@\s]+@`)
	// A key of a YAML mapping.
	yamlKey = regexp.MustCompile(`^[\s-]*([\w./-]+):`)
)

// redact makes one line of an error text about source that quotes no secret.
// Machinery's errors quote values in three ways: whole YAML fragments (unknown
// keys), backquoted beginnings of values (type errors) and plain values.
func redact(text string, source []byte) string {
	var out string
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		part, isItem := strings.CutPrefix(strings.TrimSpace(line), "* ") // of a list of errors
		if i > 0 && !isItem {                                            // a YAML fragment: its keys say enough
			key := yamlKey.FindStringSubmatch(line)
			if key == nil {
				continue
			}
			part = key[1]
			if strings.HasSuffix(line, ":") {
				part += ":"
			}
		}
		switch {
		case out == "":
			out = part
		case strings.HasSuffix(out, ":"):
			out += " " + part
		default:
			out += "; " + part
		}
	}
	out = strings.TrimSuffix(out, ":")
	out = quoted.ReplaceAllString(out, "`"+hidden+"`")
	out = userinfo.ReplaceAllString(out, "://"+hidden+"@")
	for _, secret := range secretsOf(source) {
		out = strings.ReplaceAll(out, secret, hidden)
	}
	return out
}

// secretsOf lists the words of a config that could be secrets. It reads the
// text, not the YAML, because broken YAML has secrets too.
func secretsOf(source []byte) []string {
	var out []string
	for _, m := range secretPair.FindAllSubmatch(source, -1) {
		out = append(out, string(m[1]))
	}
	for _, word := range longWord.FindAll(source, -1) {
		w := string(word)
		if strings.ContainsAny(w, "0123456789") && strings.ContainsAny(strings.ToLower(w), "abcdefghijklmnopqrstuvwxyz") {
			out = append(out, w)
		}
	}
	return out
}

// flatten gives the single errors of nested lists of errors, each with the
// text that its wrappers put before it.
func flatten(err error) []string {
	children := joined(err)
	if children == nil {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok || inner.Unwrap() == nil {
			return []string{err.Error()}
		}
		texts := flatten(inner.Unwrap())
		prefix, found := strings.CutSuffix(err.Error(), inner.Unwrap().Error())
		if !found {
			return []string{err.Error()}
		}
		for i := range texts {
			texts[i] = prefix + texts[i]
		}
		return texts
	}
	var texts []string
	for _, child := range children {
		texts = append(texts, flatten(child)...)
	}
	return texts
}

// joined gives the parts of a list of errors, nil for any other error.
func joined(err error) []error {
	switch list := err.(type) { //nolint:errorlint // of this very error: it is one level of a tree
	case interface{ WrappedErrors() []error }: // hashicorp/go-multierror
		return list.WrappedErrors()
	case interface{ Unwrap() []error }: // errors.Join
		return list.Unwrap()
	default:
		return nil
	}
}

// place names files in an error.
func place(base string, patches []Named) string {
	if len(patches) == 0 {
		return base
	}
	names := make([]string, len(patches))
	for i, p := range patches {
		names[i] = p.Name
	}
	return fmt.Sprintf("%s with %s", base, strings.Join(names, ", "))
}
