package lot_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/ironlot/ironlot/internal/lot"
)

// validate checks a lot file against the published schema.
func validate(t *testing.T, data []byte) error {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(lot.Schema()))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource("lot.schema.json", document))
	schema, err := compiler.Compile("lot.schema.json")
	require.NoError(t, err)
	var value any
	if err := yaml.Unmarshal(data, &value); err != nil {
		return err
	}
	// Through JSON, so that the validator sees the types that it knows.
	text, err := json.Marshal(value)
	require.NoError(t, err)
	value, err = jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	return schema.Validate(value)
}

func TestSchemaAcceptsGood(t *testing.T) {
	t.Parallel()
	require.NoError(t, validate(t, []byte(good)))
}

func TestSchemaIsPublished(t *testing.T) {
	t.Parallel()
	published, err := os.ReadFile("../../docs/lot.schema.json")
	require.NoError(t, err)
	require.Equal(t, string(lot.Schema()), string(published), "copy internal/lot/lot.schema.json to docs/")
}
