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

// validator compiles the published schema into a check of lot files.
func validator(t *testing.T) func(data []byte) error {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(lot.Schema()))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("lot.schema.json", document))
	schema, err := compiler.Compile("lot.schema.json")
	require.NoError(t, err)
	return func(data []byte) error {
		var value any
		if err := yaml.Unmarshal(data, &value); err != nil {
			return err
		}
		// Through JSON, so that the validator sees the types that it knows.
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err != nil {
			return err
		}
		return schema.Validate(value)
	}
}

func TestSchemaAcceptsGood(t *testing.T) {
	t.Parallel()
	require.NoError(t, validator(t)([]byte(good)))
}

func TestSchemaIsPublished(t *testing.T) {
	t.Parallel()
	published, err := os.ReadFile("../../docs/lot.schema.json")
	require.NoError(t, err)
	require.Equal(t, string(lot.Schema()), string(published), "copy internal/lot/lot.schema.json to docs/")
}
