package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/count"
	"github.com/ironlot/ironlot/internal/lot"
)

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate LOT.YAML",
		Short: "Check a lot file and the configs that it names",
		Long: `Checks a lot file, renders every node's machine config as a run would, and
reports all mistakes of the file and of the configs together, each with its
place, then all warnings. Nothing is touched, and neither Temporal nor the
provider is asked.`,
		Args:              takes(1, argFile),
		ValidArgsFunction: lotFiles,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.validate(cmd, args[0]) },
	}
}

// verdict is the answer to programs.
type verdict struct {
	Valid     bool         `json:"valid"`
	Problems  lot.Problems `json:"problems"`
	Warnings  []string     `json:"warnings"`
	Lot       string       `json:"lot,omitempty"`
	Nodes     int          `json:"nodes,omitempty"`
	Simulated bool         `json:"simulated,omitempty"`
}

func (a *app) validate(cmd *cobra.Command, path string) error {
	l, rendered, err := a.load(cmd.Context(), path, nil)
	var problems lot.Problems
	if a.structured() && (err == nil || errors.As(err, &problems)) {
		verdict := verdict{Valid: err == nil, Problems: append(lot.Problems{}, problems...), Warnings: append([]string{}, rendered.Warnings...)}
		if err == nil {
			verdict.Lot, verdict.Nodes, verdict.Simulated = l.Name, len(l.Nodes), l.Lab
		}
		if encodeErr := a.encode(verdict); encodeErr != nil || err == nil {
			return encodeErr
		}
		return &exitError{code: exitRefused}
	}
	if err != nil {
		return err
	}
	a.warn(rendered.Warnings)
	_, err = fmt.Fprintf(a.stdout, "%s is fine: lot %s, %s\n", path, l.Name, count.Of(len(l.Nodes), "node"))
	return err
}

// lotFiles completes the names of lot files.
func lotFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}
