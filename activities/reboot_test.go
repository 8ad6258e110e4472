package activities

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/provider"
	"github.com/ironlot/ironlot/internal/run"
)

func settled(boot provider.BootType) provider.Server {
	return provider.Server{Status: "ready", Settled: true, Usable: true, BootType: boot}
}

func TestJudgeReboot(t *testing.T) {
	t.Parallel()
	stopping := provider.Server{Status: "stopping", BootType: provider.BootNormal}
	intent := func(bootType provider.BootType, boot string, sent bool) *run.Intent {
		return &run.Intent{BootType: string(bootType), Boot: boot, Sent: sent}
	}
	for name, c := range map[string]struct {
		seen rebootSeen
		want rebootStep
	}{
		"nothing asked yet": {
			rebootSeen{want: provider.BootRescue, server: settled(provider.BootNormal)}, rebootAsk},
		"nothing asked, server on its way": {
			rebootSeen{want: provider.BootRescue, server: stopping}, rebootWait},
		"accepted": {
			rebootSeen{want: provider.BootRescue, server: settled(provider.BootNormal), intent: intent(provider.BootNormal, "", true)}, rebootAsked},
		"accepted, the old boot still answers": {
			rebootSeen{want: provider.BootRescue, server: settled(provider.BootRescue), boot: "a", intent: intent(provider.BootRescue, "a", true), since: time.Hour}, rebootAsked},
		"no answer, server on its way": {
			rebootSeen{want: provider.BootRescue, server: stopping, intent: intent(provider.BootNormal, "", false)}, rebootAsked},
		"no answer, boot type has changed": {
			rebootSeen{want: provider.BootRescue, server: settled(provider.BootRescue), intent: intent(provider.BootNormal, "", false)}, rebootAsked},
		"no answer, boot type has not changed yet": {
			rebootSeen{want: provider.BootRescue, server: settled(provider.BootNormal), intent: intent(provider.BootNormal, "", false), since: time.Second}, rebootWait},
		"no answer, boot type has not changed for long": {
			rebootSeen{want: provider.BootRescue, server: settled(provider.BootNormal), intent: intent(provider.BootNormal, "", false), since: doubtFor}, rebootAsk},
		"rescue to rescue, no answer, old boot still there": {
			rebootSeen{want: provider.BootRescue, server: settled(provider.BootRescue), boot: "a", intent: intent(provider.BootRescue, "a", false), since: doubtFor / 2}, rebootWait},
		"rescue to rescue, no answer, old boot there for long": {
			rebootSeen{want: provider.BootRescue, server: settled(provider.BootRescue), boot: "a", intent: intent(provider.BootRescue, "a", false), since: doubtFor}, rebootAsk},
		"rescue to rescue, no answer, old boot gone": {
			rebootSeen{want: provider.BootRescue, server: settled(provider.BootRescue), boot: "", intent: intent(provider.BootRescue, "a", false)}, rebootAsked},
		"rescue to rescue, no answer, new boot": {
			rebootSeen{want: provider.BootRescue, server: settled(provider.BootRescue), boot: "b", intent: intent(provider.BootRescue, "a", false)}, rebootAsked},
		"rescue to rescue, no answer, nothing ever seen": {
			rebootSeen{want: provider.BootRescue, server: settled(provider.BootRescue), intent: intent(provider.BootRescue, "", false), since: doubtFor}, rebootAsked},
	} {
		require.Equal(t, c.want, judgeReboot(c.seen), name)
	}
}

func TestMayReuse(t *testing.T) {
	t.Parallel()
	fresh := run.PhaseInput{Node: run.Node{Rescue: run.Rescue{Fresh: true}}}
	seen := run.PhaseInput{Facts: run.Facts{SeenBoots: []string{"a"}}}
	require.True(t, mayReuse(run.PhaseInput{}, rebootSeen{boot: "a"}))
	require.False(t, mayReuse(run.PhaseInput{}, rebootSeen{}), "no rescue answers")
	require.False(t, mayReuse(seen, rebootSeen{boot: "a"}), "a boot that was left behind")
	require.True(t, mayReuse(seen, rebootSeen{boot: "b"}), "the machine came back by itself")
	require.False(t, mayReuse(fresh, rebootSeen{boot: "a"}), "the lot wants a fresh boot")
	require.False(t, mayReuse(run.PhaseInput{}, rebootSeen{boot: "a", intent: &run.Intent{}}), "a reboot may be on its way")
}

func TestUnusable(t *testing.T) {
	t.Parallel()
	require.NoError(t, unusable(run.PhaseInput{}, settled(provider.BootNormal)))
	require.NoError(t, unusable(run.PhaseInput{}, provider.Server{Status: "stopping"}), "passes by itself")
	require.NoError(t, unusable(run.PhaseInput{}, provider.Server{Status: provider.StatusStopped, Settled: true}), "can be started")
	require.ErrorContains(t, unusable(run.PhaseInput{}, provider.Server{Status: "locked", Settled: true}), "locked")
}

func TestRescueAskedRemembersTheOldBoot(t *testing.T) {
	t.Parallel()
	in := run.PhaseInput{Facts: run.Facts{SeenBoots: []string{"a"}}}
	out := rescueAsked(in, run.Intent{Boot: "b"})
	require.Equal(t, []string{"a", "b"}, out.Facts.SeenBoots)
	require.Equal(t, []string{"a"}, in.Facts.SeenBoots)
	require.Equal(t, []string{"a"}, rescueAsked(in, run.Intent{Boot: "a"}).Facts.SeenBoots)
}
