package experiment

import (
	"context"
	"fmt"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/metrics"
	"github.com/trbench/trbench/sim"
)

// simConfig is one point under one seed, for the simulator.
func (p *Plan) simConfig(pt *Point, seed uint64) (*sim.Config, error) {
	c := p.Config
	sc := &sim.Config{
		Topology: pt.System.Topology, Warmup: len(pt.Set.Warmup), Clients: pt.Concurrency,
		Collect: metrics.Config{Percentiles: c.Percentiles, SLO: p.SLO, Concurrency: pt.Concurrency, Expect: len(pt.Set.Requests)},
	}
	for _, r := range pt.Set.Warmup {
		sc.Requests = append(sc.Requests, sim.Request{Prompt: int32(r.Prompt), Output: int32(r.Output)})
	}
	for _, r := range pt.Set.Requests {
		sc.Requests = append(sc.Requests, sim.Request{Prompt: int32(r.Prompt), Output: int32(r.Output)})
	}
	if !c.Arrival.Closed() {
		at, err := c.Arrival.Times(len(sc.Requests), seed, pt.Set.Arrivals())
		if err != nil {
			return nil, usage(err)
		}
		sc.Arrivals = at
	}
	if pt.System.Topology == sim.Single {
		i, kv, err := p.single(pt.System)
		if err != nil {
			return nil, usage(err)
		}
		sc.Models = []sim.Model{p.simModel(pt, i, seed, kv)}
		return sc, nil
	}
	for i := range p.Pair.Models {
		sc.Models = append(sc.Models, p.simModel(pt, i, seed, p.KVTokens))
	}
	sc.Contention = p.Contention
	sc.Transport = micros(c.TransportUS)
	sc.RouterCost = micros(c.RouterUS)
	if pt.System.Topology == sim.RPC {
		var err error
		if sc.RPC, err = p.rpcCosts(pt.System); err != nil {
			return nil, err
		}
	}
	var err error
	if sc.Router, sc.Signal, err = p.routed(pt.Algorithm, seed); err != nil {
		return nil, usage(err)
	}
	return sc, nil
}

// simModel is model i of the pair, fresh for one run.
func (p *Plan) simModel(pt *Point, i int, seed uint64, kv int) sim.Model {
	return sim.Model{
		Name: p.Pair.Models[i].Name, Latency: p.stepTimes(i, seed), Policy: p.policy(pt, i), KVTokens: kv,
	}
}

// stepTimes is a fresh latency model for model i.
func (p *Plan) stepTimes(i int, seed uint64) latency.Model {
	return p.Modulation.Over(p.Latency.New(i), seed, step.ModelID(i))
}

// policy is how model i batches at a point. Gate and timer are, like a scalar threshold, the largest model's.
func (p *Plan) policy(pt *Point, i int) core.Policy {
	policy := core.Policy{MaxBatch: p.Config.MaxBatch, TokenBudget: p.Config.TokenBudget}
	if pt.System.Name != "tokenrouter" {
		return policy
	}
	policy.Threshold = pt.Table.Column(i)
	if i == len(p.Pair.Models)-1 {
		policy.Gate, policy.Timer = p.Policy.Gate, p.Policy.Timer
	}
	return policy
}

// routed is an algorithm with what it sees under a seed.
func (p *Plan) routed(algorithm string, seed uint64) (route.Router, signal.Source, error) {
	r, err := p.router(algorithm)
	if err != nil {
		return nil, nil, err
	}
	ruled, ok := r.(route.Ruled)
	if !ok {
		return r, nil, nil
	}
	var rules []signal.Rule
	for i := range p.Pair.Models {
		rules = append(rules, ruled.Rule(step.ModelID(i)))
	}
	if p.recorded != nil {
		s, err := p.recorded.Source(signal.Replay{Seed: seed, Rules: rules})
		return r, s, err
	}
	sc := signal.Config{Seed: seed, Rules: rules, Rates: p.rates(), Acceptance: signal.Acceptance{Alpha: p.Config.Acceptance}}
	switch p.Config.Signal {
	case "bursty":
		sc.Correlation = p.Config.Correlation
	case "phased":
		sc.Phases = signal.RecordedPhases()
	}
	s, err := signal.New(sc)
	return r, s, err
}

// rates is the probability that each model's rule fires.
func (p *Plan) rates() []float64 {
	rates := make([]float64, len(p.Pair.Models))
	for i := range rates {
		rates[i] = p.Config.SwitchRate
		if i > 0 && p.Config.ReturnRate >= 0 {
			rates[i] = 1 - p.Config.ReturnRate
		}
	}
	return rates
}

// done is what one run of a point leaves.
type done struct {
	point    results.Point
	ttft     []float64 // ms, for the CDF
	warnings []string
	tokens   int64
}

// simulate runs one point once.
func (p *Plan) simulate(ctx context.Context, pt *Point, seed uint64, rec *recorder) (*done, error) {
	sc, err := p.simConfig(pt, seed)
	if err != nil {
		return nil, err
	}
	var written quality
	alone := p.alone(pt.System)
	sc.Ended = func(q *results.Request) {
		if pt.System.AllLarge() { // the simulator runs one model, and takes it for the smallest
			q.LargeTokens = q.OutputTokens
		}
		if alone != nil {
			alone(q)
		}
		written.add(q)
		rec.ended(q)
	}
	sc.Stepped = rec.stepped()
	o, err := sim.Run(ctx, sc)
	if rec.err != nil {
		return nil, rec.err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pt, err)
	}
	d := &done{point: o.Summarise(p.base(pt)), ttft: o.TTFT(), tokens: o.Tokens}
	p.bill(pt, &d.point)
	written.point(&d.point)
	if pt.System.AllLarge() && d.point.OutputTokens > 0 {
		d.point.LargeShare = results.F(1)
	}
	for i, m := range o.Models {
		d.point.BatchMean = append(d.point.BatchMean, results.Ratio(results.F(float64(m.Rows)), results.F(float64(m.Steps))))
		d.point.Busy = append(d.point.Busy, results.Ratio(results.F(m.Busy.Seconds()), results.F(clock.Instant(o.End).Seconds())))
		d.point.Preempted += m.Preempted
		d.point.KVDropped += m.Dropped
		d.warnings = append(d.warnings, latency.Extrapolated(sc.Models[i].Latency)...)
	}
	return d, nil
}

// base is what a point is, without figures.
func (p *Plan) base(pt *Point) results.Point {
	b := results.Point{
		System: pt.System.Name, Algorithm: pt.Algorithm, Workload: pt.Set.Name, Pair: p.Pair.Name,
		Concurrency: pt.Concurrency, Threshold: pt.Vector, Source: sourceOf(p.Config.Engine), Arrival: p.Config.Arrival.String(),
		Latency: p.Latency.Name,
	}
	if pt.System.Name == "tokenrouter" {
		b.Batching = p.Policy.Name
	}
	return b
}

// sourceOf says what the figures of an engine are.
func sourceOf(engine string) string {
	switch engine {
	case "fake":
		return "emulated" // real loops and timers, slept steps
	case "cpu":
		return "measured"
	}
	return "simulated"
}

func (pt *Point) String() string {
	s := pt.System.Name + " on " + pt.Set.Name
	if pt.Algorithm != "" {
		s += " with " + pt.Algorithm
	}
	if pt.Concurrency > 0 {
		s += fmt.Sprintf(" at N = %d", pt.Concurrency)
	}
	return s
}
