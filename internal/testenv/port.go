package testenv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"

	"github.com/ironlot/ironlot/internal/listen"
)

// The range lies below the one from which kernels give ports to connections
// and to listeners that ask for none (from 32768 on in Linux, 49152 elsewhere):
// nobody gets one of these by chance between the choice and its use.
const (
	firstPort = 20000
	lastPort  = 29999
)

// claims keeps this process's claims; they end with the process.
var claims struct { //nolint:gochecknoglobals // claims are the process's, not a test's
	sync.Mutex
	kept []net.Listener
}

// Port is a TCP port of 127.0.0.1 on which nothing listens and that no other
// process which asks here gets while this one lives.
func Port() int {
	claims.Lock()
	defer claims.Unlock()
	ctx := context.Background() // the kernel answers at once
	for range lastPort - firstPort {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // any will do
		// An abstract socket is a lock that the kernel frees.
		claim, err := new(net.ListenConfig).Listen(ctx, "unix", fmt.Sprintf("@ironlot-test-port-%d", port))
		if err != nil {
			continue
		}
		if listen.Free(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) != nil {
			_ = claim.Close()
			continue
		}
		claims.kept = append(claims.kept, claim)
		return port
	}
	panic("no TCP port is free for tests")
}

// Nobody is an address on which nothing listens, nor will.
func Nobody() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(Port())) }
