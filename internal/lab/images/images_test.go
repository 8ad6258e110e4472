package images_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"github.com/ulikunitz/xz"

	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
)

const size = 16 * layout.MiB

func start(t *testing.T) (*images.Server, string) {
	t.Helper()
	return startWith(t, images.Spec{Size: size, Data: 4 * layout.MiB, Seed: 1})
}

func startWith(t *testing.T, spec images.Spec) (*images.Server, string) {
	t.Helper()
	s, err := images.New(t.TempDir(), spec)
	require.NoError(t, err)
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	return s, web.URL + "/"
}

func get(t *testing.T, url string, header ...string) (*http.Response, []byte, error) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp, body, err
}

func TestLayoutOfTheFullSizeImageIsTalos(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "image.raw")
	require.NoError(t, images.Build(path, images.Spec{Size: images.FullSize, Data: 2 * layout.MiB}))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	info, err := f.Stat()
	require.NoError(t, err)
	require.EqualValues(t, 4453302272, info.Size())
	require.Less(t, info.Sys().(*syscall.Stat_t).Blocks*512, int64(4*layout.MiB), "the file is sparse")

	require.True(t, layout.HasBootSignature(f))
	want := []struct {
		name        string
		first, last int64
	}{{"EFI", 2048, 4304895}, {"BIOS", 4304896, 4306943}, {"BOOT", 4306944, 8402943}, {"META", 8402944, 8404991}}
	parts := layout.Read(f, info.Size())
	require.Len(t, parts, len(want))
	for i, p := range parts {
		require.Equal(t, want[i].name, p.Name)
		require.Equal(t, want[i].first*512, p.Offset, p.Name)
		require.Equal(t, (want[i].last-want[i].first+1)*512, p.Size, p.Name)
	}
}

func TestEqualSeedsMakeEqualImages(t *testing.T) {
	t.Parallel()
	build := func(seed uint64) []byte {
		path := filepath.Join(t.TempDir(), "image.raw")
		require.NoError(t, images.Build(path, images.Spec{Size: size, Seed: seed}))
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return data
	}
	require.True(t, bytes.Equal(build(1), build(1)))
	require.False(t, bytes.Equal(build(1), build(2)))
}

func TestImpossibleSizesAreRefused(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, -1, layout.MiB, 16*layout.MiB + 1} {
		path := filepath.Join(t.TempDir(), "image.raw")
		require.Error(t, images.Build(path, images.Spec{Size: size}))
		require.NoFileExists(t, path)
	}
}

func TestEveryFormatUnpacksToTheSameImage(t *testing.T) {
	t.Parallel()
	s, url := startWith(t, images.Spec{Size: 8 * layout.MiB, Data: layout.MiB})
	unpack := map[images.Format]func(io.Reader) (io.Reader, error){
		images.Raw:  func(r io.Reader) (io.Reader, error) { return r, nil },
		images.Zstd: func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
		images.XZ:   func(r io.Reader) (io.Reader, error) { return xz.NewReader(r) },
		images.Gzip: func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
	}
	for _, format := range images.Formats() {
		_, body, err := get(t, url+"redirect/"+format.FileName())
		require.NoError(t, err)
		file, err := s.File(format)
		require.NoError(t, err)
		sum := sha256.Sum256(body)
		require.Equal(t, file.SHA256, hex.EncodeToString(sum[:]), format)

		r, err := unpack[format](bytes.NewReader(body))
		require.NoError(t, err)
		raw, err := io.ReadAll(r)
		require.NoError(t, err)
		sum = sha256.Sum256(raw)
		require.Equal(t, s.RawSHA256(), hex.EncodeToString(sum[:]), format)
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	s, url := start(t)
	url += images.Raw.FileName()
	resp, whole, err := get(t, url)
	require.NoError(t, err)
	etag := resp.Header.Get("ETag")
	require.NotEmpty(t, etag)
	require.Equal(t, "simulated", resp.Header.Get("X-Ironlot-Lab"))

	resp, part, err := get(t, url, "Range", "bytes=1000-", "If-Range", etag)
	require.NoError(t, err)
	require.Equal(t, http.StatusPartialContent, resp.StatusCode)
	require.True(t, bytes.Equal(whole[1000:], part))

	resp, _, err = get(t, url, "Range", "bytes=1000-", "If-Range", `"another"`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)

	s.SetFaults(images.Faults{NoRanges: true})
	resp, part, err = get(t, url, "Range", "bytes=1000-")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Len(t, part, len(whole))
	require.Equal(t, "bytes=1000-", s.Requests()[1].Range)
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s, url := start(t)
	url += images.Raw.FileName()

	s.SetFaults(images.Faults{Truncate: 3 * layout.MiB})
	resp, body, err := get(t, url)
	require.NoError(t, err)
	require.EqualValues(t, 3*layout.MiB, resp.ContentLength)
	require.Len(t, body, 3*layout.MiB)

	s.SetFaults(images.Faults{ResetAfter: 3 * layout.MiB, Resets: 1})
	_, body, err = get(t, url)
	require.Error(t, err)
	require.LessOrEqual(t, len(body), 3*layout.MiB)
	_, body, err = get(t, url)
	require.NoError(t, err, "the reset is used up")
	require.Len(t, body, size)

	s.SetFaults(images.Faults{HTML: true})
	resp, body, err = get(t, url)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, string(body), "<html>")

	s.SetFaults(images.Faults{ChangingETag: true})
	first, _, err := get(t, url)
	require.NoError(t, err)
	second, _, err := get(t, url)
	require.NoError(t, err)
	require.NotEqual(t, first.Header.Get("ETag"), second.Header.Get("ETag"))
}
