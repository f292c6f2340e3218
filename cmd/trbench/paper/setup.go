package paper

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/sim"
	"github.com/trbench/trbench/sim/markov"
)

// tokens are the output tokens of one simulated cell: draws leave about .5 % of noise in its throughput.
const tokens = 160_000

// bench runs set-ups with what has been fitted.
type bench struct {
	ctx   context.Context
	seed  uint64
	cells map[string]*Cell
	rates map[string]float64 // switch rate by the cell it was solved from
	graph overheads
	kappa float64
	hop   time.Duration // one way between two nodes
	memo  memo

	doubts doubts
}

// stepTimes is a fresh latency model for model i of a set-up.
func (b *bench) stepTimes(s *Setup, i int) (latency.Model, error) {
	m, err := b.bare(s, i)
	if err != nil {
		return nil, err
	}
	return latency.WithHost(m, b.graph.of(s.Graphs, i)), nil
}

// models are a set-up's, smallest first.
func (s *Setup) models() []string {
	if s.Middle != "" {
		return []string{s.Small, s.Middle, s.Large}
	}
	return []string{s.Small, s.Large}
}

// contends says that the models of a set-up slow each other down.
func (s *Setup) contends() bool {
	return s.GPUs == "shared" && s.System == "tokenrouter" && s.Steps == "tables"
}

// bare is stepTimes with CUDA graphs.
func (b *bench) bare(s *Setup, i int) (latency.Model, error) {
	switch s.Steps {
	case "paper":
		return latency.Constant([]time.Duration{latency.PaperSmall, latency.PaperLarge}[i]), nil
	case "article":
		return latency.Constant([]time.Duration{latency.ArticleSmall, latency.ArticleLarge}[i]), nil
	case "tables", "kernels":
		m, err := tabled(s.models()[i])
		if err != nil || s.Steps == "kernels" {
			return m, err
		}
		return latency.WithHost(m, latency.DefaultHost(i)), nil
	}
	return nil, fmt.Errorf("steps %q: want tables, kernels, paper or article", s.Steps)
}

// remote is a model on another node. A hop of milliseconds can't be the wire, which carries the message in less than a
// microsecond: it is work of the loops, one message at a time, and so part of the step that takes requests in and sends
// them back.
type remote struct {
	latency.Model
	visit time.Duration // of both messages of a visit, spread over the steps that a request stays
}

// StepTime adds the messages of each row.
func (m *remote) StepTime(s step.Shape) time.Duration {
	return m.Model.StepTime(s) + time.Duration(s.Seqs())*m.visit
}

// router is a set-up's algorithm and the rates at which the models' rules fire.
func (b *bench) router(s *Setup) (route.Router, []float64, error) {
	models := len(s.models())
	r, err := route.New(s.Algorithm, route.Options{Models: models})
	if err != nil || models > 2 {
		return r, make([]float64, models), err // mixed by weights: no rule has a rate
	}
	p, err := b.rate(s)
	if err != nil {
		return nil, nil, err
	}
	return r, rates(p, s.Q), nil
}

// rates are the two models' rules: the small one hands over with p, and the large one keeps a token with 1 - q. An
// algorithm that returns after one token has no second rule, and q is 0.
func rates(p, q float64) []float64 {
	if q == 0 {
		return []float64{p, p}
	}
	return []float64{p, 1 - q}
}

// config is a set-up as the simulator's, with threshold k for the large model.
func (b *bench) config(s *Setup, k int) (*sim.Config, error) {
	c := &sim.Config{Clients: s.N}
	for range max(2*s.N, (tokens+s.Output-1)/s.Output) {
		c.Requests = append(c.Requests, sim.Request{Prompt: int32(s.Prompt), Output: int32(s.Output)})
	}
	switch s.System {
	case "tokenrouter":
	case "step-sync":
		c.Topology = sim.StepSync
	case "large-only":
		m, err := b.stepTimes(s, 1)
		c.Topology, c.Models = sim.Single, []sim.Model{{Name: "large", Latency: m}}
		return c, err
	default:
		return nil, fmt.Errorf("system %q: want tokenrouter, step-sync, large-only or chain", s.System)
	}
	if s.contends() {
		c.Contention = b.kappa
	}
	table := core.Table{core.Scalar(len(s.models()), k)}.Lowered()
	for i, name := range s.models() {
		m, err := b.stepTimes(s, i)
		if err != nil {
			return nil, err
		}
		c.Models = append(c.Models, sim.Model{Name: name, Latency: m, Policy: core.Policy{Threshold: table.Column(i)}})
	}
	if s.Nodes == 2 {
		large := &c.Models[len(c.Models)-1]
		large.Latency = &remote{large.Latency, time.Duration(float64(2*b.hop) * cmp.Or(s.Q, 1))}
	}
	r, fire, err := b.router(s)
	if err != nil {
		return nil, err
	}
	var rules []signal.Rule
	for i := range c.Models {
		rules = append(rules, r.(route.Ruled).Rule(step.ModelID(i)))
	}
	c.Router = r
	c.Signal, err = signal.New(signal.Config{Seed: b.seed, Rules: rules, Rates: fire})
	return c, err
}

// simulate runs a set-up once.
func (b *bench) simulate(c *sim.Config) (*results.Point, error) {
	o, err := sim.Run(b.ctx, c)
	if err != nil {
		return nil, err
	}
	p := o.Summarise(results.Point{})
	for _, m := range c.Models {
		b.doubts.add(latency.Extrapolated(m.Latency))
	}
	return &p, nil
}

// run makes a set-up's run, once for all cells that need it: of the threshold that gives most, unless it has one.
func (b *bench) run(s *Setup) (outcome, error) {
	if s.System == "chain" {
		t, err := b.chain(s)
		return outcome{tokS: t, threshold: s.B}, err
	}
	return b.memo.get(memoKey{"", *s}, func() (outcome, error) {
		from, to := s.B, s.B
		if s.B == 0 {
			from, to = 1, s.N
			if s.System != "tokenrouter" {
				to = 1
			}
		}
		return b.best(s, from, to, 0)
	})
}

// best tries the thresholds from..to, with so many requests, or all.
func (b *bench) best(s *Setup, from, to, requests int) (best outcome, err error) {
	for k := from; k <= to; k++ {
		c, err := b.config(s, k)
		if err != nil {
			return best, err
		}
		if requests > 0 {
			c.Requests = c.Requests[:requests]
		}
		p, err := b.simulate(c)
		if err != nil {
			return best, err
		}
		if o := outcomeOf(p, k); o.tokS > best.tokS {
			best = o
		}
	}
	return best, nil
}

// chain is the exact throughput.
func (b *bench) chain(s *Setup) (float64, error) {
	m, err := b.model(s)
	if err != nil {
		return 0, err
	}
	r, err := markov.Solve(b.ctx, m, s.N, core.Scalar(2, s.B), markov.Options{Workers: 1})
	return r.Throughput, err
}

// model is a set-up as a Markov chain, with step times in the middle of a request.
func (b *bench) model(s *Setup) (markov.Model, error) {
	r, fire, err := b.router(s)
	if err != nil {
		return markov.Model{}, err
	}
	return b.chained(s, r, fire)
}

func (b *bench) chained(s *Setup, r route.Router, fire []float64) (m markov.Model, err error) {
	m.P, m.C = r.(route.Chained).Chain(fire)
	var timers []markov.StepTimer
	for i := range 2 {
		t, err := b.stepTimes(s, i)
		if err != nil {
			return m, err
		}
		timers = append(timers, t)
	}
	m.Step = markov.Sampled(s.N, s.Prompt+s.Output/2, timers...)
	return m, nil
}
