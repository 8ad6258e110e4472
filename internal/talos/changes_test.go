package talos_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/talos"
)

func TestChangesNameKeysAndNoValues(t *testing.T) {
	t.Parallel()
	old := "machine:\n  token: old-secret\n  type: worker\n  nodeLabels: {a: b}\n---\nkind: VLANConfig\nname: lan\nvlanID: 5\n"
	same, err := talos.Changes([]byte(old), []byte(old))
	require.NoError(t, err)
	require.Empty(t, same)
	fresh := "machine:\n  token: new-secret\n  type: worker\n  nodeLabels: {a: b, c: d}\n---\nkind: VLANConfig\nname: lan\nvlanID: 6\n---\nkind: HostnameConfig\nhostname: n1\n"
	keys, err := talos.Changes([]byte(old), []byte(fresh))
	require.NoError(t, err)
	require.Equal(t, []string{"HostnameConfig.hostname", "HostnameConfig.kind", "VLANConfig/lan.vlanID", "machine.nodeLabels.c", "machine.token"}, keys)
	_, err = talos.Changes([]byte("machine: {token: hunter2"), []byte(old))
	require.Error(t, err)
	require.NotContains(t, err.Error(), "hunter2")
}
