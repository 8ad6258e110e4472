//go:build linux

package main_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/looptest"
	"github.com/ironlot/ironlot/internal/fault"
)

func TestByHand(t *testing.T) {
	t.Parallel()
	d := looptest.New(t, "agent-hand", 80*mib, 512)
	looptest.Tool(t, "mkfs.ext4", "-q", "-F", "-L", "precious", d.Path)
	m := newMachine(t, d)
	for _, args := range [][]string{
		{"disk-prep", "--system", d.Serial, "--dry-run"},
		{"disk-prep", "--system", d.Serial},
	} {
		out, err := m.command("", args...).Output()
		if dry := slices.Contains(args, "--dry-run"); dry != (err == nil) {
			t.Errorf("%v: %v", args, err)
		}
		if !strings.Contains(string(out), "blank "+d.Serial) || !strings.Contains(string(out), "ext4 precious") {
			t.Errorf("%v does not say what would be lost: %s", args, out)
		}
		if got := looptest.Tool(t, "blkid", "-p", "-o", "value", "-s", "LABEL", d.Path); got != "precious" {
			t.Fatalf("%v erased the disk", args)
		}
	}
	out, err := m.command("", "disk-prep", "--system", d.Serial, "--yes").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "blank and proved so: "+d.Serial) {
		t.Fatalf("with --yes: %v: %s", err, out)
	}
	if err := blankAt(t, d); err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	m := newMachine(t, looptest.New(t, "agent-refuse", 16*mib, 512))
	request := api.StdinMarker + "\n"
	for name, tt := range map[string]struct {
		stdin string
		args  []string
		class fault.Class
	}{
		"other boot":        {"", []string{"job", "status", "--key", "k", "--boot-id", "other"}, fault.RescueLost},
		"other boot, reset": {"", []string{"reset", "--boot-id", "other"}, fault.RescueLost},
		"no boot ID":        {"", []string{"job", "status", "--key", "k"}, fault.NeedsOperator},
		"no such job":       {"", []string{"job", "follow", "--key", "k", "--boot-id", m.boot}, fault.NeedsOperator},
		"path as key":       {"", []string{"job", "status", "--key", "../k", "--boot-id", m.boot}, fault.NeedsOperator},
		"no marker":         {`hunter2 {"kind":"stage"}`, []string{"job", "start", "--key", "k", "--boot-id", m.boot, "stage"}, fault.NeedsOperator},
		"no JSON":           {request + "hunter2", []string{"job", "start", "--key", "k", "--boot-id", m.boot, "stage"}, fault.NeedsOperator},
		"unknown field":     {request + `{"hunter2":1}`, []string{"job", "start", "--key", "k", "--boot-id", m.boot, "stage"}, fault.NeedsOperator},
		"other kind":        {request + `{"kind":"write"}`, []string{"job", "start", "--key", "k", "--boot-id", m.boot, "stage"}, fault.NeedsOperator},
		"empty request":     {request + `{"kind":"stage"}`, []string{"job", "start", "--key", "k", "--boot-id", m.boot, "stage"}, fault.NeedsOperator},
		"unknown format":    {"", []string{"inspect", "-o", "json", "extra"}, fault.NeedsOperator},
	} {
		_, err := ask[json.RawMessage](t, m, tt.stdin, tt.args...)
		if fault.ClassOf(err) != tt.class || err == nil {
			t.Errorf("%s: %v, want %s", name, err, tt.class)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the error quotes standard input: %v", name, err)
		}
	}
	if jobs, err := filepath.Glob(filepath.Join(m.ram, "jobs", "*")); err != nil || len(jobs) > 0 {
		t.Errorf("a refusal left a job: %v, %v", jobs, err)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	m := newMachine(t, looptest.New(t, "agent-version", 16*mib, 512))
	got, err := ask[api.Version](t, m, "", "version")
	file, readErr := os.ReadFile(m.agent)
	sum := sha256.Sum256(file)
	if err != nil || readErr != nil || got.Version != "v0-test" || got.SHA256 != hex.EncodeToString(sum[:]) {
		t.Errorf("%+v, %v, %v", got, err, readErr)
	}
}
