package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/sim/markov"
)

// markovFlags describe the chain.
type markovFlags struct {
	p, q      float64
	algorithm string
	chain     string
	weights   []float64
	latency   string
	n         int
	threshold string
	full      bool
	quantum   time.Duration
	table     string
	output    string
	progress  string
}

func markovCommand() *cobra.Command {
	var f markovFlags
	cmd := &cobra.Command{
		Use:   "markov",
		Short: "Exact throughput of delayed batching, from the Markov chain",
		Long: `Compute the exact throughput of N requests that hop between models, by the discrete-time Markov
chain of the paper (appendix D). With --threshold: of that vector. Without: of every vector that
waits at the last model only, and the best one. --table writes the best vector for each number of
active requests, as trbench run --threshold FILE loads it.`,
		Example: `  trbench markov --p 0.35 --latency 6.0ms,27.9ms -n 4
  trbench markov --p 0.35 --latency paper -n 4 --threshold 1,3 --output json
  trbench markov --p 0.35 --latency paper -n 64 --table b.yaml
  trbench markov --algorithm me --weights .5,.3,.2 --latency 6ms,12ms,28ms -n 4
  trbench markov --chain chain.json -n 4   what trbench program compile FILE --output json has written`,
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFormat(f.output); err != nil {
				return err
			}
			return f.run(cmd)
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.Float64Var(&f.p, "p", .35, "probability that the algorithm's rule fires after a step on the small model")
	fs.Float64Var(&f.q, "q", 0, "probability that the large model returns after a token, where the algorithm lets it stay (unset: 1 - p)")
	fs.StringVar(&f.algorithm, "algorithm", "r2r", "whose moves between the models")
	fs.StringVar(&f.chain, "chain", "", "moves between the models from `FILE`, or - for stdin: what program compile --output json writes")
	fs.Float64SliceVar(&f.weights, "weights", nil, "of the models of me")
	fs.StringVar(&f.latency, "latency", "paper", "step time of each model: 6.0ms,27.9ms, or paper, article")
	fs.IntVarP(&f.n, "requests", "n", 4, "active requests N")
	fs.StringVar(&f.threshold, "threshold", "", "fewest available requests that start a step, by model: 1,3, or one number for the last model")
	fs.BoolVar(&f.full, "full", false, "search every vector, not only those that wait at the last model")
	fs.DurationVar(&f.quantum, "quantum", 0, "unit of time of the chain (0: the largest that holds all step times)")
	fs.StringVar(&f.table, "table", "", "write the best vectors for 1..N requests to `FILE`")
	outputFormat(cmd, &f.output)
	addProgressFlag(cmd, &f.progress)
	complete(cmd, "algorithm", route.Names()...)
	return cmd
}

// model is the chain that the flags describe, with names for its models.
func (f *markovFlags) model(cmd *cobra.Command) (markov.Model, []string, error) {
	var m markov.Model
	text := f.latency
	switch strings.ToLower(text) {
	case "paper":
		text = latency.PaperSmall.String() + "," + latency.PaperLarge.String()
	case "article":
		text = latency.ArticleSmall.String() + "," + latency.ArticleLarge.String()
	}
	var names []string
	for part := range strings.SplitSeq(strings.TrimPrefix(text, "const:"), ",") {
		d, err := time.ParseDuration(strings.TrimSpace(part))
		if err != nil || d <= 0 {
			return m, nil, badUsage("--latency %q: %q: want a duration above 0 for each model, as in 6.0ms,27.9ms", f.latency, part)
		}
		m.Step = append(m.Step, []time.Duration{d})
		names = append(names, "model"+strconv.Itoa(len(names)))
	}
	if len(m.Step) < 2 {
		return m, nil, badUsage("--latency %q: want a duration for each of at least two models", f.latency)
	}
	if !(f.p >= 0 && f.p <= 1) || !(f.q >= 0 && f.q <= 1) {
		return m, nil, badUsage("--p %g, --q %g: want probabilities from 0 to 1", f.p, f.q)
	}
	if f.chain != "" {
		for _, other := range []string{"p", "q", "algorithm", "weights"} {
			if cmd.Flags().Changed(other) {
				return m, nil, badUsage("--chain and --%s: the file says how requests move", other)
			}
		}
		var note string
		var err error
		if m.Routing, note, err = readChain(f.chain, cmd.InOrStdin()); err != nil {
			return m, nil, badUsage("--chain: %w", err)
		}
		if note != "" {
			fmt.Fprintf(cmd.ErrOrStderr(), "trbench: %s\n", note)
		}
		return m, names, nil
	}
	if cmd.Flags().Changed("weights") && !strings.EqualFold(f.algorithm, "me") {
		return m, nil, badUsage("--weights are of algorithm me, not of %s", f.algorithm)
	}
	r, err := route.New(f.algorithm, route.Options{Models: len(m.Step), Weights: f.weights})
	if err != nil {
		return m, nil, badUsage("%w", err)
	}
	chained, ok := r.(route.Chained)
	if !ok {
		return m, nil, badUsage("algorithm %s is no Markov chain over the models", f.algorithm)
	}
	rates := make([]float64, len(m.Step))
	for i := range rates {
		if rates[i] = f.p; i > 0 && cmd.Flags().Changed("q") {
			rates[i] = 1 - f.q
		}
	}
	m.P, m.C = chained.Chain(rates)
	return m, names, nil
}

// answer is the JSON document of trbench markov.
type answer struct {
	N          int           `json:"n"`
	Threshold  []int         `json:"threshold"`
	Throughput *float64      `json:"throughput_tok_s"`
	States     *int          `json:"states"`
	Best       []int         `json:"best"`
	BestTokS   *float64      `json:"best_tok_s"`
	EagerTokS  *float64      `json:"eager_tok_s"`
	Curve      []curvePoint  `json:"curve"`
	UpperBound float64       `json:"upper_bound_tok_s"`
	Rounding   float64       `json:"rounding"`
	Quantum    time.Duration `json:"quantum_ns"`
	Source     string        `json:"source"`
}

type curvePoint struct {
	Threshold  []int   `json:"threshold"`
	Throughput float64 `json:"throughput_tok_s"`
}

func (f *markovFlags) run(cmd *cobra.Command) error {
	m, names, err := f.model(cmd)
	if err != nil {
		return err
	}
	if f.n < 1 {
		return badUsage("--requests %d: want at least 1", f.n)
	}
	bar, err := newProgress(cmd.ErrOrStderr(), f.progress, -1, "threshold vectors solved")
	if err != nil {
		return err
	}
	o := markov.Options{Quantum: f.quantum, Solved: func() { bar.add(1) }}
	search := markov.SmallEager
	if f.full {
		search = markov.Full
	}
	if f.table != "" {
		return f.writeTable(cmd, m, names, search, o, bar.done)
	}
	a := answer{N: f.n, Source: "computed: exact DTMC, paper appendix D"}
	if a.UpperBound, err = markov.UpperBound(m, f.n); err != nil {
		return markovError(err)
	}
	if f.threshold != "" {
		b, err := f.vector(len(m.Step))
		if err != nil {
			return err
		}
		r, err := markov.Solve(cmd.Context(), m, f.n, b, o)
		if err != nil {
			return markovError(err)
		}
		a.Threshold, a.Throughput, a.States, a.Rounding, a.Quantum = b, &r.Throughput, &r.States, r.Rounding, r.Quantum
		if f.output == "json" {
			return writeJSON(cmd.OutOrStdout(), a)
		}
		return printSolution(cmd.OutOrStdout(), a, r)
	}
	best, err := markov.Best(cmd.Context(), m, f.n, search, o)
	bar.done()
	if err != nil {
		return markovError(err)
	}
	a.Best, a.BestTokS, a.EagerTokS = best.Threshold, &best.Throughput, &best.Eager
	for _, p := range best.Curve {
		a.Curve = append(a.Curve, curvePoint{p.Threshold, p.Throughput})
	}
	if f.output == "json" {
		return writeJSON(cmd.OutOrStdout(), a)
	}
	return printCurve(cmd.OutOrStdout(), a)
}

// vector reads --threshold.
func (f *markovFlags) vector(models int) ([]int, error) {
	var b []int
	for part := range strings.SplitSeq(f.threshold, ",") {
		k, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || k < 1 {
			return nil, badUsage("--threshold %q: %q: want whole numbers of at least 1", f.threshold, part)
		}
		b = append(b, k)
	}
	if len(b) == 1 {
		k := b[0]
		b = make([]int, models)
		for i := range b {
			b[i] = 1
		}
		b[models-1] = k
	}
	if len(b) != models {
		return nil, badUsage("--threshold %s: %d values for %d models", f.threshold, len(b), models)
	}
	return b, nil
}

// writeTable is --table.
func (f *markovFlags) writeTable(cmd *cobra.Command, m markov.Model, names []string, search markov.Search, o markov.Options,
	done func()) error {
	file, err := os.Create(f.table)
	if err != nil {
		return badUsage("--table: %w", err)
	}
	t, err := markov.BuildTable(cmd.Context(), m, names, f.n, search, o)
	done()
	if err == nil {
		err = t.Write(file)
	} else {
		err = errors.Join(markovError(err), os.Remove(f.table))
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	last := t.Rows[len(t.Rows)-1]
	fmt.Fprintf(cmd.OutOrStdout(), "%s: best thresholds for 1 to %d active requests; for %d: %s, %.1f tok/s (eager %.1f)\n", f.table, f.n, f.n,
		vectorText(last.Threshold), last.Best, last.Eager)
	return nil
}

// markovError gives the user's mistakes exit code 2. A chain that can't be computed is one: the message says what can.
func markovError(err error) error {
	for _, kind := range []error{markov.ErrInfeasible, markov.ErrTooLarge, markov.ErrModel, markov.ErrMethod, markov.ErrReducible, markov.ErrNotConverged} {
		if errors.Is(err, kind) {
			return badUsage("%w", err)
		}
	}
	return err
}

func vectorText(b []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(b), "[]"), " ", ",")
}

func printSolution(w io.Writer, a answer, r markov.Result) error {
	fmt.Fprintf(w, "N = %d, B = %s: %.4f tok/s (computed, exact chain)\n", a.N, vectorText(a.Threshold), *a.Throughput)
	fmt.Fprintf(w, "  upper bound   %.4f tok/s\n", a.UpperBound)
	fmt.Fprintf(w, "  states        %d (%s), quantum %s, rounding error %.2g\n", r.States, r.Method, r.Quantum, r.Rounding)
	for i := range r.Busy {
		fmt.Fprintf(w, "  model %d       busy %.1f %%, mean batch %.2f\n", i, 100*r.Busy[i], r.MeanBatch[i])
	}
	return nil
}

// printCurve shows each vector's throughput as a bar.
func printCurve(w io.Writer, a answer) error {
	fmt.Fprintf(w, "N = %d (computed, exact chain; upper bound %.1f tok/s)\n", a.N, a.UpperBound)
	if len(a.Curve) <= 1 {
		fmt.Fprintf(w, "  best: eager, %.4f tok/s: no delay can do better\n", *a.BestTokS)
		return nil
	}
	most := 0.
	for _, p := range a.Curve {
		most = max(most, p.Throughput)
	}
	for _, p := range a.Curve {
		mark := " "
		if vectorText(p.Threshold) == vectorText(a.Best) {
			mark = "*"
		}
		fmt.Fprintf(w, "%s %-10s %10.4f tok/s %s\n", mark, vectorText(p.Threshold), p.Throughput, strings.Repeat("█", int(40*p.Throughput/most+.5)))
	}
	fmt.Fprintf(w, "best: %s, %.4f tok/s, %+.1f %% over eager\n", vectorText(a.Best), *a.BestTokS, 100*(*a.BestTokS / *a.EagerTokS - 1))
	return nil
}
