// Package chaos provisions a lot while everything around it breaks at random.
// The seed decides what breaks and when; with the same seed the same faults
// come at the same moments, though not to the millisecond.
package chaos

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/ironlot/ironlot/tests/rig"
)

// settings are the flags of a chaos run. Without them it is a short one.
type settings struct {
	seed     uint64
	nodes    int
	duration time.Duration
}

var (
	chosen settings                          //nolint:gochecknoglobals // flags
	bases  = rig.Bases{Net: 103}             //nolint:gochecknoglobals // addresses are the process's
	_      = registerFlags(flag.CommandLine) //nolint:gochecknoglobals // flags
)

func registerFlags(f *flag.FlagSet) bool {
	f.Uint64Var(&chosen.seed, "seed", 0, "of the faults; 0: from the clock")
	f.IntVar(&chosen.nodes, "nodes", 8, "servers of the lot")
	f.DurationVar(&chosen.duration, "for", 20*time.Second, "how long faults strike; lots are provisioned again and again until then")
	return true
}

func TestMain(m *testing.M) {
	flag.Parse()
	if chosen.seed == 0 {
		chosen.seed = uint64(time.Now().UnixNano())
	}
	os.Exit(m.Run())
}

// replay is the command that repeats a run.
func (s settings) replay() string {
	return fmt.Sprintf("make chaos SEED=%d NODES=%d FOR=%s", s.seed, s.nodes, s.duration)
}
