package lot

import _ "embed"

//go:embed lot.schema.json
var schema []byte

// Schema is the JSON Schema (draft 2020-12) of lot files, for editors. It
// tells the shape alone: what needs files, or a look at several values
// together, is checked by Load.
func Schema() []byte { return append([]byte(nil), schema...) }
