// Package rig breaks Ironlot in tests: real workers as processes that can be
// killed and frozen, Temporal's server on a file, a proxy between the two that
// can hold what they say, and the lab, which can hold what machines do.
package rig

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ironlot/ironlot/internal/devserver"
)

// Binaries are the programs that a rig runs.
type Binaries struct {
	Dir      string // holds worker and agent-linux-amd64
	Temporal string
}

// Build builds the worker and the agent from the module in the directory
// above the test's, two levels up, into dir, and finds Temporal.
func Build(dir string) (Binaries, error) {
	if err := os.Chdir("../.."); err != nil { // the module's root, where bin/ is
		return Binaries{}, err
	}
	temporal, err := devserver.Find()
	if err != nil {
		return Binaries{}, err
	}
	for out, pkg := range map[string]string{"worker": "./worker", "agent-linux-amd64": "./agent"} {
		build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, out), pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := build.CombinedOutput(); err != nil {
			return Binaries{}, fmt.Errorf("%s does not build: %w\n%s", pkg, err, text)
		}
	}
	return Binaries{Dir: dir, Temporal: temporal}, nil
}
