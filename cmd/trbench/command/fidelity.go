package command

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/results/fidelity"
)

// fidelityFlags are what is compared, and where to.
type fidelityFlags struct {
	runs   []string
	engine string
	output string
}

func fidelityCommand() *cobra.Command {
	var f fidelityFlags
	cmd := &cobra.Command{
		Use:   "fidelity --runs DIR[,DIR...] | --engine cpu",
		Short: "Predicted against real: how far the simulator can be trusted",
		Long: `Predicts real runs and prints, for TTFT, TPOT, E2E and throughput, the predicted and the real figure
and the error.

--runs takes folders of real vLLM runs: DIR/run.json says how the server was set and where the
arrival trace and the kernel tables are.`,
		Example: `  trbench fidelity --runs runs/RTX4090/Llama-3.1-8B,runs/RTXPRO6000/Llama-3.1-8B
  trbench fidelity --runs runs/RTX4090/Llama-3.1-8B --output json`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringSliceVar(&f.runs, "runs", nil, "folders of real runs, `DIR[,DIR...]`")
	fs.StringVar(&f.engine, "engine", "", "predict and run real models here: cpu")
	fs.StringVar(&f.output, "output", "table", "on stdout: table, json, csv or md")
	complete(cmd, "engine", "cpu")
	complete(cmd, "output", "table", "json", "csv", "md")
	if err := cmd.MarkFlagDirname("runs"); err != nil {
		panic(err) // a flag that the command does not have
	}
	return cmd
}

func (f *fidelityFlags) run(cmd *cobra.Command) error {
	if !slices.Contains([]string{"table", "json", "csv", "md"}, f.output) {
		return badUsage("--output %q: want table, json, csv or md", f.output)
	}
	report, err := f.report(cmd.Context())
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	switch f.output {
	case "json":
		return report.WriteJSON(w)
	case "csv":
		return report.CSV(w)
	case "md":
		return report.Markdown(w)
	}
	return report.Table(w)
}

// report predicts what the flags name.
func (f *fidelityFlags) report(ctx context.Context) (*fidelity.Report, error) {
	switch {
	case len(f.runs) > 0 && f.engine != "":
		return nil, badUsage("--runs and --engine: want one of them")
	case len(f.runs) > 0:
		return nil, errors.New("--runs " + strings.Join(f.runs, ",") + ": not there yet")
	case f.engine == "cpu":
		return nil, &experiment.Error{Code: experiment.ExitTarget, Err: errors.New("--engine cpu: not there yet")}
	case f.engine != "":
		return nil, badUsage("--engine %q: want cpu", f.engine)
	}
	return nil, badUsage("want --runs DIR[,DIR...] or --engine cpu")
}
