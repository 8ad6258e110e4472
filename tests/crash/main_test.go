// Package crash kills, freezes and cuts off whatever takes part in a run, in
// every phase, and proves that nothing is lost and nothing happens twice.
package crash

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/devserver"
	"github.com/ironlot/ironlot/internal/testenv"
	"github.com/ironlot/ironlot/tests/rig"
)

// shared is what all tests of the process use, set up once by TestMain.
type shared struct {
	bin   rig.Binaries
	dir   string
	main  *devserver.Server // for all tests that leave it alone
	bases rig.Bases
	why   string // not empty: the tests cannot run
}

var common = shared{bases: rig.Bases{Net: 102}} //nolint:gochecknoglobals // set up once by TestMain

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for machines and time-outs most of the time, so many run
	// side by side even on few cores.
	if err := flag.Set("test.parallel", "24"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "ironlot-crash-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		common.dir = dir
		if err := common.setUp(); err != nil && os.Getenv("CI") != "" {
			fmt.Fprintln(os.Stderr, "the crash tests cannot be set up:", err)
			return 1
		} else if err != nil {
			common.why = err.Error()
		}
		if common.main != nil {
			defer common.main.Stop() //nolint:errcheck // its database goes too
		}
		return m.Run()
	}())
}

func (s *shared) setUp() (err error) {
	if s.bin, err = rig.Build(s.dir); err != nil {
		return err
	}
	s.main, err = rig.Temporal(s.bin.Temporal, s.dir, "main")
	return err
}

// needed skips where the tests cannot run; in CI that is an error before.
func needed(t *testing.T) {
	t.Helper()
	if common.why != "" {
		testenv.Lacks(t, common.why)
	}
}

// within is a context that bounds a wait.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error, r *rig.Rig) {
	t.Helper()
	if err != nil {
		require.NoError(t, err, "workers' log:\n%s", r.LogTail())
	}
}
