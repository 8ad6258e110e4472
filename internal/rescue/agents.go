package rescue

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ironlot/ironlot/internal/fault"
)

// Binary is an agent executable on the worker's machine.
type Binary struct {
	Path   string
	Arch   string // GOARCH
	SHA256 string // hex
	Size   int64  // bytes
}

// Agents are the agent executables by GOARCH.
type Agents map[string]Binary

// architectures lists what the agent is built for.
func architectures() []string { return []string{"amd64", "arm64"} }

// AgentDirs lists where the agent executables are looked for when nothing
// else is said: beside the running program, and in bin of the current
// directory.
func AgentDirs() []string {
	dirs := []string{"bin"}
	if self, err := os.Executable(); err == nil {
		dirs = append([]string{filepath.Dir(self)}, dirs...)
	}
	return dirs
}

// FindAgents looks for the files agent-linux-amd64 and agent-linux-arm64 in
// directories, the first one wins. It is an error when there is none at all;
// Missing tells what else is not there.
func FindAgents(dirs ...string) (Agents, error) {
	agents := Agents{}
	for _, arch := range architectures() {
		for _, dir := range dirs {
			binary, err := readBinary(filepath.Join(dir, "agent-linux-"+arch), arch)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fault.Operator("build the agent again with `make agent`", "cannot read the agent executable: %w", err)
			}
			agents[arch] = binary
			break
		}
	}
	if len(agents) == 0 {
		return nil, fault.Operator("build it with `make agent` or name its directory",
			"no agent executable (agent-linux-amd64, agent-linux-arm64) in %s", strings.Join(dirs, ", "))
	}
	return agents, nil
}

// Missing lists the architectures without an agent and how to build it; it
// is empty when nothing is missing.
func (a Agents) Missing() []string {
	var missing []string
	for _, arch := range architectures() {
		if _, ok := a[arch]; !ok {
			missing = append(missing, fmt.Sprintf("agent-linux-%s (servers with %s cannot be provisioned; build it with `make agent`)", arch, arch))
		}
	}
	return missing
}

func (a Agents) forArch(arch string) (Binary, error) {
	binary, ok := a[arch]
	if !ok {
		return Binary{}, fault.Operator("build it with `make agent` and put it beside the worker",
			"the rescue system runs on %s and the worker has no agent-linux-%s", arch, arch)
	}
	return binary, nil
}

func readBinary(path, arch string) (Binary, error) {
	f, err := os.Open(path)
	if err != nil {
		return Binary{}, err
	}
	defer f.Close()
	h := sha256.New()
	size, err := io.Copy(h, f)
	if err != nil {
		return Binary{}, err
	}
	if size == 0 {
		return Binary{}, fmt.Errorf("%s is empty", path)
	}
	return Binary{Path: path, Arch: arch, SHA256: hex.EncodeToString(h.Sum(nil)), Size: size}, nil
}
