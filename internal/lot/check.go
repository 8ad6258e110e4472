package lot

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ironlot/ironlot/internal/run"
)

// checker turns a file into a Lot and notes what does not fit.
type checker struct {
	*journal
	dir      string           // of the lot file: paths are relative to it
	files    map[string]error // what is known of the files that it names
	warnings []string

	kubernetes bool // the lot has a kubeconfig
}

// lot checks the whole file.
func (c *checker) lot(f *file) *Lot {
	c.exactly(f.at("apiVersion"), f.has("apiVersion"), f.APIVersion, APIVersion)
	c.exactly(f.at("kind"), f.has("kind"), f.Kind, Kind)
	l := &Lot{
		Name:        c.label(&f.section, "name", f.Name, 40),
		Lab:         f.Lab.value,
		Rollout:     c.rollout(&f.Rollout),
		Talosconfig: c.talosconfig(f),
		Context:     f.Cluster.Context.value,
	}
	l.talosconfigAt, l.kubeconfigAt = f.Cluster.Talosconfig.place, f.Cluster.Kubeconfig.place
	l.Kubeconfig = c.file(f.Cluster.Kubeconfig)
	c.kubernetes = f.Cluster.Kubeconfig.set
	base := run.Node{
		Lot:      l.Name,
		Provider: c.provider(f.Provider),
		Zone:     c.zone(&f.section, f.Zone),
		Image:    c.image(f),
		Lab:      l.Lab,
	}
	c.defaults(&f.Defaults)
	switch {
	case !f.has("nodes") || f.Nodes != nil && len(f.Nodes) == 0:
		c.add(f.at("nodes"), "names no server; list at least one")
	case len(f.Nodes) > MaxNodes:
		c.add(f.at("nodes"), "names %d servers, and a lot holds at most %d; split it", len(f.Nodes), MaxNodes)
		return l
	}
	for i := range f.Nodes {
		// One without keys is not a mapping, and was noted as such.
		if f.Nodes[i].keys != nil {
			l.Nodes = append(l.Nodes, c.node(base, &f.Defaults, &f.Nodes[i]))
		}
	}
	c.shared(&f.Defaults, f.Nodes)
	c.twice(f.Nodes)
	l.Warnings = c.warnings
	return l
}

// exactly checks one of the two lines that every lot file has.
func (c *checker) exactly(at place, has bool, t text, want string) {
	switch {
	case !has:
		c.add(at, "is missing; add \"%s: %s\"", at.field, want)
	case t.set && t.value != want:
		c.add(t.place, "must be %s, not %s", want, quote(t.value))
	}
}

// must gives a text's value; a missing key is a mistake.
func (c *checker) must(s *section, key, example string, t text) string {
	if !s.has(key) {
		c.add(s.at(key), "is missing; add it, such as %s", example)
	}
	return t.value
}

// check notes what a value's check found.
func (c *checker) check(at place, err error) {
	if err != nil {
		c.add(at, "%v", err)
	}
}

func (c *checker) label(s *section, key string, t text, limit int) string {
	c.must(s, key, key+": rack-1", t)
	if t.set {
		c.check(t.place, checkLabel(t.value, limit))
	}
	return t.value
}

func (c *checker) provider(t text) string {
	if !t.set {
		return providers()[0]
	}
	c.check(t.place, checkWord(t.value, providers()))
	return t.value
}

func (c *checker) zone(s *section, t text) string {
	c.must(s, "zone", "zone: fr-par-2", t)
	// No guess is offered: the nearest name is another place on earth.
	if t.set && !slices.Contains(zones(), t.value) {
		c.add(t.place, "must be a zone with Elastic Metal servers (%s), not %s", strings.Join(zones(), ", "), quote(t.value))
	}
	return t.value
}

func (c *checker) number(n number, otherwise, least, most int) int {
	if !n.set {
		return otherwise
	}
	if n.value < least || n.value > most {
		c.add(n.place, "must be from %d to %d, not %d", least, most, n.value)
	}
	return n.value
}

// rollout gives how the lot is worked through.
func (c *checker) rollout(r *rolloutPart) run.Rollout {
	out := run.Rollout{Parallel: c.number(r.Parallel, 0, 1, MaxNodes), Canary: c.number(r.Canary, 0, 1, MaxNodes)}
	if r.MaxStuck.set {
		most := c.number(r.MaxStuck, 0, 0, MaxNodes)
		out.MaxStuck = &most
	}
	return out
}

func (c *checker) timeout(t measure, otherwise time.Duration) time.Duration {
	if !t.set {
		return otherwise
	}
	d, err := parseTimeout(t.value)
	c.check(t.place, err)
	return d
}

// image checks the image section and warns about one that nothing vouches
// for.
func (c *checker) image(f *file) run.Image {
	s := &f.Image
	if !f.has("image") {
		c.add(f.at("image"), "is missing; add it with the url of a Talos disk image")
	}
	if s.keys == nil {
		return run.Image{}
	}
	image := run.Image{
		URL:       c.must(&s.section, "url", "url: https://factory.talos.dev/image/.../metal-amd64.raw.zst", s.URL),
		SHA256:    c.digest(s.SHA256),
		RawSHA256: c.digest(s.RawSHA256),
		Verify:    run.Verify(s.Verify.value),
	}
	if s.Verify.set {
		c.check(s.Verify.place, checkWord(s.Verify.value, []string{string(run.VerifyFull), string(run.VerifyData)}))
	}
	if !s.URL.set {
		return image
	}
	c.check(s.URL.place, checkURL(image.URL))
	if u, err := url.Parse(image.URL); err == nil && u.RawQuery != "" {
		c.warn("the image's URL has a query, which every run's history shows in clear; make sure that it holds no secret")
	}
	if !s.SHA256.set && !s.RawSHA256.set {
		c.warn("the image has no digest, so nothing tells a changed or damaged download from the right one; add image.sha256 or image.rawSha256")
	}
	return image
}

func (c *checker) digest(t text) string {
	if !t.set {
		return ""
	}
	digest, err := parseDigest(t.value)
	c.check(t.place, err)
	return digest
}

// talosconfig gives the path of the cluster's client config.
func (c *checker) talosconfig(f *file) string {
	if !f.has("cluster") {
		c.add(f.at("cluster"), "is missing; add it with the path of the cluster's talosconfig")
	}
	if f.Cluster.keys == nil {
		return ""
	}
	c.must(&f.Cluster.section, "talosconfig", "talosconfig: ./talosconfig", f.Cluster.Talosconfig)
	return c.file(f.Cluster.Talosconfig)
}

// file checks that a named file is there, and gives its path; empty: it is not.
func (c *checker) file(t text) string {
	if !t.set {
		return ""
	}
	path := t.value
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.dir, path)
	}
	err, known := c.files[path]
	if !known {
		_, err = readFile(path)
		c.files[path] = err
	}
	switch {
	case err == nil:
		return path
	case strings.HasPrefix(t.value, "~"):
		c.add(t.place, "names %s, and ~ is not expanded here; write the whole path, or one relative to the lot file", quote(t.value))
	default:
		c.add(t.place, "names %s: %v", quote(t.value), err)
	}
	return ""
}

// warn notes what a person should know but may want.
func (c *checker) warn(sentence string) {
	if !slices.Contains(c.warnings, sentence) {
		c.warnings = append(c.warnings, sentence)
	}
}
