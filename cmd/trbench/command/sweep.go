package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/plot"
	"github.com/trbench/trbench/results/table"
)

// Names of the files that a sweep adds to its folder, and of the folder that it works in.
const (
	sweepFile     = "sweep.json"
	thresholdFile = "threshold.yaml"
	journalFile   = "journal.jsonl"
	unfinished    = ".unfinished"
)

func sweepCommand() *cobra.Command {
	var axes, policies []string
	var objective, resume, progress, profile string
	var flags *configFlags
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Tune a deployment: run every combination of values, find the best",
		Long: `Run every combination of the axes' values and say which is best: for each concurrency (and each
other value that is given, not chosen) the best of what an operator chooses: threshold, batching
policy, batch size, deployment, algorithm.

Without an axis it tunes delayed batching: thresholds 1..16 at concurrency 4, 8 and 16, with the
three batching policies side by side, against the exact Markov prediction. Every repeat of every
point runs under the same seeds, so gains are paired, with a 95 % interval.

The result folder holds summary.json, plots, sweep.json (what was asked and the verdicts) and
threshold.yaml, which trbench run --threshold FILE loads.`,
		Example: `  trbench sweep --latency paper --switch-rate 0.35 --workload fixed:100,512
  trbench sweep --axis threshold=1..8 --axis concurrency=4,8 --axis switch_rate=0.1..0.5:0.1
  trbench sweep --axis max_batch=8,32,128 --objective 'max output_tok_s s.t. tpot_p99_ms < 80'
  trbench sweep --resume runs/sweep-1a2b3c4d`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stop, err := startProfile(profile)
			if err != nil {
				return err
			}
			defer stop()
			var spec experiment.SweepSpec
			out := resume
			var cfg *experiment.Config
			if resume != "" {
				if spec, err = readSweep(resume); err != nil {
					return err
				}
				if cfg, err = resumeConfig(flags, axes, policies); err != nil {
					return err
				}
			} else {
				if spec, cfg, err = newSweep(flags, axes, policies, objective); err != nil {
					return err
				}
				out = cfg.Out
			}
			s, err := experiment.NewSweep(cmd.Context(), spec)
			if err != nil {
				return err
			}
			if out == "" {
				out = filepath.Join("runs", "sweep-"+s.Hash[:8])
			}
			return runSweep(cmd, s, cfg, out, resume != "", progress)
		},
	}
	flags = addConfigFlags(cmd, sweepDefaults)
	fs := cmd.Flags()
	fs.StringArrayVar(&axes, "axis", nil, "sweep a key, `KEY=1,2,4` or KEY=1..16 or KEY=0.05..0.5:0.05; may be repeated")
	fs.StringSliceVar(&policies, "policies", nil, "batching policies side by side: threshold, gate, timer (default: all three where no axis but threshold and what is given is swept)")
	fs.StringVar(&objective, "objective", "max output_tok_s", "what is best: max|min METRIC [s.t. METRIC < NUMBER, ...]")
	fs.StringVar(&resume, "resume", "", "go on with the sweep of this `DIR` that was interrupted")
	addProgressFlag(cmd, &progress)
	fs.StringVar(&profile, "cpuprofile", "", "write a CPU profile to `FILE`")
	complete(cmd, "policies", experiment.Policies()...)
	usageInGroups(cmd)
	return cmd
}

// sweepGCPercent is how much the heap may grow between collections while a sweep runs.
const sweepGCPercent = 800

// sweepDefaults are a sweep's own: one system, one workload, and repeats for the intervals.
var sweepDefaults = map[string]string{"system": "tokenrouter", "workload": "gsm8k", "repeat": "3", "concurrency": "4,8,16"}

// newSweep makes the spec that the flags describe.
func newSweep(flags *configFlags, axes, policies []string, objective string) (experiment.SweepSpec, *experiment.Config, error) {
	spec := experiment.SweepSpec{Objective: objective, Config: map[string]string{}}
	cfg, err := flags.config(func(c *experiment.Config) error {
		var errs []error
		for key, value := range sweepDefaults {
			errs = append(errs, c.Set(key, value))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		return spec, nil, err
	}
	if cfg.Engine != "sim" {
		return spec, nil, badUsage("--engine %s: a sweep runs in the simulator", cfg.Engine)
	}
	if len(axes) == 0 {
		axes = []string{"threshold=1..16"}
	}
	for _, text := range axes {
		a, err := experiment.ParseAxis(text)
		if err != nil {
			return spec, nil, err
		}
		if flags.isSet(a.Key) {
			return spec, nil, badUsage("axis %s: the key is set by %s too", text, flags.explicit[a.Key])
		}
		spec.Axes = append(spec.Axes, a)
	}
	// Each concurrency is a value that is given: a point competes with those of its own.
	if !slices.ContainsFunc(spec.Axes, func(a experiment.Axis) bool { return a.Key == "concurrency" }) && cfg.Arrival.Closed() {
		a := experiment.Axis{Key: "concurrency"}
		for _, n := range cfg.Concurrency {
			a.Values = append(a.Values, fmt.Sprint(n))
		}
		spec.Axes = append([]experiment.Axis{a}, spec.Axes...)
	}
	thresholds := slices.ContainsFunc(spec.Axes, func(a experiment.Axis) bool { return a.Key == "threshold" })
	switch {
	case len(policies) > 0:
		spec.Policies = policies
	case thresholds && !flags.isSet("batching") && !slices.ContainsFunc(spec.Axes, func(a experiment.Axis) bool { return a.Key == "batching" }) &&
		slices.Equal(cfg.System, []string{"tokenrouter"}):
		spec.Policies = experiment.Policies()
	}
	for _, k := range experiment.Keys() {
		if !k.Free {
			spec.Config[k.Name] = k.Get(cfg)
		}
	}
	return spec, cfg, nil
}

// readSweep reads the spec of a sweep that was interrupted.
func readSweep(dir string) (experiment.SweepSpec, error) {
	var spec experiment.SweepSpec
	path := filepath.Join(dir+unfinished, sweepFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return spec, badUsage("--resume %s: no interrupted sweep there: %w", dir, err)
	}
	if err := json.Unmarshal(data, &spec); err != nil {
		return spec, badUsage("%s: %w", path, err)
	}
	if spec.Schema != experiment.SweepSchema {
		return spec, badUsage("%s: schema %q, want %q", path, spec.Schema, experiment.SweepSchema)
	}
	return spec, nil
}

// resumeConfig is what a resumed sweep takes from its flags: where and how fast, not what.
func resumeConfig(flags *configFlags, axes, policies []string) (*experiment.Config, error) {
	if len(axes)+len(policies) > 0 {
		return nil, badUsage("--resume goes on with the axes and policies that the sweep was started with: leave --axis and --policies out")
	}
	cfg, err := flags.config(nil)
	if err != nil {
		return nil, err
	}
	for _, k := range experiment.Keys() {
		if where := flags.explicit[k.Name]; where == "flag" && !k.Free {
			return nil, badUsage("--resume goes on with the %s that the sweep was started with: leave --%s out", k.Name, flagName(k.Name))
		}
	}
	return cfg, nil
}

// runSweep runs a sweep into out. While it runs, the folder out.unfinished holds what is needed to resume.
func runSweep(cmd *cobra.Command, s *experiment.Sweep, cfg *experiment.Config, out string, resumed bool, progress string) error {
	// Found before the work starts; the folder itself is made at the end, so that a kill leaves one folder, not two.
	folder, err := results.Create(out, s.Hash)
	if err != nil {
		return badUsage("%w", err)
	}
	if err := folder.Discard(); err != nil {
		return err
	}
	work := filepath.Clean(out) + unfinished
	journal, err := openSweep(s, work, resumed)
	if err != nil {
		return err
	}
	bar, err := newProgress(cmd.ErrOrStderr(), progress, s.Runs(), "runs")
	if err != nil {
		return errors.Join(err, journal.Close())
	}
	// Points are short and leave little behind: collecting less often costs some tens of MB and lets cores work side by
	// side (two cores: 1.9 times as fast as one, instead of 1.7).
	defer debug.SetGCPercent(debug.SetGCPercent(sweepGCPercent))
	s.Workers = cfg.Workers
	points, runErr := s.Run(cmd.Context(), journal, experiment.SweepOptions{Progress: bar.add})
	bar.done()
	if err := errors.Join(runErr, journal.Close()); err != nil {
		if cmd.Context().Err() != nil {
			return &experiment.Error{Code: experiment.ExitInterrupted, Err: fmt.Errorf(
				"interrupted: %d runs are kept; go on with: trbench sweep --resume %s", journal.Len(), out)}
		}
		return err
	}
	report, err := s.Report(cmd.Context(), points)
	if err != nil {
		return err
	}
	if folder, err = results.Create(out, s.Hash); err != nil {
		return badUsage("%w", err)
	}
	if err := writeSweep(folder, s, cfg, report); err != nil {
		return errors.Join(err, folder.Discard())
	}
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	return printSweep(cmd.OutOrStdout(), cfg.Output, cfg.Plot, folder.Path(), report)
}

// openSweep makes the working folder, or opens the one that a resumed sweep left.
func openSweep(s *experiment.Sweep, work string, resumed bool) (*experiment.Journal, error) {
	journal := filepath.Join(work, journalFile)
	if !resumed {
		if _, err := os.Stat(journal); err == nil {
			return nil, badUsage("%s holds an interrupted sweep: go on with --resume %s, or remove it", work, strings.TrimSuffix(work, unfinished))
		}
		if err := os.MkdirAll(work, 0o777); err != nil {
			return nil, badUsage("%w", err)
		}
		data, err := json.MarshalIndent(s.Spec, "", "  ")
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(work, sweepFile), append(data, '\n'), 0o666); err != nil {
			return nil, badUsage("%w", err)
		}
	}
	return experiment.OpenJournal(journal)
}

// writeSweep writes all files of a finished sweep and gives the folder its name.
func writeSweep(folder *results.Folder, s *experiment.Sweep, cfg *experiment.Config, r *experiment.SweepReport) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder.Dir(), sweepFile), append(data, '\n'), 0o666); err != nil {
		return err
	}
	if r.Table != nil {
		f, err := os.Create(filepath.Join(folder.Dir(), thresholdFile))
		if err != nil {
			return err
		}
		if err := errors.Join(r.Table.Write(f), f.Close()); err != nil {
			return err
		}
	}
	if err := plotSweep(folder.Dir(), cfg.Plot, r); err != nil {
		return err
	}
	at := time.Now()
	m := s.Manifest(version(), os.Args)
	m.FinishedAt = &at
	return folder.Finish(m, r.Summary)
}

// printSweep is what a person, or a program, reads of a sweep.
func printSweep(w io.Writer, format string, plots []string, folder string, r *experiment.SweepReport) error {
	switch format {
	case "json":
		return results.WriteSummary(w, r.Summary)
	case "csv":
		return table.CSV(w, r.Summary)
	case "md":
		return table.Markdown(w, r.Summary)
	}
	seeds := "one seed"
	if r.Repeat > 1 {
		seeds = fmt.Sprintf("%d paired seeds", r.Repeat)
	}
	fmt.Fprintf(w, "simulated, %s step times, %s, %d points, %s\n\n", r.Latency, r.Pair, len(r.Summary.Points), seeds)
	fmt.Fprintf(w, "%-26s %-18s %8s %16s %8s %9s\n", "best at", "choice", shortMetric(r.Metric), "gain over eager", "P99 TPOT", "vs eager")
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if v.Best == nil {
			fmt.Fprintf(w, "%-26s nothing keeps to the limits\n", clip(v.Group, 26))
			continue
		}
		gain, cost := "-", "-"
		if x, ok := v.Gain.Get(); ok {
			gain = fmt.Sprintf("%+.1f %%", 100*x)
			if half, ok := v.GainCI.Get(); ok {
				gain += fmt.Sprintf(" ± %.1f", 100*half)
			}
		}
		if x, ok := v.TPOTCost.Get(); ok {
			cost = fmt.Sprintf("%+.1f %%", 100*x)
		}
		fmt.Fprintf(w, "%-26s %-18s %8.5g %16s %8.4g %9s\n", clip(v.Group, 26), clip(v.BestName, 18), v.Value.Or(0), gain, v.TPOT.Or(0), cost)
		if e := v.Exact; e != nil {
			note := ""
			without := e.Without
			if e.Contention > 0 {
				without = append([]string{"contention"}, without...)
			}
			if len(without) > 0 {
				note = " (without " + strings.Join(without, ", ") + ")"
			}
			fmt.Fprintf(w, "%-26s exact chain: best %s, %.5g tok/s, %+.1f %% over eager%s\n", "", vectorText(e.Threshold), e.Throughput, 100*(e.Throughput/e.Eager-1), note)
		}
	}
	fmt.Fprintf(w, "\n%s\n", wrapText(r.Recommendation, 80))
	for _, x := range r.Summary.Warnings {
		fmt.Fprintf(w, "%s\n", wrapText("warning: "+x, 80))
	}
	if slices.Contains(plots, "term") {
		t, err := tuning(r)
		if err == nil {
			err = plot.TuningTerm(w, t)
		}
		if err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "Results: %s\n", folder)
	if r.Table != nil {
		fmt.Fprintf(w, "Table:   trbench run --threshold %s/%s\n", folder, thresholdFile)
	}
	return nil
}

func shortMetric(m string) string {
	switch m {
	case "output_tok_s", "steady_tok_s":
		return "tok/s"
	case "agreement":
		return "agree"
	}
	return clip(m, 8)
}

// clip shortens a text to n letters.
func clip(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// wrapText breaks lines at spaces; continued lines are indented.
func wrapText(s string, width int) string {
	var b strings.Builder
	col := 0
	for i, word := range strings.Fields(s) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case col+1+n > width:
			b.WriteString("\n  ")
			col = 2
		default:
			b.WriteByte(' ')
			col++
		}
		b.WriteString(word)
		col += n
	}
	return b.String()
}
