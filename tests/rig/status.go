package rig

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/ironlot/ironlot/internal/run"
)

// askTime bounds a question to a run.
const askTime = 10 * time.Second

// StatusOf asks a run how it stands; a run that does not answer is empty.
func StatusOf(c client.Client, id string) run.Status {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	var status run.Status
	if value, err := c.QueryWorkflow(ctx, id, "", run.QueryStatus); err == nil {
		_ = value.Get(&status) // an answer that is none is no status
	}
	return status
}
