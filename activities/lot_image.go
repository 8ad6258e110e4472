package activities

import (
	"context"
	"time"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// lotImageWithin bounds how long the lot may take to answer.
const lotImageWithin = time.Minute

// checkLotImage compares what a node has staged with what the first node of
// its lot has staged. A digest in the lot file is a person's word: the stage
// job has compared the image with it, and the lot is not asked.
func (a *Activities) checkLotImage(ctx context.Context, in run.PhaseInput, rawSHA256 string) error {
	if in.Node.Image.SHA256 != "" || in.Node.Image.RawSHA256 != "" || a.lotImage == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lotImageWithin)
	defer cancel()
	known, err := a.lotImage(ctx, in.Node.Lot, run.LotImage{RawSHA256: rawSHA256, Node: in.Node.Name})
	if err != nil {
		return fault.Retry("lot %s did not answer which image it runs: %w", in.Node.Lot, err)
	}
	return sameImage(in.Node, known, rawSHA256)
}

// sameImage refuses other bytes than the lot's.
func sameImage(node run.Node, known run.LotImage, rawSHA256 string) error {
	if known.RawSHA256 == rawSHA256 {
		return nil
	}
	return fault.Operator("find out which image is right and write its digest (image.rawSha256) into the lot file, then retry with --batch",
		"node %s has staged a raw image with sha256 %s, and the first node of lot %s (%s) one with %s, from the same address %s",
		node.Name, rawSHA256, node.Lot, known.Node, known.RawSHA256, node.Image.URL)
}
