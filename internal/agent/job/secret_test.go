package job_test

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// TestSpecKeepsNoSecret: from the moment at which the work begins no file of
// the agent holds the machine config, and the work still gets it.
func TestSpecKeepsNoSecret(t *testing.T) {
	t.Parallel()
	secret := []byte("canary-5e1f")
	var got []byte
	l := newLab(t, func(_ context.Context, h host.Host, spec api.JobSpec, _ report.Reporter) (api.JobResult, error) {
		got = spec.Write.State.Config
		nowhere(t, h.RAMDir(), secret)
		return api.JobResult{}, fault.Operator("", "it fails, and says no more than %v", spec.Write.State)
	})
	status, err := l.jobs.Start(t.Context(), "k", api.JobSpec{Kind: api.Write, Write: &api.WriteSpec{
		System: run.Disk{Serial: "S1"}, DataSHA256: "00", RawSize: 1, State: &api.StateSpec{Config: secret},
	}})
	if err != nil {
		t.Fatal(err)
	}
	all := append([]api.JobStatus{status}, follow(t, l.jobs, "k")...)
	if last := all[len(all)-1]; last.State != api.JobFailed || last.Error == nil {
		t.Errorf("ended as %+v", last)
	}
	if !bytes.Equal(got, secret) {
		t.Errorf("the work got %q", got)
	}
	nowhere(t, l.RAMDir(), secret)
}

// nowhere looks for a secret, plain and as JSON carries it, in every file.
func nowhere(t *testing.T, dir string, secret []byte) {
	t.Helper()
	files := 0
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		files++
		for _, form := range [][]byte{secret, []byte("Y2FuYXJ5LTVlMWY")} {
			if bytes.Contains(data, form) {
				t.Errorf("%s holds the config", path)
			}
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("%d files looked at, %v", files, err)
	}
}
