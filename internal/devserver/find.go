package devserver

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ironlot/ironlot/internal/fault"
)

// BuildCommand builds the Temporal CLI from the source tree.
const BuildCommand = "go -C tools build -o ../bin/temporal github.com/temporalio/cli/cmd/temporal"

// Find gives the path of the `temporal` binary: beside the running program,
// in its bin/, in bin/ of the working directory, else on PATH.
func Find() (string, error) {
	var dirs []string
	if self, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(self), filepath.Join(filepath.Dir(self), "bin"))
	}
	if cwd, err := os.Getwd(); err == nil {
		dirs = append(dirs, filepath.Join(cwd, "bin"))
	}
	return find(dirs)
}

func find(dirs []string) (string, error) {
	for _, dir := range dirs {
		path := filepath.Join(dir, "temporal")
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	if path, err := exec.LookPath("temporal"); err == nil {
		return path, nil
	}
	return "", fault.Operator("build it with `"+BuildCommand+"` (about five minutes), or set TEMPORAL_ADDRESS to use a server that runs already",
		"the `temporal` binary with Temporal's dev server is not there (looked beside this program, in bin/ and on PATH)")
}
