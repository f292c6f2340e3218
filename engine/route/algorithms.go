package route

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/internal/suggest"
	"github.com/trbench/trbench/models/signal"
)

// Options sets up an algorithm.
type Options struct {
	Models    int       // models of the deployment, >= 2
	Threshold float64   // of the deciding rule; 0 is the published default
	Weights   []float64 // ME only: weight of each model; nil is the published default
}

// Algorithm describes a routing algorithm.
type Algorithm struct {
	Name    string
	Summary string // one line
	Source  string // where the rule and its default come from
	new     func(Options) (Router, error)
}

// Algorithms lists the built-in algorithms by name.
func Algorithms() []Algorithm {
	return []Algorithm{
		{"citer", "small model leaves when the router's score is below .98; one token on the large model", "paper, table of algorithms; CITER",
			deferral(signal.Rule{Name: "router score", Threshold: .98, Lo: 0, Hi: 1})},
		{"co-llm", "small model leaves when the deferral probability is above .15; one token on the large model", "paper, table of algorithms; Co-LLM",
			deferral(signal.Rule{Name: "deferral probability", Threshold: .15, Lo: 0, Hi: 1, Above: true})},
		{"me", "a model drawn by weights (.5, .3, .2) after every token", "paper, table of algorithms; model ensemble", newEnsemble},
		{"r-stitch", "the large model writes while normalised entropy is above .03, the small one otherwise", "paper, table of algorithms; R-Stitch", newStitch},
		{"r2r", "small model leaves when the token is predicted to diverge; one token on the large model", "paper, table of algorithms; R2R",
			deferral(signal.Rule{Name: "divergence probability", Threshold: .5, Lo: 0, Hi: 1, Above: true})},
	}
}

// Names lists the names of the built-in algorithms.
func Names() []string {
	var names []string
	for _, a := range Algorithms() {
		names = append(names, a.Name)
	}
	return names
}

// New returns the named algorithm, case ignored. An unknown name is an error that says the nearest one.
func New(name string, o Options) (Router, error) {
	if o.Models < 2 {
		return nil, fmt.Errorf("algorithm %s: routing needs at least 2 models, not %d", name, o.Models)
	}
	for _, a := range Algorithms() {
		if strings.EqualFold(a.Name, name) {
			r, err := a.new(o)
			if err != nil {
				return nil, fmt.Errorf("algorithm %s: %w", a.Name, err)
			}
			return r, nil
		}
	}
	if near, ok := suggest.Nearest(name, Names()); ok {
		return nil, fmt.Errorf("unknown algorithm %q: did you mean %s? (known: %s)", name, near, strings.Join(Names(), ", "))
	}
	return nil, fmt.Errorf("unknown algorithm %q (known: %s)", name, strings.Join(Names(), ", "))
}

// withThreshold replaces a rule's threshold, if one is set.
func withThreshold(r signal.Rule, t float64) (signal.Rule, error) {
	if t == 0 {
		return r, nil
	}
	if !(t > r.Lo && t < r.Hi) {
		return r, fmt.Errorf("threshold %g: want %s inside (%g, %g)", t, r.Name, r.Lo, r.Hi)
	}
	r.Threshold = t
	return r, nil
}

// Deferral is the shape of CITER, R2R and Co-LLM: the small model leaves for the large one where its rule fires and its
// draft is dropped; the large model writes one token, which is kept, and the request returns.
type Deferral struct {
	CommitAll
	rule  signal.Rule
	large step.ModelID
}

func deferral(r signal.Rule) func(Options) (Router, error) {
	return func(o Options) (Router, error) {
		r, err := withThreshold(r, o.Threshold)
		if err != nil {
			return nil, err
		}
		return &Deferral{rule: r, large: step.ModelID(o.Models - 1)}, nil
	}
}

// Route implements Router.
func (d *Deferral) Route(m step.ModelID, b *step.Batch, res *step.Result, mv *Moves) {
	to := mv.To
	if m != 0 {
		clear(to)
		return
	}
	score := res.Signal[:len(to)]
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

// Stitch is R-Stitch: one threshold on the normalised entropy H / ln V, symmetric. The small model's draft is dropped
// where H is above it; the large model keeps writing until H falls to it, and its tokens are kept.
type Stitch struct {
	CommitAll
	rule  signal.Rule
	large step.ModelID
}

func newStitch(o Options) (Router, error) {
	r, err := withThreshold(signal.Rule{Name: "normalised entropy", Threshold: .03, Lo: 0, Hi: 1, Above: true}, o.Threshold)
	if err != nil {
		return nil, err
	}
	return &Stitch{rule: r, large: step.ModelID(o.Models - 1)}, nil
}

// Route implements Router.
func (s *Stitch) Route(m step.ModelID, b *step.Batch, res *step.Result, mv *Moves) {
	to := mv.To
	for i, x := range res.Signal[:len(to)] {
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

// Ensemble is ME: after every token the next model is drawn by weight, whatever the token was; tokens are kept.
type Ensemble struct {
	CommitAll
	upto []float64 // cumulative weights, the last one 1
}

// defaultWeights are the paper's for three models; fewer models take the first ones, renormalised.
var defaultWeights = []float64{.5, .3, .2}

func newEnsemble(o Options) (Router, error) {
	w := o.Weights
	if w == nil {
		if o.Models > len(defaultWeights) {
			return nil, fmt.Errorf("weights: the published default has %d, the deployment %d models: set them", len(defaultWeights), o.Models)
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
	return e, nil
}

// Route implements Router.
func (e *Ensemble) Route(m step.ModelID, b *step.Batch, res *step.Result, mv *Moves) {
	to := mv.To
	for i, x := range res.Signal[:len(to)] {
		j := 0
		for x >= e.upto[j] {
			j++
		}
		to[i] = step.ModelID(j)
	}
}

// Send implements Router: every token is kept.
func (e *Ensemble) Send(*step.Batch, int, step.ModelID) int32 { return 0 }

// Rule implements Ruled: a uniform draw.
func (e *Ensemble) Rule(step.ModelID) signal.Rule { return signal.Rule{Name: "draw", Uniform: true} }

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

func square(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}
