package command

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/cmd/trbench/replay"
	"github.com/trbench/trbench/models/latency/kernels"
	"github.com/trbench/trbench/results/fidelity"
	"github.com/trbench/trbench/results/plot"
	"github.com/trbench/trbench/sim/serve"
)

// fidelityFile is the JSON document in the folder of a comparison.
const fidelityFile = "fidelity.json"

// fidelityFlags are what is compared, and where to.
type fidelityFlags struct {
	runs   []string
	engine string
	out    string
	output string
	plots  string
	real   engineFlags
}

func fidelityCommand() *cobra.Command {
	var f fidelityFlags
	cmd := &cobra.Command{
		Use:   "fidelity --runs DIR[,DIR...] | --engine cpu",
		Short: "Predicted against real: how far the simulator can be trusted",
		Long: `Predicts real runs and prints, for TTFT, TPOT, E2E and throughput, the predicted and the real figure
and the error, then the error with each mechanism of the prediction switched off.

--runs takes folders of real vLLM runs. DIR/run.json says how the server was set and where the
arrival trace and the kernels' times are; DIR/requests.jsonl has what happened to each request, and
DIR/timeseries.csv, if it is there, how many ran. Nothing is fitted to a run.

--engine cpu runs real models here, the embedded demo pair unless --small and --large name folders,
and predicts the runs: at each concurrency and under each algorithm, runs of other requests whose step
log the simulator replays, in turn with runs of the requests that are predicted. The simulated
requests meet the same tokens, scores and ends as the measured ones: what is predicted is time.
--out then has the step logs too, for trbench calibrate.

Into the folder of --out go fidelity.json and the plots: distributions over each other, and running
requests over time.

Exit codes: 0 done, 2 usage or settings that can't be simulated, 3 a file is missing or malformed.`,
		Example: `  trbench fidelity --runs runs/RTX4090/Llama-3.1-8B,runs/RTXPRO6000/Llama-3.1-8B
  trbench fidelity --runs runs/RTX4090/Llama-3.1-8B --output json --plot none
  trbench fidelity --engine cpu --concurrency 1,4,16 --rounds 20`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringSliceVar(&f.runs, "runs", nil, "folders of real runs, `DIR[,DIR...]`")
	fs.StringVar(&f.engine, "engine", "", "predict and run real models here: cpu")
	fs.StringVar(&f.out, "out", "", "`FOLDER` of the results (default runs/fidelity-HASH)")
	fs.StringVar(&f.output, "output", "table", "on stdout: table, json, csv or md")
	fs.StringVar(&f.plots, "plot", "svg,png", "pictures: svg, png, none")
	f.real.add(cmd)
	complete(cmd, "engine", "cpu")
	complete(cmd, "output", "table", "json", "csv", "md")
	complete(cmd, "plot", "svg,png", "svg", "png", "none")
	for _, flag := range []string{"runs", "out"} {
		if err := cmd.MarkFlagDirname(flag); err != nil {
			panic(err) // a flag that the command does not have
		}
	}
	return cmd
}

func (f *fidelityFlags) run(cmd *cobra.Command) error {
	if !slices.Contains([]string{"table", "json", "csv", "md"}, f.output) {
		return badUsage("--output %q: want table, json, csv or md", f.output)
	}
	formats, err := pictureFormats(f.plots)
	if err != nil {
		return err
	}
	if f.out != "" { // checked before the work
		if err := os.MkdirAll(f.out, 0o777); err != nil {
			return badUsage("--out: %w", err)
		}
	}
	report, pictures, err := f.report(cmd.Context(), cmd)
	if err != nil {
		return err
	}
	where, err := f.save(report, pictures, formats)
	if err != nil && f.out != "" {
		return badUsage("--out: %w", err)
	}
	if err != nil { // a default that can't be written is no reason to withhold the figures
		fmt.Fprintf(cmd.ErrOrStderr(), "trbench: warning: no plots: %v (--out FOLDER says where to)\n", err)
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
	if err := report.Table(w); err != nil || where == "" {
		return err
	}
	_, err = fmt.Fprintf(w, "\nResults: %s\n", where)
	return err
}

// pictureFormats reads --plot.
func pictureFormats(list string) (formats []string, err error) {
	if list == "none" {
		return nil, nil
	}
	for format := range strings.SplitSeq(list, ",") {
		if format = strings.TrimSpace(format); format != "svg" && format != "png" {
			return nil, badUsage("--plot %q: want svg, png or none", list)
		}
		formats = append(formats, format)
	}
	return formats, nil
}

// save writes the report and its pictures into the folder, and returns its name. Without a --out the folder is named
// after what the report says.
func (f *fidelityFlags) save(report *fidelity.Report, pictures []plot.Replay, formats []string) (dir string, err error) {
	var doc bytes.Buffer
	if err := report.WriteJSON(&doc); err != nil {
		return "", err
	}
	if dir = f.out; dir == "" {
		sum := sha256.Sum256(doc.Bytes())
		dir = filepath.Join("runs", "fidelity-"+hex.EncodeToString(sum[:4]))
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, fidelityFile), doc.Bytes(), 0o666); err != nil {
		return "", err
	}
	_, err = plot.SaveReplays(dir, pictures, formats...)
	return dir, err
}

// report predicts what the flags name.
func (f *fidelityFlags) report(ctx context.Context, cmd *cobra.Command) (*fidelity.Report, []plot.Replay, error) {
	switch {
	case len(f.runs) > 0 && f.engine != "":
		return nil, nil, badUsage("--runs and --engine: want one of them")
	case len(f.runs) > 0:
		return f.replay(ctx)
	case f.engine == "cpu":
		return f.engineRuns(ctx, cmd)
	case f.engine != "":
		return nil, nil, badUsage("--engine %q: want cpu", f.engine)
	}
	return nil, nil, badUsage("want --runs DIR[,DIR...] or --engine cpu")
}

// replay predicts the runs of --runs.
func (f *fidelityFlags) replay(ctx context.Context) (*fidelity.Report, []plot.Replay, error) {
	report := &fidelity.Report{}
	var pictures []plot.Replay
	for _, dir := range f.runs {
		if dir = strings.TrimSpace(dir); dir == "" {
			return nil, nil, badUsage("--runs %q: a folder without a name", strings.Join(f.runs, ","))
		}
		r, err := replay.Open(dir)
		if err != nil {
			return nil, nil, replayError(err)
		}
		compared, picture, err := r.Compare(ctx)
		if err != nil {
			return nil, nil, replayError(fmt.Errorf("%s: %w", dir, err))
		}
		report.Runs = append(report.Runs, *compared)
		pictures = append(pictures, *picture)
	}
	return report, pictures, nil
}

// replayError gives an error its exit code: 3 for a bad file, 2 for settings that can't be simulated.
func replayError(err error) error {
	var data *replay.DataError
	var table *kernels.Error
	code := experiment.ExitInternal
	switch {
	case errors.As(err, &data), errors.As(err, &table):
		code = experiment.ExitData
	case errors.Is(err, replay.ErrSettings), errors.Is(err, serve.ErrConfig), errors.Is(err, serve.ErrTooLong),
		errors.Is(err, serve.ErrStranded):
		code = experiment.ExitUsage
	case errors.Is(err, context.Canceled):
		return err
	}
	return &experiment.Error{Code: code, Err: err}
}
