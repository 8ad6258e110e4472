package stage

import (
	"errors"
	"io"

	"github.com/ironlot/ironlot/internal/agent/gpt"
	"github.com/ironlot/ironlot/internal/agent/image"
	"github.com/ironlot/ironlot/internal/fault"
)

// checkTable makes sure that the staged image's partitions can be read. The
// start of the stream shows the table's header alone, and a kernel that finds
// the entries damaged takes the copy at the end, which on a larger disk is
// not where it looks.
func (s *sparse) checkTable() error {
	head := make([]byte, image.HeadSize)
	n, err := s.f.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return s.problem(err)
	}
	layout, err := image.ParseLayout(head[:n])
	if err != nil || !layout.GPT {
		return err
	}
	table, err := gpt.Parse(s.f, s.size, layout.SectorSize)
	reason := "wrong checksum of the entries, only its copy at the end is whole"
	if err != nil {
		reason = err.Error()
	}
	if err != nil || table.Backup {
		return fault.Operator("check that the file on the image server is whole, then retry",
			"%w: its partition table: %s", image.ErrCorrupt, reason)
	}
	return nil
}
