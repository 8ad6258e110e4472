package plan_test

import (
	"testing"

	"github.com/ironlot/ironlot/internal/agent/api"
	"github.com/ironlot/ironlot/internal/agent/plan"
	"github.com/ironlot/ironlot/internal/run"
)

// TestTwinsHaveARemedy in the lot file, where there is one.
func TestTwinsHaveARemedy(t *testing.T) {
	t.Parallel()
	bigger := []api.Disk{disk("sda", "TWIN", gb), disk("sdb", "TWIN", gb), disk("sdc", "OTHER", 2*gb)}
	_, err := plan.Choose(bigger, run.DiskChoice{Smallest: true})
	refusal(t, err, "cannot be told apart", "systemDisk, with `secondaryDisks: keep`", "`starter retry LOT NODE --batch LOT.YAML`: OTHER")
	_, err = plan.Secondary(bigger, bigger[2], run.Blank)
	refusal(t, err, "cannot be told apart", "set `secondaryDisks: keep` for this node in the lot file", "`starter retry LOT NODE --batch LOT.YAML`")
}
