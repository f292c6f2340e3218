package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/models/calibrate"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/results"
)

// calibrateFlags are how logs are fitted.
type calibrateFlags struct {
	kind    string
	law     string
	host    string
	rename  []string
	against string
	point   int
	out     string
	format  string
	plots   string
	options calibrate.Options
}

func calibrateCommand() *cobra.Command {
	var f calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate FILE...",
		Short: "Fit latency, modulation and routing to logs of a real system",
		Long: `Fits what the simulator needs to logs of a real system, and says how far to trust it.

A step log (CSV or JSON Lines: model, start_ns, duration_ns, batch, new_tokens, context_tokens)
gives a latency law for each model and the Markov chain that modulates its steps. A token log
(request, position, model; or an R2R trace; or a trace of both models' likeliest tokens) gives
who writes what, how bursty, where, and what drafts are worth. A result of vllm bench serve is
summarised in our metrics, beside a prediction with --against.

Up to one file of each; the form is told by the columns. docs/CALIBRATE.md describes them.`,
		Example: `  trbench calibrate steps.csv tokens.csv
  trbench run --config calibration/routing.yaml --latency calibration/latency.yaml
  trbench calibrate steps.csv --law table --contention 0.47 --output json
  trbench calibrate vllm-result.json --against runs/headline/summary.json --point 3`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return badUsage("%s: want at least one FILE", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.kind, "log", "auto", "what the files are logs of: auto, steps, tokens, bench")
	fs.StringVar(&f.law, "law", string(latency.KindAffine), "latency law of a step log: affine, table")
	fs.StringVar(&f.host, "host", "none",
		"host time of a step: `DURATION` of what was logged; gaps: the gaps between steps; none")
	fs.Float64Var(&f.options.Contention, "contention", 0,
		"kappa of models on the same GPUs, taken out of steps that overlap")
	fs.IntVar(&f.options.States, "states", 4, "most states of a modulation, 1 to 4; 1: none")
	fs.IntVar(&f.options.Window, "window", 256, "output tokens of a window of the phase profile")
	fs.StringArrayVar(&f.rename, "rename", nil, "call a model of the logs by a card's name, `OLD=NEW`; may be repeated")
	fs.StringVar(&f.against, "against", "", "summary.json `FILE` that a benchmark is held against")
	fs.IntVar(&f.point, "point", 0, "which of its points, from 1 (0: the one at the benchmark's concurrency)")
	fs.StringVar(&f.out, "out", "calibration", "`FOLDER` of the files")
	outputFormat(cmd, &f.format)
	fs.StringVar(&f.plots, "plot", "svg,png", "pictures: svg, png, none")
	complete(cmd, "log", "auto", "steps", "tokens", "bench")
	complete(cmd, "law", string(latency.KindAffine), string(latency.KindTable))
	complete(cmd, "host", "none", "gaps")
	complete(cmd, "plot", "svg,png", "svg", "png", "none")
	return cmd
}

func (f *calibrateFlags) run(cmd *cobra.Command, args []string) error {
	formats, err := f.resolve()
	if err != nil {
		return err
	}
	if err := calibrate.CheckFolder(f.out); err != nil {
		return calibrateError(err)
	}
	logs, err := f.read(args)
	if err != nil {
		return calibrateError(err)
	}
	report, err := f.fit(cmd.Context(), logs)
	if err != nil {
		return calibrateError(err)
	}
	if err := report.Save(f.out, formats...); err != nil {
		return calibrateError(err)
	}
	if f.format == "json" {
		return report.JSON(cmd.OutOrStdout())
	}
	return report.Text(cmd.OutOrStdout())
}

// resolve checks the flags and returns the formats of pictures.
func (f *calibrateFlags) resolve() (formats []string, err error) {
	if err := checkFormat(f.format); err != nil {
		return nil, err
	}
	if f.plots != "none" {
		for format := range strings.SplitSeq(f.plots, ",") {
			if format = strings.TrimSpace(format); format != "svg" && format != "png" {
				return nil, badUsage("--plot %q: want svg, png or none", f.plots)
			}
			formats = append(formats, format)
		}
	}
	f.options.Law = latency.Kind(f.law)
	switch f.host {
	case "none":
	case "gaps":
		f.options.HostGaps = true
	default:
		if f.options.Host, err = time.ParseDuration(f.host); err != nil || f.options.Host < 0 {
			return nil, badUsage("--host %q: want a duration with a unit, such as 3.9ms, or gaps, or none", f.host)
		}
	}
	if f.options.States < 1 {
		return nil, badUsage("--states %d: want 1 to 4", f.options.States)
	}
	if f.options.Window < 1 {
		return nil, badUsage("--window %d: want at least 1 token", f.options.Window)
	}
	if f.point != 0 && f.against == "" {
		return nil, badUsage("--point %d: there is no --against", f.point)
	}
	return formats, nil
}

// read reads the files: at most one log of each kind.
func (f *calibrateFlags) read(paths []string) (logs calibrate.Log, err error) {
	kind := calibrate.Kind(f.kind)
	if f.kind == "auto" {
		kind = ""
	}
	var renamed []string
	for _, path := range paths {
		log, err := calibrate.ReadFile(path, kind)
		if err != nil {
			return logs, err
		}
		if log.Steps != nil && logs.Steps != nil || log.Tokens != nil && logs.Tokens != nil || log.Bench != nil &&
			logs.Bench != nil {
			return logs, badUsage("%s: a second log of its kind: want one of each at most", path)
		}
		switch {
		case log.Steps != nil:
			logs.Steps = log.Steps
		case log.Tokens != nil:
			logs.Tokens = log.Tokens
		default:
			logs.Bench = log.Bench
		}
		for _, pair := range f.rename {
			old, to, ok := strings.Cut(pair, "=")
			if !ok {
				return logs, badUsage("--rename %q: want OLD=NEW", pair)
			}
			if !log.Has(old) {
				continue
			}
			if err := log.Rename(old, to); err != nil {
				return logs, err
			}
			renamed = append(renamed, pair)
		}
	}
	for _, pair := range f.rename {
		if !slices.Contains(renamed, pair) {
			return logs, badUsage("--rename %q: no log has such a model", pair)
		}
	}
	return logs, nil
}

func (f *calibrateFlags) fit(ctx context.Context, logs calibrate.Log) (*calibrate.Report, error) {
	var report calibrate.Report
	var err error
	if logs.Steps != nil {
		if report.Steps, err = calibrate.FitSteps(ctx, logs.Steps, f.options); err != nil {
			return nil, err
		}
	}
	if logs.Tokens != nil {
		if report.Tokens, err = calibrate.FitTokens(logs.Tokens, f.options); err != nil {
			return nil, err
		}
	}
	if f.against != "" && logs.Bench == nil {
		return nil, badUsage("--against %s: there is no result of vllm bench serve to hold against it", f.against)
	}
	if logs.Bench != nil {
		point, err := f.predicted(logs.Bench)
		if err != nil {
			return nil, err
		}
		report.Bench = calibrate.CheckBench(logs.Bench, point)
	}
	return &report, nil
}

// predicted is the point that a benchmark is held against; nil where none is asked for.
func (f *calibrateFlags) predicted(b *calibrate.Bench) (*results.Point, error) {
	if f.against == "" {
		return nil, nil
	}
	file, err := os.Open(f.against)
	if err != nil {
		return nil, &experiment.Error{Code: experiment.ExitData, Err: fmt.Errorf("--against: %w", err)}
	}
	defer file.Close()
	summary, err := results.ReadSummary(f.against, file)
	if err != nil {
		return nil, &experiment.Error{Code: experiment.ExitData, Err: fmt.Errorf("--against: %w", err)}
	}
	return calibrate.ChoosePoint(summary, b, f.point)
}

// calibrateError gives an error its exit code: 3 for a bad file, 2 for options, 130 for an interruption.
func calibrateError(err error) error {
	var known *experiment.Error
	var data *calibrate.DataError
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &data):
		return &experiment.Error{Code: experiment.ExitData, Err: err}
	case errors.Is(err, calibrate.ErrOptions):
		return &experiment.Error{Code: experiment.ExitUsage, Err: err}
	case errors.Is(err, context.Canceled):
		return &experiment.Error{Code: experiment.ExitInterrupted, Err: errors.New("interrupted: nothing was written")}
	}
	return err
}
