package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/ironlot/ironlot/internal/lot"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of lot files, for editors",
		Args:  takes(0),
		RunE: func(*cobra.Command, []string) error {
			if a.output == outputYAML {
				return a.encode(json.RawMessage(lot.Schema()))
			}
			_, err := a.stdout.Write(lot.Schema())
			return err
		},
	}
}
