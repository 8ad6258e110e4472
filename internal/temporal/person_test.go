package temporal_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/temporal"
)

// TestPerson: a user and a host, never a process.
func TestPerson(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, "ann@"+host, temporal.Person(variables{"SUDO_USER": "ann"}), "who became root is known still")
	require.Regexp(t, `^[^@\d][^@]*@.+$`, temporal.Person(variables{}))

	o, err := temporal.Resolve(temporal.Options{Identity: "ann@desk", Lookup: variables{}})
	require.NoError(t, err)
	require.Equal(t, "ann@desk", o.Identity)
}
