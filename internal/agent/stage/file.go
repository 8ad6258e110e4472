package stage

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ironlot/ironlot/internal/agent/host"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/fault"
)

// Room in RAM is looked up before every roomStep bytes of data, and reserve
// bytes are left to the rescue system.
const (
	roomStep = 16 << 20
	reserve  = 64 << 20
)

// sparse is the file that the image grows in.
type sparse struct {
	f    *os.File
	free func() (uint64, error)
	size int64 // bytes of the image so far
	data int64 // of these, not in holes
	room int64 // bytes that may be written before room is looked up again
}

func newSparse(h host.Host) (*sparse, error) {
	f, err := os.OpenFile(filepath.Join(h.RAMDir(), partialName), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fault.Retry("the staged image cannot be created: %w", err)
	}
	return &sparse{f: f, free: h.RAMFree}, nil
}

// append adds a piece of the image, a multiple of image.Block long unless it
// is the last one.
func (s *sparse) append(p []byte) error {
	if err := s.reserve(int64(len(p)), p); err != nil {
		return err
	}
	n, err := image.WriteData(s.f, p, s.size)
	s.data += n
	s.room -= n
	s.size += int64(len(p))
	return s.problem(err)
}

// skip adds a piece of zeros.
func (s *sparse) skip(n int64) { s.size += n }

// reserve makes sure that RAM has room for p, if it is data at all.
func (s *sparse) reserve(need int64, p []byte) error {
	if s.room >= need || image.IsZero(p) {
		return nil
	}
	free, err := s.free()
	if err != nil {
		return fault.Retry("the free RAM cannot be told: %w", err)
	}
	if free < uint64(need+reserve) {
		return s.short(free, need)
	}
	s.room = min(max(roomStep, need), int64(min(free, 1<<62))-reserve)
	return nil
}

// short tells of too little RAM: how large the data is in all shows only at the
// image's end, so what the next piece needs is the least.
func (s *sparse) short(free uint64, next int64) error {
	const up = 1<<20 - 1
	return fault.Operator(moreRAM, "the image does not fit in the rescue system's RAM: %d MiB are free, and at least %d MiB are needed to go on, "+
		"of which %d MiB stay free for the rescue system itself; %d MiB of the image's data are staged",
		free>>20, (next+reserve+up)>>20, reserve>>20, s.data>>20)
}

// moreRAM: a run stays with its server, so another server is another run.
const moreRAM = "name a smaller image " + image.Another + "; " +
	"for a server with more RAM `starter abort LOT NODE`, put that server in the node's place in the lot file, " +
	"and when the lot has ended `starter provision --batch LOT.YAML --node NODE`, or before that under another node name `starter add LOT --batch LOT.YAML`"

func (s *sparse) problem(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		free, _ := s.free() // 0 is as good as a guess
		return s.short(free, 0)
	}
	if err != nil {
		return fault.Retry("the staged image cannot be written: %w", err)
	}
	return nil
}

// finish gives the file its length, trailing hole included.
func (s *sparse) finish() error {
	return s.problem(errors.Join(s.f.Truncate(s.size), s.f.Close()))
}

// discard removes the file; it is called on a finished one, too.
func (s *sparse) discard() {
	_ = s.f.Close() // may be closed already
	_ = os.Remove(s.f.Name())
}
