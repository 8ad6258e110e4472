package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/run"
)

func TestJudgeCycle(t *testing.T) {
	t.Parallel()
	stopped := provider.Server{Status: provider.StatusStopped, Settled: true}
	passing := provider.Server{Status: "stopping"}
	stop := func(sent bool) *run.Intent { return &run.Intent{Stop: true, Sent: sent} }
	start := func(sent bool) *run.Intent { return &run.Intent{Sent: sent} }
	for name, c := range map[string]struct {
		server provider.Server
		intent *run.Intent
		since  time.Duration
		want   rebootStep
	}{
		"runs":                             {settled(provider.BootRescue), nil, 0, rebootStop},
		"is stopped already":               {stopped, nil, 0, rebootAsk},
		"is on its way":                    {passing, nil, 0, rebootWait},
		"stop accepted, still shown ready": {settled(provider.BootRescue), stop(true), doubtFor / 2, rebootWait},
		"stop accepted, ready for long":    {settled(provider.BootRescue), stop(true), doubtFor, rebootStop},
		"stop unanswered":                  {settled(provider.BootRescue), stop(false), 0, rebootWait},
		"stop unanswered, never arrived":   {settled(provider.BootRescue), stop(false), doubtFor / 4, rebootStop},
		"stopping":                         {passing, stop(true), time.Hour, rebootWait},
		"stopped":                          {stopped, stop(true), 0, rebootAsk},
		"stopped, answer lost":             {stopped, stop(false), 0, rebootAsk},
		"start accepted":                   {stopped, start(true), 0, rebootAsked},
		"start unanswered, starting":       {passing, start(false), 0, rebootAsked},
		"start unanswered, runs":           {settled(provider.BootRescue), start(false), 0, rebootAsked},
		"start unanswered, stopped":        {stopped, start(false), 0, rebootWait},
		"start unanswered, never arrived":  {stopped, start(false), doubtFor / 4, rebootAsk},
	} {
		require.Equal(t, c.want, judgeCycle(rebootSeen{want: provider.BootRescue, server: c.server, intent: c.intent, since: c.since}), name)
	}
}
