package activities

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/testsuite"

	"github.com/ironlot/ironlot/internal/fault"
	"github.com/ironlot/ironlot/internal/run"
)

// TestWorkerThatWasFrozen between the record of its intent and the request:
// another worker may have asked meanwhile, so this one does not.
func TestWorkerThatWasFrozen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		records := 0
		freeze := func(context.Context, []byte, ...any) error {
			records++
			time.Sleep(run.HeartbeatTimeout / 2) // of the bubble: it takes no time
			return nil
		}
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		var told error
		ask := func(ctx context.Context) error {
			b := &beat{ctx: ctx, record: freeze, pace: &pace{}}
			_, told = New(Config{}).ask(ctx, b, run.Intent{Action: "reboot into rescue"}, func(context.Context) error {
				t.Error("the provider was asked")
				return nil
			})
			return nil
		}
		env.RegisterActivity(ask)
		_, err := env.ExecuteActivity(ask)
		require.NoError(t, err)
		require.EqualError(t, told, "too much time passed between the intent to reboot into rescue and the request, so it was not sent")
		require.Equal(t, fault.Transient, fault.ClassOf(told))
		require.Equal(t, 1, records)
	})
}
