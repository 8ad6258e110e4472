package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/version"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which build this is",
		Args:  takes(0),
		RunE: func(*cobra.Command, []string) error {
			build := version.Of("starter")
			if a.structured() {
				return a.encode(build)
			}
			_, err := fmt.Fprintln(a.stdout, build)
			return err
		},
	}
}
