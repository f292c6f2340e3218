package route

import (
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// Deferral is the shape of CITER, R2R, Co-LLM and entropy-based switching: the small model leaves for the large one
// where its rule fires and its draft is dropped; the large model writes one token, which is kept, and the request
// returns.
type Deferral struct {
	CommitAll
	rule  signal.Rule
	large step.ModelID
}

// citerRule is CITER's: its router, trained by preferences, scores the small model's token. Default: the paper's .98.
func citerRule() signal.Rule {
	return signal.Rule{Name: "router score", Threshold: .98, Lo: 0, Hi: 1}
}

// coLLMRule is Co-LLM's: a learned probability that the token should be the large model's. Default: the paper's .15.
func coLLMRule() signal.Rule {
	return signal.Rule{Name: "deferral probability", Threshold: .15, Lo: 0, Hi: 1, Above: true}
}

// r2rRule is R2R's: its router predicts whether the token makes the two models' texts diverge. Default .5.
func r2rRule() signal.Rule {
	return signal.Rule{Name: "divergence probability", Threshold: .5, Lo: 0, Hi: 1, Above: true}
}

// entropyRule is entropy-based token switching: the small model's entropy, in nats, is high. Default: measured, the
// entropy above which 10 % of the small model's tokens lie in a recorded pair (GSM8K answers, a vocabulary of 1024).
func entropyRule() signal.Rule {
	return signal.Rule{Name: "entropy, nats", Score: signal.Entropy, Threshold: 3.3844, Lo: 0, Hi: 12, Above: true}
}

func deferral(r signal.Rule) func(Options) (Router, error) {
	return func(o Options) (Router, error) {
		r, err := withThreshold(r, o.Threshold)
		if err != nil {
			return nil, err
		}
		d := &Deferral{rule: r, large: step.ModelID(o.Models - 1)}
		if o.Program {
			p := program(o, Switch(r), r)
			p.spec.Chain = d.Chain
			return p, nil
		}
		return d, nil
	}
}

// Switch is Deferral as straight-line code.
func Switch(rule signal.Rule) Program {
	confident := Quiet(rule)
	return func(r *Request) error {
		for !r.Done() {
			t, err := r.DecodeWhile(r.Small(), confident)
			if err != nil {
				return err
			}
			if confident(t) {
				continue // the last token
			}
			r.Drop(1)
			if _, err := r.Decode(r.Large()); err != nil {
				return err
			}
		}
		return nil
	}
}

// Route implements Router.
func (d *Deferral) Route(m step.ModelID, b *step.Batch, res *step.Result, mv *Moves) {
	to := mv.To
	if m != 0 {
		clear(to)
		return
	}
	score := Column(res, d.rule.Score)[:len(to)]
	if d.rule.Above {
		for i, x := range score {
			to[i] = 0
			if x > d.rule.Threshold {
				to[i] = d.large
			}
		}
		return
	}
	for i, x := range score {
		to[i] = 0
		if x < d.rule.Threshold {
			to[i] = d.large
		}
	}
}

// Send implements Router: the small model's draft is dropped, the large model's token is kept.
func (d *Deferral) Send(b *step.Batch, row int, to step.ModelID) int32 {
	if b.Model == 0 {
		return 1
	}
	return 0
}

// Rule implements Ruled.
func (d *Deferral) Rule(m step.ModelID) signal.Rule {
	if m == 0 {
		return d.rule
	}
	return signal.Rule{}
}

// Reads implements Reader.
func (d *Deferral) Reads() (step.Columns, int) { return d.rule.Score.Columns(), 0 }

// Chain implements Chained: P = [[1-p, p], [1, 0]], C = [[1, 0], [1, 0]] (paper, appendix D).
func (d *Deferral) Chain(rates []float64) (p, c [][]float64) {
	p, c = square(len(rates)), square(len(rates))
	l := int(d.large)
	for i := range p {
		p[i][0], c[i][0] = 1, 1
	}
	p[0][0], p[0][l] = 1-rates[0], rates[0]
	return p, c
}
