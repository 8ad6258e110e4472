package talos

import (
	"encoding/json"
	"maps"

	"github.com/ironlot/ironlot/internal/fault"
)

// Bundle is a part of what a node's machine config is made of, as it travels
// sealed: one for all nodes of a lot with the same base, a small one for what
// is a node's own. It is secret.
type Bundle struct {
	Base    *Named            `json:"base,omitempty"`
	Patches []Named           `json:"patches,omitempty"`
	Values  map[string]string `json:"values,omitempty"`
}

// String says what it is and nothing of it.
func (b Bundle) String() string { return "parts of a machine config" }

// GoString is String, so that %#v shows no secret either.
func (b Bundle) GoString() string { return b.String() }

// Empty reports whether there is nothing in it.
func (b Bundle) Empty() bool { return b.Base == nil && len(b.Patches) == 0 && len(b.Values) == 0 }

// Encode gives the bytes that are sealed.
func (b Bundle) Encode() ([]byte, error) { return json.Marshal(b) }

// named is a Named as text: base64 of a config does not compress.
type named struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// MarshalJSON keeps the document as text.
func (n Named) MarshalJSON() ([]byte, error) { return json.Marshal(named{n.Name, string(n.Data)}) }

// UnmarshalJSON is the other way around.
func (n *Named) UnmarshalJSON(data []byte) error {
	var in named
	err := json.Unmarshal(data, &in)
	n.Name, n.Data = in.Name, []byte(in.Text)
	return err
}

// ParseBundle reads what Encode made. The error is NeedsOperator and quotes
// nothing.
func ParseBundle(data []byte) (Bundle, error) {
	var b Bundle
	if json.Unmarshal(data, &b) != nil {
		return b, fault.Operator("start the run again with this release's starter", "the sealed machine config is not in the form of this release")
	}
	return b, nil
}

// Input joins the lot's part and the node's own.
func (b Bundle) Input(own Bundle, hostname string, values map[string]string) RenderInput {
	in := RenderInput{Hostname: hostname, Values: map[string]string{}}
	if b.Base != nil {
		in.Base = *b.Base
	}
	in.Patches = append(append(in.Patches, b.Patches...), own.Patches...)
	for _, from := range []map[string]string{values, b.Values, own.Values} {
		maps.Copy(in.Values, from)
	}
	return in
}
