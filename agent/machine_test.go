//go:build linux

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/looptest"
)

const mib = 1 << 20

// build builds the agent as it is shipped, once.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ironlot-agent-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "agent")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=v0-test", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := build(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// machine is this computer as the real agent sees it: loop devices only.
type machine struct {
	agent, ram, boot string
	disks            []looptest.Device
}

func newMachine(t *testing.T, disks ...looptest.Device) *machine {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	return &machine{agent: path, ram: looptest.RAMDir(t), boot: strings.TrimSpace(string(boot)), disks: disks}
}

func (m *machine) command(stdin string, args ...string) *exec.Cmd {
	cmd := exec.Command(m.agent, args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "IRONLOT_RAM_DIR="+m.ram, "IRONLOT_LOOP_DEVICES="+strings.Join(looptest.Names(m.disks...), ","))
	return cmd
}

// ask runs the agent and gives its answer.
func ask[T any](t *testing.T, m *machine, stdin string, args ...string) (T, error) {
	t.Helper()
	out, err := m.command(stdin, args...).Output()
	var got api.Answer[T]
	if jsonErr := json.Unmarshal(out, &got); jsonErr != nil || bytes.Count(out, []byte("\n")) != 1 {
		t.Fatalf("agent %v answered %q (%v, %v)", args, out, jsonErr, err)
	}
	if (got.Error == nil) != (err == nil) {
		t.Errorf("agent %v: exit status and answer disagree: %v, %+v", args, err, got.Error)
	}
	if got.Error != nil {
		var zero T
		return zero, got.Error.Err()
	}
	return *got.Value, nil
}

func (m *machine) start(t *testing.T, key string, spec api.JobSpec) (api.JobStatus, error) {
	t.Helper()
	request, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	stdin := "the sudo password\n" + api.StdinMarker + "\n" + string(request) + "\n"
	return ask[api.JobStatus](t, m, stdin, "job", "start", "--key", key, "--boot-id", m.boot, string(spec.Kind))
}

// follow gives every line of `agent job follow` to a function and returns the
// last one.
func (m *machine) follow(t *testing.T, key string, each func(api.JobStatus)) api.JobStatus {
	t.Helper()
	cmd := m.command("", "job", "follow", "--key", key, "--boot-id", m.boot)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var last api.JobStatus
	for d := json.NewDecoder(out); d.More(); {
		last = api.JobStatus{}
		if err := d.Decode(&last); err != nil {
			t.Fatal(err)
		}
		if each != nil {
			each(last)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("follow: %v", err)
	}
	return last
}

// do runs a job to its end, which must be success.
func (m *machine) do(t *testing.T, key string, spec api.JobSpec) api.JobResult {
	t.Helper()
	if _, err := m.start(t, key, spec); err != nil {
		t.Fatal(err)
	}
	last := m.follow(t, key, nil)
	if last.State != api.JobSucceeded || last.Result == nil {
		t.Fatalf("job %s: %s, %+v", key, last.State, last.Error)
	}
	return *last.Result
}

// killed reads the process ID of a job and kills it.
func (m *machine) kill(t *testing.T, key string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(m.ram, "jobs", key, "begun"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && err != syscall.ESRCH {
		t.Fatal(err)
	}
}
