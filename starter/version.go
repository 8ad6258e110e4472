package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/version"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print which build this is",
		Args:  takes(0),
		RunE: func(*cobra.Command, []string) error {
			if a.structured() {
				return a.encode(map[string]string{"version": version.String(), "go": runtime.Version()})
			}
			_, err := fmt.Fprintf(a.stdout, "ironlot starter %s (%s %s/%s)\n", version.String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
