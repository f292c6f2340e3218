package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/workloads"
)

func dataCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "data",
		Short: "Look at, check and sample dataset files",
		Args:  unknownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(dataInspect(), dataValidate(), dataSample())
	return cmd
}

// dataFlags are how a dataset file is read.
type dataFlags struct {
	options workloads.Options
	format  string
}

func (d *dataFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&d.format, "format", "auto", "form of the file: auto, sharegpt, alpaca, gsm8k, questions, azure, mooncake, burstgpt, lengths")
	cmd.Flags().StringVar(&d.options.Sampler, "sampler", "", "rules that choose entries: vllm, sglang, seeded, none (unset: the usual ones of the form)")
	complete(cmd, "format", "auto", "sharegpt", "alpaca", "gsm8k", "questions", "azure", "mooncake", "burstgpt", "lengths")
	complete(cmd, "sampler", workloads.Samplers()...)
}

func (d *dataFlags) resolve() workloads.Options {
	if d.format != "auto" {
		d.options.Format = d.format
	}
	return d.options
}

// inspect reads a file; wrong options are the user's mistake.
func (d *dataFlags) inspect(path string, limit int) (*workloads.Report, error) {
	r, err := workloads.Inspect(path, limit, d.resolve())
	if err != nil {
		return nil, badUsage("%w", err)
	}
	return r, nil
}

func dataInspect() *cobra.Command {
	var flags dataFlags
	var format string
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Show what is in a dataset file: form, lengths, arrivals, what a run would skip",
		Args:  exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			r, err := flags.inspect(args[0], 5)
			if err != nil {
				return err
			}
			switch {
			case format == "json":
				if err := writeJSON(cmd.OutOrStdout(), r); err != nil {
					return err
				}
			case r.Entries == 0: // nothing was read: the problem says it all
				return &experiment.Error{Code: experiment.ExitData, Err: orNothing(r.Err())}
			default:
				writeReport(cmd.OutOrStdout(), r)
			}
			if r.Usable == 0 {
				return &experiment.Error{Code: experiment.ExitData, Err: fmt.Errorf("%s: nothing in it can be run: %w", args[0], orNothing(r.Err()))}
			}
			return nil
		},
	}
	flags.add(cmd)
	outputFormat(cmd, &format)
	return cmd
}

func orNothing(err error) error {
	if err == nil {
		return fmt.Errorf("the sampler lets nothing through")
	}
	return err
}

func dataValidate() *cobra.Command {
	var flags dataFlags
	var limit int
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a dataset file; exit 3 and say where if something is wrong",
		Args:  exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return badUsage("--limit %d: want at least 1", limit)
			}
			r, err := flags.inspect(args[0], limit)
			if err != nil {
				return err
			}
			if r.Found == 0 && r.Usable > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: ok: %s, %d entries, %d usable\n", r.File, r.Format, r.Entries, r.Usable)
				return nil
			}
			for _, p := range r.Problems {
				fmt.Fprintln(cmd.ErrOrStderr(), p)
			}
			if more := r.Found - len(r.Problems); more > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "and %d more (--limit)\n", more)
			}
			return &experiment.Error{Code: experiment.ExitData, Err: fmt.Errorf("%s: %d problems in %d entries, %d usable", args[0], r.Found, r.Entries, r.Usable)}
		},
	}
	flags.add(cmd)
	cmd.Flags().IntVar(&limit, "limit", 20, "problems to show")
	return cmd
}

func dataSample() *cobra.Command {
	var flags dataFlags
	var out string
	cmd := &cobra.Command{
		Use:   "sample FILE|WORKLOAD",
		Short: "Write the requests that a run would choose as a lengths CSV",
		Args:  exactly("FILE|WORKLOAD"),
		RunE: func(cmd *cobra.Command, args []string) error {
			load := workloads.Load
			if _, err := os.Stat(args[0]); err == nil {
				load = workloads.LoadFile
			}
			set, err := load(args[0], flags.resolve())
			if err != nil {
				return dataError(err)
			}
			w := cmd.OutOrStdout()
			if out != "" {
				f, err := os.Create(out)
				if err != nil {
					return badUsage("--out: %w", err)
				}
				defer f.Close()
				w = f
			}
			return set.WriteCSV(w)
		},
	}
	flags.add(cmd)
	cmd.Flags().IntVar(&flags.options.N, "requests", 0, "requests to choose; 0: all")
	cmd.Flags().Uint64Var(&flags.options.Seed, "seed", 1, "of the choice")
	cmd.Flags().StringVar(&out, "out", "", "`FILE` to write; stdout if not given")
	return cmd
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// writeReport is what a person reads of a file.
func writeReport(w io.Writer, r *workloads.Report) {
	fmt.Fprintf(w, "%s\n", r.File)
	fmt.Fprintf(w, "  form      %s, %d bytes\n", r.Format, r.Bytes)
	fmt.Fprintf(w, "  entries   %d, of which %d usable (sampler %s)\n", r.Entries, r.Usable, r.Sampler)
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "  skipped   %d: %s\n", s.Count, s.Reason)
	}
	if r.Prompt != nil || r.Output != nil {
		fmt.Fprintf(w, "  %-9s %8s %6s %8s %8s %8s %6s\n", "tokens", "mean", "min", "p50", "p90", "p99", "max")
	}
	lengths := func(name string, l *workloads.Lengths) {
		if l != nil {
			fmt.Fprintf(w, "  %-9s %8.1f %6d %8.1f %8.1f %8.1f %6d\n", name, l.Mean, l.Min, l.P50, l.P90, l.P99, l.Max)
		}
	}
	lengths("prompt", r.Prompt)
	lengths("output", r.Output)
	if a := r.Arrivals; a != nil {
		fmt.Fprintf(w, "  arrivals  %s to %s, %.4g a second, cv of the gaps %.3g\n", a.First, a.Last, a.Rate, a.CV)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "  problem   %v\n", p)
	}
	if more := r.Found - len(r.Problems); more > 0 {
		fmt.Fprintf(w, "  problem   and %d more: trbench data validate shows them\n", more)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(w, "  note      %s\n", n)
	}
}

// dataError gives a bad file exit code 3.
func dataError(err error) error {
	if experiment.IsDataError(err) {
		return &experiment.Error{Code: experiment.ExitData, Err: err}
	}
	return badUsage("%w", err)
}
