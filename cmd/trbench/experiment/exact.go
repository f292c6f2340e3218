package experiment

import (
	"context"
	"fmt"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/sim/markov"
)

// ExactChoice is what the Markov model says of one group of a sweep.
type ExactChoice struct {
	Threshold  []int        `json:"threshold"`
	Throughput float64      `json:"throughput_tok_s"`
	Eager      float64      `json:"eager_tok_s"`
	Curve      []ExactPoint `json:"curve"`
	// Contention says that the simulated points have some, which the chain does not know.
	Contention float64 `json:"contention_not_in_chain"`
	// Without names what else the points have and the chain does not: modulation, bursts, transport.
	Without []string `json:"not_in_chain"`
}

// ExactPoint is the exact throughput of one vector.
type ExactPoint struct {
	Threshold  []int   `json:"threshold"`
	Throughput float64 `json:"throughput_tok_s"`
}

// exactCurve is the Markov model's view of a group that compares thresholds; nil, with a reason, where the chain can't
// hold it.
func (s *Sweep) exactCurve(ctx context.Context, v *Verdict) (*ExactChoice, string) {
	job := v.members[0].Job
	p := job.Plan
	if job.Point.System.Name != "tokenrouter" || v.Concurrency == 0 || job.Point.Algorithm == "" {
		return nil, ""
	}
	if n := p.exact(); v.Concurrency > n {
		return nil, fmt.Sprintf("the exact chain is computed up to N = %d for these step times: beyond, the points are simulated only", n)
	}
	m, err := p.chain(job.Point.Algorithm, job.Point.Set, v.Concurrency)
	if err != nil {
		return nil, err.Error()
	}
	best, err := markov.Best(ctx, m, v.Concurrency, markov.SmallEager, markov.Options{Quantum: p.quantum(), Workers: s.Workers})
	if err != nil {
		return nil, err.Error()
	}
	e := &ExactChoice{Threshold: best.Threshold, Throughput: best.Throughput, Eager: best.Eager, Contention: p.Contention}
	if p.Modulation.Name() != "none" {
		e.Without = append(e.Without, "modulation")
	}
	if p.Config.Signal != "iid" {
		e.Without = append(e.Without, p.Config.Signal+" signal")
	}
	if p.Config.TransportUS > 0 {
		e.Without = append(e.Without, "transport")
	}
	for _, c := range best.Curve {
		e.Curve = append(e.Curve, ExactPoint{c.Threshold, c.Throughput})
	}
	if e.Eager > 0 && e.Throughput/e.Eager-1 < 1e-6 {
		e.Threshold = core.Scalar(m.Models(), 1)
	}
	return e, ""
}
