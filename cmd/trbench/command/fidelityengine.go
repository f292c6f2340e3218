package command

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/results/fidelity"
	"github.com/trbench/trbench/results/plot"
)

// engineFlags are what --engine cpu runs for real.
type engineFlags struct {
	small, large string
	algorithm    string
	concurrency  string
	data         string
	requests     int
	rounds       int
	seed         uint64
}

func (e *engineFlags) add(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&e.small, "small", "", "with --engine: folder of the small model (default: the embedded demo pair)")
	fs.StringVar(&e.large, "large", "", "with --engine: folder of the large model")
	fs.StringVar(&e.algorithm, "algorithm", "entropy,specdec", "with --engine: routing algorithms")
	fs.StringVar(&e.concurrency, "concurrency", "1,4,16", "with --engine: workers of the closed loop")
	fs.StringVar(&e.data, "data", "", "with --engine: dataset file of the prompts (default: generated word problems)")
	fs.IntVar(&e.requests, "requests", 40, "with --engine: requests of a run")
	fs.IntVar(&e.rounds, "rounds", experiment.FidelityRounds, "with --engine: runs of each point that are fitted to, and as many that are predicted, in turn")
	fs.Uint64Var(&e.seed, "seed", 1, "with --engine: of the requests")
	complete(cmd, "algorithm", route.Names()...)
}

// engineRuns runs real models and predicts what they did.
func (f *fidelityFlags) engineRuns(ctx context.Context, cmd *cobra.Command) (*fidelity.Report, []plot.Replay, error) {
	cfg := experiment.Defaults()
	for _, kv := range [][2]string{
		{"engine", "cpu"}, {"system", "tokenrouter"}, {"small", f.real.small}, {"large", f.real.large}, {"algorithm", f.real.algorithm},
		{"concurrency", f.real.concurrency}, {"requests", strconv.Itoa(f.real.requests)}, {"seed", strconv.FormatUint(f.real.seed, 10)},
		{"data", f.real.data}, {"warmup", "4"},
	} {
		if err := cfg.Set(kv[0], kv[1]); err != nil {
			return nil, nil, badUsage("--%w", err)
		}
	}
	cfg.Workload = []string{experiment.DemoWorkload}
	plan, err := experiment.NewPlan(ctx, "fidelity", cfg)
	if err != nil {
		return nil, nil, err
	}
	if f.real.rounds < 1 {
		return nil, nil, badUsage("--rounds %d: want at least 1", f.real.rounds)
	}
	bar, err := newProgress(cmd.ErrOrStderr(), "auto", 2*f.real.rounds*len(plan.Points), "runs")
	if err != nil {
		return nil, nil, err
	}
	defer bar.done()
	var pictures []plot.Replay
	report, err := plan.EngineFidelity(ctx, experiment.FidelityOptions{
		Rounds: f.real.rounds, Dir: f.out, Progress: func() { bar.add(1) },
		Pooled: func(point string, real, predicted []fidelity.Sample) {
			pictures = append(pictures, plot.Replay{
				Name: point, About: "real: measured on this CPU; predicted: simulated with steps from a log of other requests",
				Latencies: plot.Latencies(real, predicted),
			})
		},
	})
	return report, pictures, err
}
