package near

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNames(t *testing.T) {
	t.Parallel()
	known := []string{"node-1", "node-2", "edge"}
	for typed, want := range map[string]string{
		"node1":  "node-1",
		"ndoe-2": "node-2",
		"node-7": "", // any of them
		"egde":   "edge",
		"router": "",
	} {
		require.Equal(t, want, Name(typed, known), typed)
	}
	require.Equal(t, "node-1", Word("node-7", known))
	require.Equal(t, "did you mean edge? Otherwise name one of edge, node-1, node-2", OneOf("edg", known))
	require.Equal(t, "name one of edge, node-1, node-2", OneOf("node-7", known))
}
