package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/sim"
	"github.com/trbench/trbench/sim/markov"
	"github.com/trbench/trbench/workloads"
)

// thresholds reads the threshold key: nil is eager.
func (p *Plan) thresholds(ctx context.Context, algorithm string, set *workloads.Set) (core.Table, error) {
	text := strings.TrimSpace(p.Config.Threshold)
	m := len(p.Pair.Models)
	switch text {
	case "eager", "":
		return nil, nil
	case "auto":
		if p.local != nil {
			return nil, usagef("threshold auto: it is computed from step times, which real models do not have: give a number, or a table")
		}
		return p.autoThresholds(ctx, algorithm, set)
	}
	if k, err := strconv.Atoi(text); err == nil {
		if k < 1 {
			return nil, usagef("threshold %d: want at least 1", k)
		}
		return core.Table{core.Scalar(m, k)}, nil
	}
	if strings.Trim(text, "0123456789, -") == "" {
		vector, err := parseVector(text)
		if err != nil {
			return nil, usagef("threshold %w", err)
		}
		if len(vector) != m {
			return nil, usagef("threshold %s: %d values for %d models: one for each, or one number for the large model", text, len(vector), m)
		}
		return core.Table{vector}, nil
	}
	return p.thresholdFile(text)
}

func parseVector(text string) ([]int, error) {
	var v []int
	for part := range strings.SplitSeq(text, ",") {
		k, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || k < 1 {
			return nil, fmt.Errorf("%q: %q: want whole numbers of at least 1", text, part)
		}
		v = append(v, k)
	}
	return v, nil
}

// thresholdFile reads a table that trbench markov or trbench sweep has written.
func (p *Plan) thresholdFile(path string) (core.Table, error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, usagef("threshold %q: want eager, auto, a whole number for the large model, one for each model as in 1,3, or a file that exists", path)
		}
		return nil, usagef("threshold: %w", err)
	}
	defer f.Close()
	t, err := markov.ReadTable(f, path)
	if err != nil {
		return nil, usage(err)
	}
	if len(t.Models) != len(p.Pair.Models) {
		return nil, usagef("threshold %s: made for %d models, not for the %d of %s", path, len(t.Models), len(p.Pair.Models), p.Pair.Name)
	}
	for i, m := range t.Models {
		if want := p.Pair.Models[i].Name; m.Name != want {
			p.warn("threshold %s was made for %s, and runs on %s", path, m.Name, want)
		}
	}
	var table core.Table
	for _, row := range t.Rows {
		table = append(table, row.Threshold)
	}
	return table, nil
}

// Limits of the exact chain at the start of a run: beyond them thresholds are found by simulation, in seconds.
const (
	exactFixed     = 64 // requests, two models with step times that do not depend on the batch
	exactDependent = 12 // requests, step times by batch
	exactMany      = 4  // requests, three models or more
)

// chain is the Markov model of an algorithm on this plan's models, for up to n requests.
func (p *Plan) chain(algorithm string, set *workloads.Set, n int) (markov.Model, error) {
	r, err := p.router(algorithm)
	if err != nil {
		return markov.Model{}, usage(err)
	}
	c, ok := r.(route.Chained)
	if !ok {
		return markov.Model{}, usagef("algorithm %s is no Markov chain over the models: give thresholds, or sweep them", algorithm)
	}
	var m markov.Model
	m.P, m.C = c.Chain(p.rates())
	if p.Latency.Whole() && p.Config.RouterUS == 0 {
		for i := range p.Pair.Models {
			m.Step = append(m.Step, markov.Sampled(1, 1, p.Latency.New(i))[0])
		}
		return m, nil
	}
	var timers []markov.StepTimer
	for i := range p.Pair.Models {
		timers = append(timers, p.Latency.New(i))
	}
	m.Step = markov.Sampled(n, meanContext(set), timers...)
	for i := range m.Step {
		for b := range m.Step[i] {
			m.Step[i][b] += micros(p.Config.RouterUS)
		}
	}
	return m, nil
}

// meanContext is the context of a decode in the middle of a mean request, tokens.
func meanContext(set *workloads.Set) int {
	prompt, output := set.Tokens()
	n := max(len(set.Requests), 1)
	return max(1, (prompt+output/2)/n)
}

// exact is how many active requests the exact chain is computed for.
func (p *Plan) exact() int {
	switch {
	case len(p.Pair.Models) > 2:
		return exactMany
	case p.Latency.Whole() && p.Config.RouterUS == 0:
		return exactFixed
	}
	return exactDependent
}

// autoThresholds computes the best threshold for every number of active requests up to the largest concurrency: by the
// exact chain as far as that goes, beyond by simulation.
func (p *Plan) autoThresholds(ctx context.Context, algorithm string, set *workloads.Set) (core.Table, error) {
	most := slices.Max(append(slices.Clone(p.Config.Concurrency), 1))
	if !p.Config.Arrival.Closed() {
		most = 64
	}
	if p.Contention > 0 || p.Config.TransportUS > 0 || p.Modulation.Name() != "none" || p.Config.Signal != "iid" {
		// The chain knows none of them; the simulator does.
		return p.simulatedThresholds(ctx, algorithm, set, nil, most)
	}
	n := min(most, p.exact())
	var names []string
	for _, c := range p.Pair.Models {
		names = append(names, c.Name)
	}
	m, err := p.chain(algorithm, set, n)
	if err != nil {
		return nil, err
	}
	t, err := markov.BuildTable(ctx, m, names, n, markov.SmallEager, markov.Options{Quantum: p.quantum(), Workers: p.Config.Workers})
	var table core.Table
	switch {
	case errors.Is(err, markov.ErrTooLarge) || errors.Is(err, markov.ErrNotConverged):
		p.warn("threshold auto: %v: found by simulation", err)
	case err != nil:
		return nil, usage(err)
	default:
		for _, row := range t.Rows {
			table = append(table, row.Threshold)
		}
	}
	return p.simulatedThresholds(ctx, algorithm, set, table, most)
}

// quantum is coarse for tables: step times to .1 ms, so that chains stay small.
func (p *Plan) quantum() time.Duration {
	if p.Latency.Whole() {
		return 0
	}
	return 100 * time.Microsecond
}

// simulatedThresholds extends a table to most requests: at a few numbers of requests thresholds are compared by
// simulation, and the rows between them take the next lower one.
func (p *Plan) simulatedThresholds(ctx context.Context, algorithm string, set *workloads.Set, table core.Table, most int) (core.Table, error) {
	if len(table) >= most {
		return table, nil
	}
	from := len(table) + 1
	why := fmt.Sprintf("the exact chain is computed up to %d", len(table))
	if len(table) == 0 {
		why = "the exact chain knows no contention, transport, modulation and bursts"
	}
	p.warn("threshold auto: thresholds for %d to %d active requests are found by simulation: %s", from, most, why)
	models := len(p.Pair.Models)
	row := core.Scalar(models, 1)
	if len(table) > 0 {
		row = table[len(table)-1]
	}
	stops := map[int]bool{most: true}
	for n := from; n <= most; n += max(1, n/4) {
		stops[n] = true
	}
	for _, n := range p.Config.Concurrency {
		stops[n] = true
	}
	for n := from; n <= most; n++ {
		if stops[n] {
			best, err := p.bestBySimulation(ctx, algorithm, set, n)
			if err != nil {
				return nil, err
			}
			row = best
		}
		table = append(table, row)
	}
	return table, nil
}

const (
	autoTokens = 60000 // output tokens of one comparison: about a hundredth of noise, and the draws are paired
	autoMargin = .01   // a threshold must beat eager by this much
)

// bestBySimulation compares thresholds of the largest model at n requests on a short run with equal requests.
func (p *Plan) bestBySimulation(ctx context.Context, algorithm string, set *workloads.Set, n int) ([]int, error) {
	models := len(p.Pair.Models)
	prompt, output := set.Tokens()
	prompt, output = max(1, prompt/len(set.Requests)), max(8, output/len(set.Requests))
	run := func(b []int) (float64, error) {
		sc := &sim.Config{Clients: n, Contention: p.Contention, Transport: micros(p.Config.TransportUS), RouterCost: micros(p.Config.RouterUS)}
		for range max(2*n, autoTokens/output) {
			sc.Requests = append(sc.Requests, sim.Request{Prompt: int32(prompt), Output: int32(output)})
		}
		table := core.Table{b}.Lowered()
		for i := range p.Pair.Models {
			policy := core.Policy{MaxBatch: p.Config.MaxBatch, TokenBudget: p.Config.TokenBudget, Threshold: table.Column(i)}
			sc.Models = append(sc.Models, sim.Model{Name: p.Pair.Models[i].Name, Latency: p.stepTimes(i, p.Config.Seed), Policy: policy})
		}
		var err error
		if sc.Router, sc.Signal, err = p.routed(algorithm, p.Config.Seed); err != nil {
			return 0, usage(err)
		}
		o, err := sim.Run(ctx, sc)
		if err != nil {
			return 0, err
		}
		return o.Summarise(results.Point{}).OutputTokS.Or(0), nil
	}
	eager := core.Scalar(models, 1)
	best := eager
	most, err := run(eager)
	if err != nil {
		return nil, err
	}
	most *= 1 + autoMargin
	for k := 2; k <= n; k += max(1, k/6) {
		b := core.Scalar(models, k)
		t, err := run(b)
		if err != nil {
			return nil, err
		}
		if t > most {
			best, most = b, t
		}
	}
	return best, nil
}
