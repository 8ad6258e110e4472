package stage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/ironlot/ironlot/internal/agent/fetch"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/agent/report"
	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// The pipeline's buffers: up to ahead of them between two of its stages. What
// comes out of the decoder is looked at right away, and best while it is in a
// processor's cache.
const (
	chunkSize    = 1 << 20
	rawChunkSize = 256 << 10
	ahead        = 8
)

// errDigest says that the image is not the one that was asked for.
var errDigest = errors.New("the digest is wrong")

// pour lets the image run into the file: the network (and the download's
// digest), the decoder, and the raw image's digest each have a goroutine.
func (s stager) pour(ctx context.Context, file *sparse) (run.Staged, error) {
	ctx, cancel := context.WithCancel(ctx)
	opts := s.fetch
	opts.Log = func(text string) { report.Log(s.rep, "saw", text) }
	body, err := fetch.Open(ctx, s.image.URL, opts)
	if err != nil {
		cancel()
		return run.Staged{}, err
	}
	served := image.NewAhead(body, chunkSize, ahead)
	defer func() {
		cancel() // frees a read that waits for the network
		served.Close()
		_ = body.Close() // everything wanted from it is read
	}()
	img, err := image.Open(served, image.Options{Limit: maxRaw, Proven: s.image.SHA256 != ""})
	if err != nil {
		return run.Staged{}, s.located(err)
	}
	defer img.Close()
	report.Log(s.rep, "saw", fmt.Sprintf("%s serves %d bytes, format %s", fetch.Redact(s.image.URL), body.Size(), img.Format()))
	raw := img.Ahead(rawChunkSize, ahead)
	defer raw.Close()
	// A decoder that waits for the network is freed before it is waited for.
	defer served.Close()
	defer cancel()

	sums, err := s.fill(ctx, file, raw, body)
	if err == nil {
		err = file.checkTable()
	}
	if err != nil {
		return run.Staged{}, s.located(err)
	}
	return run.Staged{
		Format: string(img.Format()), DownloadSHA256: body.SHA256(), RawSHA256: sums.rawSum(), DataSHA256: sums.data.Sum(file.size),
		RawSize: file.size, DataSize: file.data,
	}, nil
}

// fill writes and hashes the raw image chunk by chunk.
func (s stager) fill(ctx context.Context, file *sparse, raw *image.Ahead, body *fetch.Body) (*sums, error) {
	meter := report.NewMeter(s.rep, "download the image", body.Size())
	sums := newSums(s.image)
	for {
		if ctx.Err() != nil {
			return nil, stopped(ctx)
		}
		chunk, zeros, err := raw.Next()
		if errors.Is(err, io.EOF) {
			meter.Set(body.Offset())
			meter.End()
			return sums, nil
		}
		if err != nil {
			return nil, err
		}
		if err := sums.put(file, chunk); err != nil {
			return nil, err
		}
		sums.skip(file, zeros)
		meter.Set(body.Offset())
	}
}

// sums are the digests of the raw image.
type sums struct {
	data *image.DataDigest
	raw  hash.Hash // nil where nobody needs it: it costs more than all the rest
}

func newSums(img run.Image) *sums {
	s := &sums{data: image.NewDataDigest()}
	if img.RawSHA256 != "" || img.SHA256 == "" {
		s.raw = sha256.New()
	}
	return s
}

// put hashes a piece of the image while the file takes it.
func (s *sums) put(file *sparse, p []byte) error {
	if image.IsZero(p) {
		if s.raw != nil {
			s.raw.Write(p)
		}
		file.skip(int64(len(p)))
		return nil
	}
	off, hashed := file.size, make(chan struct{})
	go func() {
		s.data.Add(p, off)
		if s.raw != nil {
			s.raw.Write(p)
		}
		close(hashed)
	}()
	err := file.append(p)
	<-hashed
	return err
}

// skip hashes zeros that were not made.
func (s *sums) skip(file *sparse, zeros int64) {
	file.skip(zeros)
	if s.raw == nil {
		return
	}
	p := make([]byte, min(zeros, rawChunkSize))
	for ; zeros > 0; zeros -= int64(len(p)) {
		p = p[:min(zeros, rawChunkSize)]
		s.raw.Write(p)
	}
}

func (s *sums) rawSum() string {
	if s.raw == nil {
		return ""
	}
	return hex.EncodeToString(s.raw.Sum(nil))
}

// fits compares the digests with those that were asked for.
func (s stager) fits(staged run.Staged) error {
	if err := s.compare("the download", s.image.SHA256, staged.DownloadSHA256); err != nil {
		return err
	}
	return s.compare("the raw image", s.image.RawSHA256, staged.RawSHA256)
}

func (s stager) compare(what, want, got string) error {
	if want == "" || strings.EqualFold(want, got) {
		return nil
	}
	return fault.Operator("correct the digest in the lot file or the file on the server",
		"%w: %s from %s has SHA-256 %s, expected was %s", errDigest, what, fetch.Redact(s.image.URL), got, strings.ToLower(want))
}

// located says which URL served what is wrong.
func (s stager) located(err error) error {
	e, ok := fault.As(err)
	if !ok || !errors.Is(err, image.ErrNotImage) && !errors.Is(err, image.ErrCorrupt) && !errors.Is(err, image.ErrTooLarge) {
		return err
	}
	return &fault.Error{Class: e.Class, Message: fetch.Redact(s.image.URL) + ": " + e.Message, Remedy: e.Remedy, Cause: err}
}
