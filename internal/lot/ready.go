package lot

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/ironlot/ironlot/internal/run"
)

// ready checks when a node counts as done.
func (c *checker) ready(node *run.Node, s *readyPart) {
	if s.has("accept") {
		node.Ready.Accept = nil // the defaults' list gives way as a whole
	}
	words := make([]string, 0, len(run.Shortfalls()))
	for _, word := range run.Shortfalls() {
		words = append(words, string(word))
	}
	for _, t := range s.Accept {
		if t.set {
			c.check(t.place, checkWord(t.value, words))
			node.Ready.Accept = append(node.Ready.Accept, run.Shortfall(t.value))
		}
	}
	node.Ready.Hold = c.timeout(s.Hold, node.Ready.Hold)
	if s.Hold.set && node.Ready.Hold > node.Timeouts.ReadyOr() {
		c.add(s.Hold.place, "is %s, and timeouts.ready gives up after %s; make it shorter", node.Ready.Hold, node.Timeouts.ReadyOr())
	}
	if s.has("labels") {
		node.Ready.Labels = c.labels(s.Labels) // the defaults' list gives way as a whole
	}
	if t := s.ProviderID; t.set {
		c.check(t.place, checkFilled(t.value))
		node.Ready.ProviderID = t.value
	}
	for _, key := range []string{"labels", "providerID"} {
		if s.has(key) && !c.kubernetes {
			c.add(s.at(key), "is asked of Kubernetes; add cluster.kubeconfig, or remove it")
		}
	}
}

// labels gives the labels that Kubernetes must show; one without a value must
// be there, with whatever value.
func (c *checker) labels(items []valueItem) map[string]string {
	labels := map[string]string{}
	for i := range items {
		item := &items[i]
		if item.keys == nil {
			continue
		}
		name := c.must(&item.section, "name", "name: node.kubernetes.io/instance-type", item.Name)
		switch _, twice := labels[name]; {
		case !item.Name.set:
		case len(content.IsLabelKey(name)) > 0:
			c.add(item.Name.place, "must be the key of a Kubernetes label, such as node.kubernetes.io/instance-type, not %s", quote(name))
		case twice:
			c.add(item.Name.place, "is there twice; keep one")
		}
		c.check(item.Value.place, checkFilled(item.Value.value))
		labels[name] = item.Value.value
	}
	return labels
}

// checkFilled refuses a placeholder that no node has a value for.
func checkFilled(text string) error {
	filled := run.Node{VLAN: run.VLANAuto}.Fill(text, 0)
	if !strings.Contains(filled, "${ironlot.") {
		return nil
	}
	return fmt.Errorf("asks for a value that is not known here: %s; use name, lot, zone, server.id, server.name, or vlan with `vlan: auto`", quote(text))
}
