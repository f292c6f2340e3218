package route

import (
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// Stitch is R-Stitch: one threshold on the normalised entropy H / ln V, symmetric. The small model's draft is dropped
// where H is above it; the large model keeps writing until H falls to it, and its tokens are kept.
type Stitch struct {
	CommitAll
	rule  signal.Rule
	large step.ModelID
}

func newStitch(o Options) (Router, error) {
	r, err := withThreshold(signal.Rule{
		Name: "normalised entropy", Score: signal.Normalised, Threshold: .03, Lo: 0, Hi: 1, Above: true,
	}, o.Threshold)
	if err != nil {
		return nil, err
	}
	s := &Stitch{rule: r, large: step.ModelID(o.Models - 1)}
	if o.Program {
		rules := make([]signal.Rule, o.Models)
		for m := range rules {
			rules[m] = r
		}
		p := program(o, Alternate(r), rules...)
		p.spec.Chain = s.Chain
		return p, nil
	}
	return s, nil
}

// Alternate is Stitch as straight-line code.
func Alternate(rule signal.Rule) Program {
	confident := Quiet(rule)
	unsure := func(t Token) bool { return !confident(t) }
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
			if _, err := r.DecodeWhile(r.Large(), unsure); err != nil {
				return err
			}
		}
		return nil
	}
}

// Route implements Router.
func (s *Stitch) Route(m step.ModelID, b *step.Batch, res *step.Result, mv *Moves) {
	to := mv.To
	for i, x := range res.Normalised[:len(to)] {
		to[i] = 0
		if x > s.rule.Threshold {
			to[i] = s.large
		}
	}
}

// Send implements Router.
func (s *Stitch) Send(b *step.Batch, row int, to step.ModelID) int32 {
	if b.Model == 0 {
		return 1
	}
	return 0
}

// Rule implements Ruled: the same rule on both models.
func (s *Stitch) Rule(step.ModelID) signal.Rule { return s.rule }

// Reads implements Reader.
func (s *Stitch) Reads() (step.Columns, int) { return step.Normalised, 0 }

// Chain implements Chained: the large model stays with the probability that its rule fires.
func (s *Stitch) Chain(rates []float64) (p, c [][]float64) {
	p, c = square(len(rates)), square(len(rates))
	l := int(s.large)
	for i := range p {
		p[i][0], p[i][l] = 1-rates[i], rates[i]
		c[i][0], c[i][l] = 1, 1
	}
	c[0][l] = 0
	return p, c
}
