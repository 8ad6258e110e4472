package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRemediesWithACommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		remedy, want string
		names        bool
	}{
		"none": {"mend it, then retry", "mend it, then retry", false},
		"one":  {"`starter retry LOT NODE --from stage`", "`starter retry rack-1 w-1 --from stage`", true},
		"two":  {"`starter retry LOT NODE`, or `starter retry LOT NODE --from stage`", "`starter retry rack-1 w-1`, or `starter retry rack-1 w-1 --from stage`", true},
		"another server": {"`starter abort LOT NODE`, then `starter provision --batch LOT.YAML --node NODE` or `starter add LOT --batch LOT.YAML`",
			"`starter abort rack-1 w-1`, then `starter provision --batch LOT.YAML --node w-1` or `starter add rack-1 --batch LOT.YAML`", false},
		"empty": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Problem{Remedy: Remedy(c.remedy, Node{Lot: "rack-1", Name: "w-1"})}
			require.Equal(t, c.want, p.Remedy)
			require.Equal(t, c.names, p.NamesRetry())
			require.Equal(t, c.want, Remedy(p.Remedy, Node{Lot: "other", Name: "n"}), "once is enough")
		})
	}
}
