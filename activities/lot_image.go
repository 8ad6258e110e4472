package activities

import (
	"context"
	"fmt"
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
	known, err := a.lotImage(ctx, in.Node.Lot, in.LotRun, run.LotImage{RawSHA256: rawSHA256, Node: in.Node.Name, URL: in.Node.Image.URL})
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
	const give = ", and give that with " + run.RetryWithFile
	text := fmt.Sprintf("node %s has staged a raw image with sha256 %s, and the first node of lot %s (%s) one with %s", node.Name, rawSHA256, node.Lot, known.Node, known.RawSHA256)
	if known.URL == "" || known.URL == node.Image.URL {
		return fault.Operator("find out which image is right, write its digest (`image.rawSha256`) into the lot file"+give,
			"%s, from the same address %s", text, node.Image.URL)
	}
	return fault.Operator("name the first node's image in the lot file, or this one with its digest (`image.rawSha256`) if the node is to run another than the lot"+give,
		"%s, from other addresses: %s and %s", text, node.Image.URL, known.URL)
}
