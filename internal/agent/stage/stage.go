package stage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/fetch"
	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// downloads is how often a damaged image or a wrong digest is downloaded, and
// a file that changes on the way: once may be an accident.
const downloads = 2

// maxRaw bounds the raw image in bytes, holes included. A Talos image has 4 GiB.
const maxRaw = 64 << 30

// Run stages the image in h.RAMDir() and proves its digests. An image that is
// there already is used again if the spec has a digest and the file, read
// anew, fits it. On failure nothing is left behind. Errors: NeedsOperator for
// what is served, for digests and for too little RAM, Transient for the rest.
func Run(ctx context.Context, h host.Host, spec api.StageSpec, rep report.Reporter) (run.Staged, error) {
	return stager{h: h, rep: rep, image: spec.Image}.run(ctx)
}

// stager is one staging.
type stager struct {
	h     host.Host
	rep   report.Reporter
	image run.Image
	fetch fetch.Options
}

func (s stager) run(ctx context.Context) (run.Staged, error) {
	if err := check(s.image); err != nil {
		return run.Staged{}, err
	}
	if err := os.MkdirAll(s.h.RAMDir(), 0o700); err != nil {
		return run.Staged{}, fault.Retry("the directory in RAM cannot be made: %w", err)
	}
	staged, reused, err := s.reuse(ctx)
	if reused || err != nil {
		return staged, err
	}
	if err := clearDir(s.h.RAMDir()); err != nil {
		return run.Staged{}, err
	}
	for try := 1; ; try++ {
		staged, err = s.download(ctx)
		again := errors.Is(err, image.ErrCorrupt) || errors.Is(err, errDigest) || errors.Is(err, fetch.ErrChanged)
		if !again || try == downloads {
			return staged, err
		}
		report.Log(s.rep, "did", fmt.Sprintf("download %d failed and is done once more: %v", try, err))
	}
}

// check refuses a spec that cannot be staged, before anything is touched.
func check(img run.Image) error {
	if _, err := fetch.Parse(img.URL); err != nil {
		return err
	}
	for name, digest := range map[string]string{"sha256": img.SHA256, "rawSha256": img.RawSHA256} {
		if p, err := hex.DecodeString(digest); digest != "" && (err != nil || len(p) != sha256.Size) {
			return fault.Operator("give the digest that sha256sum prints", "the image's %s is not a SHA-256 digest of 64 hexadecimal digits", name)
		}
	}
	return nil
}

// reuse takes the image that is staged already, if it is the right one. Only
// a digest can tell: what a URL serves may have changed since.
func (s stager) reuse(ctx context.Context) (run.Staged, bool, error) {
	staged, err := Find(s.h.RAMDir())
	if err != nil {
		return run.Staged{}, false, nil //nolint:nilerr // nothing usable is there: stage
	}
	if s.image.SHA256 == "" && s.image.RawSHA256 == "" {
		report.Log(s.rep, "plan", "an image is staged, but without a digest in the lot nothing tells whether it is the right one: it is staged again")
		return run.Staged{}, false, nil
	}
	if err := s.fits(staged); err != nil {
		report.Log(s.rep, "plan", "another image is staged and makes room")
		return run.Staged{}, false, nil //nolint:nilerr // another image: stage
	}
	sum, err := s.rehash(ctx, staged.RawSize)
	if err != nil {
		return run.Staged{}, false, err
	}
	if sum != staged.DataSHA256 {
		report.Log(s.rep, "saw", "the staged image is damaged: it is staged again")
		return run.Staged{}, false, nil
	}
	report.Log(s.rep, "did", fmt.Sprintf("the staged image is whole and used again, %s", staged.Digest()))
	return staged, true, nil
}

// rehash reads the staged image.
func (s stager) rehash(ctx context.Context, size int64) (string, error) {
	f, err := os.Open(Image(s.h.RAMDir()))
	if err != nil {
		return "", fault.Retry("the staged image cannot be read: %w", err)
	}
	defer f.Close()
	meter := report.NewMeter(s.rep, "check the staged image", size)
	sum := image.NewDataDigest()
	buf := make([]byte, chunkSize)
	off := int64(0)
	for {
		if ctx.Err() != nil {
			return "", stopped(ctx)
		}
		n, err := f.ReadAt(buf, off) // whole blocks, up to the end
		sum.Add(buf[:n], off)
		off += int64(n)
		meter.Add(int64(n))
		if errors.Is(err, io.EOF) {
			meter.End()
			return sum.Sum(off), nil
		}
		if err != nil {
			return "", fault.Retry("the staged image cannot be read: %w", err)
		}
	}
}

// download stages the image once.
func (s stager) download(ctx context.Context) (run.Staged, error) {
	start := time.Now()
	file, err := newSparse(s.h)
	if err != nil {
		return run.Staged{}, err
	}
	staged, err := s.pour(ctx, file)
	if err == nil {
		err = file.finish()
	}
	if err == nil {
		err = s.fits(staged)
	}
	if err == nil {
		staged.Seconds = time.Since(start).Seconds()
		err = publish(s.h.RAMDir(), staged)
	}
	if err != nil {
		file.discard()
		return run.Staged{}, err
	}
	report.Log(s.rep, "did", fmt.Sprintf("staged %s: %s, SHA-256 %s, raw SHA-256 %s, data digest %s, %d bytes of which %d are data",
		fetch.Redact(s.image.URL), staged.Format, staged.DownloadSHA256, cmp.Or(staged.RawSHA256, "not computed"), staged.DataSHA256, staged.RawSize, staged.DataSize))
	return staged, nil
}

func stopped(ctx context.Context) error {
	return fmt.Errorf("staging was stopped: %w", context.Cause(ctx))
}
