package replay

import (
	"context"

	"github.com/trbench/trbench/models/latency/kernels"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/fidelity"
	"github.com/trbench/trbench/sim/serve"
)

// Mechanism is a part of a prediction that can be switched off.
type Mechanism struct {
	Name string
	// applies says whether the run has it at all.
	applies func(*Run) bool
	// off switches it off.
	off func(*Run, *serve.Config)
}

// Mechanisms are those of a prediction, those of the scheduler first.
func Mechanisms() []Mechanism {
	without := func(parts kernels.Mechanisms) func(*Run, *serve.Config) {
		return func(r *Run, c *serve.Config) { c.Latency = r.model.Without(parts) }
	}
	limited := func(r *Run) bool { return r.Settings.KVBlocks != nil }
	return []Mechanism{
		{"async scheduling", func(r *Run) bool { return on(r.Settings.Async) },
			func(_ *Run, c *serve.Config) { c.Async = false }},
		{"prefix cache", func(r *Run) bool { return on(r.Settings.Caching) },
			func(_ *Run, c *serve.Config) { c.Caching = false }},
		{"KV limit", limited, func(_ *Run, c *serve.Config) { c.Blocks = 0 }},
		{"whole-prompt admission", limited, func(_ *Run, c *serve.Config) { c.FirstChunk = true }},
		{"attention skew", func(r *Run) bool { return r.model.HasSkew() }, without(kernels.Skew)},
		{"elementwise kernels", func(*Run) bool { return true }, without(kernels.Elementwise)},
		{"collectives", func(r *Run) bool { return r.model.HasCollectives() }, without(kernels.Collectives)},
	}
}

// config is how the run's server was set.
func (r *Run) config() *serve.Config {
	s := r.Settings
	c := &serve.Config{
		MaxSeqs: s.MaxSeqs, TokenBudget: s.TokenBudget, BlockTokens: int32(s.BlockTokens),
		Chunked: on(s.Chunked), Caching: on(s.Caching), Async: on(s.Async),
		Latency: r.model.Without(0),
	}
	if s.KVBlocks != nil {
		c.Blocks = int32(*s.KVBlocks)
	}
	return c
}

// prediction is a simulated run.
type prediction struct {
	*serve.Outcome
	samples  []fidelity.Sample
	tokS     results.Float
	warnings []string // of the tables' ends
}

// predict simulates the run, without the mechanisms that are off.
func (r *Run) predict(ctx context.Context, off ...Mechanism) (*prediction, error) {
	c := r.config()
	for _, m := range off {
		m.off(r, c)
	}
	o, err := serve.Run(ctx, c, r.requests)
	if err != nil {
		return nil, err
	}
	p := &prediction{Outcome: o, warnings: c.Latency.(*kernels.Model).Extrapolated()}
	tokens := int64(0)
	for i, t := range o.Requests {
		q := &r.requests[i]
		s := fidelity.Sample{
			TTFT: results.F(results.Millis(t.First.Sub(q.Arrival))), E2E: results.F(results.Millis(t.Last.Sub(q.Arrival))),
		}
		if q.Output > 1 {
			s.TPOT = results.F(results.Millis(t.Last.Sub(t.First)) / float64(q.Output-1))
		}
		p.samples = append(p.samples, s)
		tokens += int64(q.Output)
	}
	p.tokS = results.F(float64(tokens) / o.End.Seconds())
	return p, nil
}
