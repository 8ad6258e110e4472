package cmdline_test

import (
	"io"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/ironlot/ironlot/internal/cmdline"
	"github.com/ironlot/ironlot/internal/fault"
)

func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"stauts"}, "`tool` has no command \"stauts\"; did you mean `tool status`"},
		{[]string{"nonsense"}, "`tool` has no command \"nonsense\""},
		{[]string{"status"}, "`tool status` takes LOT [NODE], and LOT is missing"},
		{[]string{"status", "a", "b", "c"}, "`tool status` takes LOT [NODE], and \"c\" is one too many"},
		{[]string{"plain", "a"}, "`tool plain` takes no arguments, and \"a\" is one"},
		{[]string{"status", "--lmit", "3"}, "`tool status` has no flag --lmit; did you mean --limit"},
		{[]string{"status", "--colour"}, "`tool status` has no flag --colour"},
		{[]string{"status", "-x"}, "`tool status` has no flag -x"},
		{[]string{"status", "--limit"}, "--limit needs a value after it"},
		{[]string{"status", "--limit", "x"}, "--limit takes a whole number, not \"x\""},
		{[]string{"status", "--limit", "99999999999999999999"}, "--limit takes a whole number that is smaller, not \"99999999999999999999\""},
		{[]string{"status", "--=3"}, "\"--=3\" is no flag"},
		{[]string{"status", "a", "--limit", "3"}, ""},
	} {
		cmd, err := tool(c.args)
		if c.want == "" {
			require.NoError(t, err, c.args)
			require.NoError(t, cmdline.See(cmd, err))
			continue
		}
		require.EqualError(t, err, c.want, c.args)
		require.EqualError(t, cmdline.See(cmd, err), c.want+"; `"+cmd.CommandPath()+" --help` shows how it is used")
		require.Equal(t, fault.NeedsOperator, fault.ClassOf(cmdline.See(cmd, err)))
	}
}

// tool runs a command line of a small program.
func tool(args []string) (*cobra.Command, error) {
	done := func(*cobra.Command, []string) error { return nil }
	root := &cobra.Command{Use: "tool", SilenceErrors: true, SilenceUsage: true, Args: cmdline.Commands, RunE: done}
	status := &cobra.Command{Use: "status", Args: cmdline.Words(1, "LOT", "[NODE]"), RunE: done}
	status.Flags().Int("limit", 1, "")
	root.AddCommand(status, &cobra.Command{Use: "plain", Args: cmdline.Words(0), RunE: done})
	root.SetFlagErrorFunc(cmdline.Flag)
	root.SetOut(io.Discard)
	root.SetArgs(args)
	return root.ExecuteC()
}
