package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/lab"
	"github.com/ironlot/ironlot/internal/lab/images"
	"github.com/ironlot/ironlot/internal/lab/layout"
	"github.com/ironlot/ironlot/internal/run"
)

// TestANodeWithTooLittleRAMTakesASmallerImage although the lot's image is that
// of its first node: with its digest, as the remedy says. Without it the node
// is refused, before its disk is written, and told of both images.
func TestANodeWithTooLittleRAMTakesASmallerImage(t *testing.T) {
	t.Parallel()
	s := newStack(t, lab.Options{Servers: 2, Faults: faults(t, "short-ram@2")})
	s.startWorker()
	inputs := s.inputs(noDigest)
	first, short := inputs[0].Node, inputs[1].Node
	r := s.startLot(inputs)
	s.waitFor(first.ID(), run.Ready, "")
	stuck := s.waitFor(short.ID(), run.Stuck, run.Stage)
	require.Contains(t, stuck.Problem.Message, "does not fit in the rescue system's RAM")
	t.Log(stuck.Problem.Message)
	require.Contains(t, stuck.Problem.Remedy, "name a smaller image with its digest (`image.sha256`) in the lot file, and give that with `starter retry "+short.Lot+" "+short.Name+" --batch LOT.YAML`")

	small, err := images.New(t.TempDir(), images.Spec{Size: 64 * layout.MiB, Data: 4 * layout.MiB, Seed: 99})
	require.NoError(t, err)
	url, err := small.Listen(t.Context(), "127.0.0.1:0")
	t.Cleanup(func() { require.NoError(t, small.Close()) })
	require.NoError(t, err)
	file, err := small.File(images.Zstd)
	require.NoError(t, err)
	image := run.Image{URL: url + "/" + images.Zstd.FileName()}
	give := func(image run.Image) {
		in := s.inputs(func(n *run.Node) { n.Image = image })[1]
		s.update(short.ID(), run.UpdateRetry, run.RetryRequest{Input: &in})
	}

	give(image)
	s.eventually("the image without a digest is refused", time.Minute, func() bool {
		stuck = s.status(short.ID())
		return stuck.State == run.Stuck && stuck.Node.Image == image
	})
	require.Equal(t, run.Stage, stuck.Phase)
	for _, want := range []string{small.RawSHA256(), s.fleet.Images().RawSHA256(), image.URL, first.Image.URL, "(" + first.Name + ")"} {
		require.Contains(t, stuck.Problem.Message, want)
	}
	require.Contains(t, stuck.Problem.Remedy, "or this one with its digest (`image.rawSha256`)")
	require.Nil(t, stuck.Facts.Written)

	image.SHA256 = file.SHA256
	give(image)
	var lot run.LotStatus
	require.NoError(t, r.Get(t.Context(), &lot), "worker log:\n%s", s.log)
	for _, n := range lot.Nodes {
		require.Equal(t, run.Ready, n.State, "%s: %s", n.Name, n.Reason)
	}
	require.Equal(t, file.SHA256, s.status(short.ID()).Facts.Staged.DownloadSHA256)
	require.Equal(t, s.fleet.Images().RawSHA256(), lot.Image.RawSHA256, "the lot's image stays the first node's")
}
