package command

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/internal/suggest"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/plot"
	"github.com/trbench/trbench/results/table"
)

// headline is the run without a name.
const headline = "headline"

// presets are the runs with a name: what each lays over the defaults.
func presets() map[string]func(*experiment.Config) error {
	return map[string]func(*experiment.Config) error{
		headline: func(*experiment.Config) error { return nil },
	}
}

func findPreset(name string) (func(*experiment.Config) error, error) {
	names := []string{paperPreset, articlePreset} // these are no plans: see paper.go
	for n := range presets() {
		names = append(names, n)
	}
	slices.Sort(names)
	if p := presets()[name]; p != nil {
		return p, nil
	}
	if near, ok := suggest.Nearest(name, names); ok {
		return nil, badUsage("unknown preset %q: did you mean %s?", name, near)
	}
	return nil, badUsage("unknown preset %q (known: %s)", name, strings.Join(names, ", "))
}

func runCommand() *cobra.Command {
	var dryRun bool
	var progress, profile string
	var flags *configFlags
	cmd := &cobra.Command{
		Use:   "run [headline | paper | article]",
		Short: "Run systems on workloads and compare them",
		Long: `Run every system on every workload, algorithm and concurrency, and write a table, plots and
the records of all requests.

The headline, the default, is: on GSM8K, Alpaca and ShareGPT lengths, Llama-3-8B/70B on A100s,
R2R at a switch rate of .1: what TokenRouter gives against the same algorithm orchestrated over
RPC on separate servers, with and without their prefix cache, and against the large model alone.

paper sets every published number of the paper and the article beside ours: which were fitted,
which were predicted, how far off, and why; article sets those of the article alone. Of the keys
they take only seed, workers, out, output and plot.

Every key is a flag, or set by --set KEY=VALUE, a line of --config FILE, or the environment
(TRBENCH_KEY, dots as underscores). Flags come before the environment, the environment before
the file. The results are a folder: summary.json, requests.jsonl, run.json and plots.

Exit codes: 0 done, 2 usage or config, 3 dataset, 4 target not there, 5 no tokens or too many
failed requests, 130 interrupted (what is done is written).`,
		Example: `  trbench run
  trbench run --workload fixed:100,2048 --latency paper --switch-rate 0.35 --concurrency 1,2,4,8
  trbench run --data ShareGPT_V3.json --sampler vllm --requests 1000 --arrival poisson:4
  trbench run --set rpc.rtt_us=200 --set rpc.calls=run --output json
  trbench run paper`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return badUsage("%s: want one preset at most, got %d", cmd.CommandPath(), len(args))
			}
			return nil
		},
		ValidArgs: []string{headline, paperPreset, articlePreset},
		RunE: func(cmd *cobra.Command, args []string) error {
			name := headline
			if len(args) > 0 {
				name = args[0]
			}
			if name == paperPreset || name == articlePreset {
				return runPaper(cmd, name, flags, dryRun, progress, profile)
			}
			preset, err := findPreset(name)
			if err != nil {
				return err
			}
			cfg, err := flags.config(preset)
			if err != nil {
				return err
			}
			if err := engineDefaults(cfg, flags); err != nil {
				return err
			}
			plan, err := experiment.NewPlan(cmd.Context(), name, cfg)
			if err != nil {
				return err
			}
			if dryRun {
				return describePlan(cmd.OutOrStdout(), plan, flags)
			}
			stop, err := startProfile(profile)
			if err != nil {
				return err
			}
			defer stop()
			return runPlan(cmd, plan, progress)
		},
	}
	flags = addConfigFlags(cmd, nil)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print every key resolved, and what would run; run nothing")
	addProgressFlag(cmd, &progress)
	cmd.Flags().StringVar(&profile, "cpuprofile", "", "write a CPU profile to `FILE`")
	usageInGroups(cmd)
	return cmd
}

// engineDefaults are what a run on the wall clock does where the user has not said: systems that the engine has, and for
// real models the demo pair's prompts, an algorithm that reads the models' own scores, and less work.
func engineDefaults(cfg *experiment.Config, flags *configFlags) error {
	defaults := map[string]string{}
	if cfg.Engine != "sim" {
		defaults["system"] = "tokenrouter,step-sync,large-only"
	}
	if cfg.Engine == "cpu" {
		defaults["algorithm"] = "entropy"
		defaults["concurrency"] = "1,4,16"
		defaults["requests"] = "48"
		if !flags.isSet("data") && !flags.isSet("workload") {
			cfg.Workload = []string{experiment.DemoWorkload}
		}
	}
	for key, value := range defaults {
		if flags.isSet(key) {
			continue
		}
		if err := cfg.Set(key, value); err != nil {
			return err
		}
	}
	return nil
}

// usageInGroups sorts a command's flags into the groups of the keys.
func usageInGroups(cmd *cobra.Command) {
	cmd.SetUsageFunc(func(c *cobra.Command) error {
		_, err := fmt.Fprintf(c.OutOrStderr(), "Usage:\n  %s\n\nExamples:\n%s\n\n%s\n", c.UseLine(), c.Example, groupedUsage(c))
		return err
	})
}

// runPlan runs a plan and writes its results.
func runPlan(cmd *cobra.Command, plan *experiment.Plan, progress string) error {
	bar, err := newProgress(cmd.ErrOrStderr(), progress, plan.Requests(), "requests")
	if err != nil {
		return err
	}
	o := experiment.RunOptions{CommandLine: os.Args, Version: version(), Progress: bar.add, Now: time.Now}
	result, runErr := plan.Run(cmd.Context(), o)
	bar.done()
	if result == nil {
		return runErr
	}
	if err := writeResult(cmd, plan, result, o); err != nil {
		return err
	}
	if runErr != nil {
		return runErr
	}
	return result.Check(plan)
}

// writeResult draws the plots, gives the folder its name and prints the summary.
func writeResult(cmd *cobra.Command, plan *experiment.Plan, r *experiment.Result, o experiment.RunOptions) error {
	cfg := plan.Config
	formats := slices.DeleteFunc(slices.Clone(cfg.Plot), func(f string) bool { return f != "svg" && f != "png" })
	files, _, err := plot.Save(r.Folder.Dir(), plot.Data{Summary: r.Summary, TTFT: r.TTFT}, formats...)
	if err != nil {
		return err
	}
	if cfg.Trace {
		if err := experiment.JoinTraces(r.Folder.Dir()); err != nil {
			return err
		}
	}
	if err := r.Finish(o); err != nil {
		return err
	}
	if kept := r.Folder.Kept(); kept != "" {
		fmt.Fprintf(cmd.ErrOrStderr(), "trbench: another result, or other files, had the folder's name: they are now in %s\n", kept)
	}
	out := cmd.OutOrStdout()
	if err := printSummary(out, cfg.Output, r.Summary); err != nil {
		return err
	}
	if cfg.Output != "table" {
		return nil
	}
	if slices.Contains(cfg.Plot, "term") {
		if err := plot.Term(out, r.Summary); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "Results: %s\n", r.Folder.Path())
	if len(files) > 0 {
		fmt.Fprintf(out, "Plots:   %d files; begin with %s/%s\n", len(files), r.Folder.Path(), files[0])
	}
	return nil
}

func printSummary(w io.Writer, format string, s *results.Summary) error {
	switch format {
	case "json":
		return results.WriteSummary(w, s)
	case "csv":
		return table.CSV(w, s)
	case "md":
		return table.Markdown(w, s)
	}
	return table.Summary(w, s, table.Options{})
}

// describePlan is --dry-run.
func describePlan(w io.Writer, p *experiment.Plan, flags *configFlags) error {
	costs, err := p.CostSources()
	if err != nil {
		return err
	}
	if p.Config.Output == "json" {
		doc := struct {
			Run        string          `json:"run"`
			Folder     string          `json:"folder"`
			Config     json.RawMessage `json:"config"`
			Points     int             `json:"points"`
			Requests   int             `json:"requests"`
			Deployment string          `json:"deployment"`
			KVTokens   int             `json:"kv_tokens"`
			Latency    []string        `json:"latency_sources"`
			Calls      []string        `json:"call_costs"`
			Warnings   []string        `json:"warnings"`
		}{p.Hash, p.Folder(), p.ConfigJSON(), len(p.Points), p.Requests(), p.DescribeDeployment(), p.KVTokens, p.LatencySources(), costs, p.Warnings}
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(doc)
	}
	group := ""
	for _, k := range experiment.Keys() {
		if k.Group != group {
			group = k.Group
			fmt.Fprintf(w, "# %s\n", group)
		}
		value := k.Get(p.Config)
		if value == "" {
			value = `""`
		}
		line := fmt.Sprintf("%s: %s", k.Name, value)
		if where := flags.explicit[k.Name]; where != "" {
			line = fmt.Sprintf("%-40s # %s", line, where)
		}
		fmt.Fprintln(w, line)
	}
	fmt.Fprintf(w, "\n# Would run %d points, %d requests, into %s\n", len(p.Points), p.Requests(), p.Folder())
	fmt.Fprintf(w, "# Deployment: %s\n", p.DescribeDeployment())
	for _, l := range p.LatencySources() {
		fmt.Fprintf(w, "# Latency: %s\n", l)
	}
	for _, l := range costs {
		fmt.Fprintf(w, "# Call: %s\n", l)
	}
	for _, s := range p.Sets {
		prompt, output := s.Tokens()
		fmt.Fprintf(w, "# Workload %s: %d requests, %d prompt and %d output tokens, sha256 %.12s\n", s.Name, len(s.Requests), prompt, output, s.SHA256)
		for _, k := range s.Skipped {
			fmt.Fprintf(w, "#   skipped %d: %s\n", k.Count, k.Reason)
		}
	}
	for _, x := range p.Warnings {
		fmt.Fprintf(w, "# Note: %s\n", x)
	}
	return nil
}

// startProfile starts a CPU profile; the function that comes back ends it.
func startProfile(path string) (func(), error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, badUsage("--cpuprofile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		f.Close()
	}, nil
}
