package command

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/trbench/trbench/engine/route"
)

func programsCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "programs",
		Short: "List the routing algorithms that are built in",
		Args:  none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if format == "json" {
				type entry struct {
					Name    string `json:"name"`
					Summary string `json:"summary"`
					Source  string `json:"source"`
				}
				var list []entry
				for _, a := range route.Algorithms() {
					list = append(list, entry{a.Name, a.Summary, a.Source})
				}
				enc := json.NewEncoder(out)
				enc.SetIndent("", "  ")
				return enc.Encode(list)
			}
			for _, a := range route.Algorithms() {
				fmt.Fprintf(out, "%-14s %s\n%-14s   (%s)\n", a.Name, a.Summary, "", a.Source)
			}
			return nil
		},
	}
	outputFormat(cmd, &format)
	return cmd
}
