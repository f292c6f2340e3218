package route

import (
	"fmt"
	"slices"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// Ensemble is ME: after every token the next model is drawn by weight, whatever the token was; tokens are kept.
type Ensemble struct {
	CommitAll
	upto []float64 // cumulative weights, the last one 1
}

// defaultWeights are the paper's for three models; fewer models take the first ones, renormalised.
var defaultWeights = []float64{.5, .3, .2}

// draw is ME's rule: a uniform draw after every token.
var draw = signal.Rule{Name: "draw", Uniform: true}

func newEnsemble(o Options) (Router, error) {
	w := o.Weights
	if w == nil {
		if o.Models > len(defaultWeights) {
			return nil, fmt.Errorf("weights: the published default has %d, the deployment %d models: set them",
				len(defaultWeights), o.Models)
		}
		w = defaultWeights[:o.Models]
	}
	if len(w) != o.Models {
		return nil, fmt.Errorf("weights: want one for each of %d models, got %d", o.Models, len(w))
	}
	sum := 0.
	for i, x := range w {
		if !(x >= 0) || x > 1e300 {
			return nil, fmt.Errorf("weights[%d] = %g: want a finite number >= 0", i, x)
		}
		sum += x
	}
	if sum == 0 {
		return nil, fmt.Errorf("weights: all are 0")
	}
	e := &Ensemble{upto: slices.Clone(w)}
	acc := 0.
	for i, x := range w {
		acc += x
		e.upto[i] = acc / sum
	}
	e.upto[len(w)-1] = 1
	if o.Program {
		p := program(o, Mix(e.upto), slices.Repeat([]signal.Rule{draw}, o.Models)...)
		p.spec.Chain = e.Chain
		return p, nil
	}
	return e, nil
}

// Mix is Ensemble as straight-line code: upto are the weights of the models up to each one, the last one 1.
func Mix(upto []float64) Program {
	return func(r *Request) error {
		m := r.Small()
		for !r.Done() {
			t, err := r.Decode(m)
			if err != nil {
				return err
			}
			for m = r.Small(); t.Score >= upto[m]; m++ {
			}
		}
		return nil
	}
}

// pick is the model that draw x in [0, 1) falls to.
func (e *Ensemble) pick(x float64) step.ModelID {
	j := 0
	for x >= e.upto[j] {
		j++
	}
	return step.ModelID(j)
}

// Route implements Router.
func (e *Ensemble) Route(m step.ModelID, b *step.Batch, res *step.Result, mv *Moves) {
	to := mv.To
	for i, x := range res.Signal[:len(to)] {
		to[i] = e.pick(x)
	}
}

// Send implements Router: every token is kept.
func (e *Ensemble) Send(*step.Batch, int, step.ModelID) int32 { return 0 }

// Rule implements Ruled: a uniform draw.
func (e *Ensemble) Rule(step.ModelID) signal.Rule { return draw }

// Chain implements Chained: every row of P is the weights.
func (e *Ensemble) Chain(rates []float64) (p, c [][]float64) {
	p, c = square(len(rates)), square(len(rates))
	for i := range p {
		last := 0.
		for j, u := range e.upto {
			p[i][j], c[i][j] = u-last, 1
			last = u
		}
	}
	return p, c
}
