package testenv

import (
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPortsAreOnesOwn: what one gets no other does, and it can be listened on.
func TestPortsAreOnesOwn(t *testing.T) {
	t.Parallel()
	const askers = 50
	ports := make([]int, askers)
	var wg sync.WaitGroup
	for i := range ports {
		wg.Go(func() { ports[i] = Port() })
	}
	wg.Wait()
	seen := map[int]bool{}
	for _, port := range ports {
		require.False(t, seen[port], "%d was given twice", port)
		seen[port] = true
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		require.NoError(t, err)
		require.NoError(t, l.Close())
		_, err = net.Listen("unix", "@ironlot-test-port-"+strconv.Itoa(port))
		require.Error(t, err, "another process must not get %d", port)
	}
}
