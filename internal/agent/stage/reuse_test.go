package stage

import (
	"bytes"
	"os"
	"testing"

	"github.com/ironlot/ironlot/internal/agent/hosttest"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

func TestReuse(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 16*mib, 512)
	packed := pack(t, image.Zstd, raw)
	other := pack(t, image.Gzip, raw)
	for name, tt := range map[string]struct {
		img    run.Image // of the second staging
		damage func(t *testing.T, ramDir string)
		again  bool
	}{
		"raw digest":      {run.Image{RawSHA256: digest(raw)}, nil, false},
		"digest":          {run.Image{SHA256: digest(packed)}, nil, false},
		"no digest":       {run.Image{}, nil, true},
		"another file":    {run.Image{SHA256: digest(other)}, nil, true},
		"one bit flipped": {run.Image{RawSHA256: digest(raw)}, func(t *testing.T, dir string) { flip(t, Image(dir)) }, true},
		"shorter":         {run.Image{RawSHA256: digest(raw)}, func(t *testing.T, dir string) { must(t, os.Truncate(Image(dir), mib)) }, true},
		"gone":            {run.Image{RawSHA256: digest(raw)}, func(t *testing.T, dir string) { must(t, os.Remove(Image(dir))) }, true},
		"no record":       {run.Image{RawSHA256: digest(raw)}, func(t *testing.T, dir string) { must(t, os.Remove(dir+"/"+recordName)) }, true},
		"broken record":   {run.Image{RawSHA256: digest(raw)}, func(t *testing.T, dir string) { must(t, os.WriteFile(dir+"/"+recordName, []byte("{"), 0o600)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, requests := serve(t, func(n int) []byte {
				if n > 0 && tt.img.SHA256 == digest(other) {
					return other
				}
				return packed
			})
			h := hosttest.New(t)
			first, err := newStager(h, run.Image{URL: url}, report.Discard{}).run(t.Context())
			must(t, err)
			if tt.damage != nil {
				tt.damage(t, h.RAMDir())
			}
			tt.img.URL = url
			got, err := newStager(h, tt.img, report.Discard{}).run(t.Context())
			must(t, err)
			if again := requests.Load() == 2; again != tt.again {
				t.Errorf("the server was asked %d times", requests.Load())
			}
			if !tt.again && got != first {
				t.Errorf("reused %+v, staged was %+v", got, first)
			}
			if file, err := os.ReadFile(Image(h.RAMDir())); err != nil || !bytes.Equal(file, raw) {
				t.Errorf("the staged file has %d bytes, %v", len(file), err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func flip(t *testing.T, path string) {
	t.Helper()
	p, err := os.ReadFile(path)
	must(t, err)
	p[5*mib] ^= 1
	must(t, os.WriteFile(path, p, 0o600))
}

// TestReuseWithAnotherDigest: the raw digest was not computed when the image
// was staged, so nothing can be said about it now.
func TestReuseWithAnotherDigest(t *testing.T) {
	t.Parallel()
	raw := hosttest.Image(t, 8*mib, 512)
	packed := pack(t, image.Zstd, raw)
	url, requests := serve(t, always(packed))
	h := hosttest.New(t)
	_, err := newStager(h, run.Image{URL: url, SHA256: digest(packed)}, report.Discard{}).run(t.Context())
	must(t, err)
	got, err := newStager(h, run.Image{URL: url, SHA256: digest(packed), RawSHA256: digest(raw)}, report.Discard{}).run(t.Context())
	must(t, err)
	if requests.Load() != 2 || got.RawSHA256 != digest(raw) {
		t.Errorf("%+v after %d requests", got, requests.Load())
	}
}

// TestFindLost: every way to lose the staged image is RescueLost.
func TestFindLost(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"nothing":     {},
		"no image":    {recordName: `{"rawSize":3}`},
		"no record":   {imageName: "abc"},
		"bad record":  {recordName: `nonsense`, imageName: "abc"},
		"wrong size":  {recordName: `{"rawSize":3}`, imageName: "ab"},
		"only a part": {recordName: `{"rawSize":3}`, partialName: "abc"},
	} {
		dir := t.TempDir()
		for file, content := range files {
			must(t, os.WriteFile(dir+"/"+file, []byte(content), 0o600))
		}
		if _, err := Find(dir); err == nil || fault.ClassOf(err) != fault.RescueLost {
			t.Errorf("%s: %v", name, err)
		}
	}
}
