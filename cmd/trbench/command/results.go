package command

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/plot"
)

func resultsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "results",
		Short: "Look after result folders",
		Args:  unknownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(resultsRecover())
	return cmd
}

func resultsRecover() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "recover FOLDER",
		Short: "Make a result of what a killed run left behind",
		Long: `A run that is killed outright (SIGKILL, a power cut, out of memory) leaves FOLDER.partial-PID beside the
folder it would have made. This makes FOLDER of it: every finished request, and the summary of the points
that were complete. FOLDER is either name.

A run that is interrupted (Ctrl-C, SIGTERM) writes its folder itself, and a sweep goes on with --resume.`,
		Example: "  trbench results recover runs/headline-1a2b3c4d",
		Args:    exactly("FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !slices.Contains([]string{"table", "json", "csv", "md"}, format) {
				return badUsage("--output %q: want table, json, csv or md", format)
			}
			dir, err := partialOf(args[0])
			if err != nil {
				return err
			}
			r, err := experiment.Recover(dir)
			if err != nil {
				return err
			}
			if _, _, err := plot.Save(r.Folder.Dir(), plot.Data{Summary: r.Summary, TTFT: r.TTFT}, "svg", "png"); err != nil {
				return err
			}
			if err := r.Finish(experiment.RunOptions{Now: time.Now}); err != nil {
				return err
			}
			if err := printSummary(cmd.OutOrStdout(), format, r.Summary); err != nil {
				return err
			}
			if format == "table" {
				fmt.Fprintf(cmd.OutOrStdout(), "Results: %s\n", r.Folder.Path())
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "output", "table", "on stdout: table, json, csv or md")
	complete(cmd, "output", "table", "json", "csv", "md")
	return cmd
}

// partialOf is the one unfinished folder that path means, and that no process works on.
func partialOf(path string) (string, error) {
	found := []string{path}
	if _, err := os.Stat(path); err != nil || !results.IsPartial(path) {
		if found, err = results.Partials(path); err != nil {
			return "", badUsage("%w", err)
		}
	}
	switch len(found) {
	case 0:
		return "", badUsage("%s: no unfinished run is beside it (want %s.partial-PID)", path, path)
	case 1:
	default:
		return "", badUsage("%s: several unfinished runs: name one of %s", path, strings.Join(found, ", "))
	}
	if pid, ok := results.PartialPID(found[0]); ok && alive(pid) {
		return "", badUsage("%s: process %d is still at work on it", found[0], pid)
	}
	return found[0], nil
}

// alive says that a process of this number runs here.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, os.ErrPermission)
}
