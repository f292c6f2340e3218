package command

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/rpc/byhand/lines"
)

func programsCommand() *cobra.Command {
	var format string
	var count bool
	cmd := &cobra.Command{
		Use:   "programs",
		Short: "List the routing algorithms that are built in, and what a program saves",
		Long: `List the routing algorithms that --algorithm takes, with their sources.

With --lines, count the lines of each: as a Go program, as a Starlark file, and written by hand
against separate OpenAI-compatible servers (engine/rpc/byhand), and set the saving beside the
article's "80 % fewer lines". The sources are in the binary: what is counted is what was built.`,
		Example: `  trbench programs
  trbench programs --lines
  trbench programs --lines --output md`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count {
				return writeLines(cmd.OutOrStdout(), format)
			}
			if err := checkFormat(format); err != nil {
				return err
			}
			return writePrograms(cmd.OutOrStdout(), format)
		},
	}
	cmd.Flags().StringVar(&format, "output", "table", "on stdout: table or json; with --lines also md or csv")
	complete(cmd, "output", "table", "json", "md", "csv")
	cmd.Flags().BoolVar(&count, "lines", false, "count the lines of each algorithm in its three forms")
	return cmd
}

func writePrograms(out io.Writer, format string) error {
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
}

func writeLines(out io.Writer, format string) error {
	r, err := lines.New()
	if err != nil {
		return err
	}
	switch format {
	case "table":
		return r.Table(out, 80)
	case "json":
		return r.JSON(out)
	case "md":
		return r.Markdown(out)
	case "csv":
		return r.CSV(out)
	}
	return badUsage("--output %q: want table, json, md or csv", format)
}
