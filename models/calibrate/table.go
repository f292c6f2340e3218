package calibrate

import (
	"context"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
)

const (
	tableBatches  = 10 // points along an axis of a table, at most
	tableContexts = 7
	tableTokens   = 10

	// priorSteps is how many steps the affine law is worth at a point of a table: a point far from any step keeps it.
	priorSteps = 1
	// tableSteps is how many steps a table is fitted on.
	tableSteps = 20000
	// passes refine a table's points, and rounds the table and the chain in turn.
	passes = 3
	rounds = 4
)

// tabled is a table as a law: latency.Table over fitted points, any host time included.
type tabled struct {
	steps latency.Steps
	table *latency.Table
}

func newTabled(name string, s latency.Steps) (*tabled, error) {
	p, err := latency.NewProfile(name, s)
	if err != nil {
		return nil, err
	}
	return &tabled{s, p.New()}, nil
}

func (t *tabled) time(s *step.Shape) float64 { return float64(t.table.StepTime(*s)) }

// grid is a table's axes and points: batch by context, then prefills by tokens.
type grid struct {
	name                   string
	batch, context, tokens []int
	points                 []point
}

// point is one of a table's points.
type point struct {
	at    float64 // by the affine law, ns
	gain  float64 // fitted: the logarithm of its time over at
	error float64 // of gain
	steps float64 // how many steps it prices: the sum of its weights in them
}

// newGrid places points along what the steps are, at the affine law's times.
func newGrid(name string, steps []observation, a *affine) *grid {
	var batches, contexts, fed []float64
	for i := range steps {
		o := &steps[i]
		if s := &o.shape; o.known() {
			if s.Decodes > 0 {
				batches = append(batches, float64(s.Decodes))
				contexts = append(contexts, float64(s.DecodeContext)/float64(s.Decodes))
			}
			if s.Extends > 0 {
				fed = append(fed, float64(s.Tokens()))
			}
		}
	}
	g := &grid{
		name: name, batch: axis(batches, tableBatches, 1), context: axis(contexts, tableContexts, 2),
		tokens: axis(fed, tableTokens, 2),
	}
	for _, b := range g.batch {
		for _, c := range g.context {
			g.points = append(g.points, point{at: a.time(&step.Shape{Decodes: b, DecodeContext: int64(b) * int64(c)})})
		}
	}
	for _, n := range g.tokens {
		g.points = append(g.points, point{at: a.time(&step.Shape{
			Extends: 1, ExtendTokens: int64(n), ExtendWork: int64(n) * int64(n), ExtendContext: int64(n),
		})})
	}
	return g
}

// build makes the table with one point moved; -1 moves none.
func (g *grid) build(moved int, by float64) (*tabled, error) {
	const (
		ms                = 1e6
		shortest, longest = 1e-6, 1e9 // of a step in a latency file, ms
	)
	var s latency.Steps
	value := func(i int) float64 {
		p := &g.points[i]
		gain := p.gain
		if i == moved {
			gain += by
		}
		return min(max(p.at*math.Exp(gain)/ms, shortest), longest)
	}
	s.Decode.Batch, s.Decode.ContextTokens = g.batch, g.context
	i := 0
	for range g.batch {
		var row []float64
		for range g.context {
			row = append(row, value(i))
			i++
		}
		s.Decode.StepMS = append(s.Decode.StepMS, row)
	}
	s.Prefill.Tokens = g.tokens
	for range g.tokens {
		s.Prefill.StepMS = append(s.Prefill.StepMS, value(i))
		i++
	}
	return newTabled(g.name, s)
}

// fit moves the points to where the table prices all steps best, in logarithms and with the affine law as prior: every
// step counts as latency.Table prices it, mixed ones and resumes too. offset is the logarithm of each step's
// multiplier, spread what is left of it.
func (g *grid) fit(steps []observation, offset []float64, spread float64) error {
	const by = .01 // of a point, for differences: far above a step's rounding to the nanosecond
	n := len(g.points)
	columns := make([][]float64, n) // of the logarithm of each step's time by each point's gain
	base := make([]float64, len(steps))
	for range passes {
		t, err := g.build(-1, 0)
		if err != nil {
			return err
		}
		for i := range steps {
			base[i] = math.Log(t.time(&steps[i].shape))
		}
		for p := range g.points {
			if t, err = g.build(p, by); err != nil {
				return err
			}
			columns[p] = resize(columns[p], len(steps))
			for i := range steps {
				columns[p][i] = (math.Log(t.time(&steps[i].shape)) - base[i]) / by
			}
		}
		normal, right := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
		for p := range g.points {
			g.points[p].steps = 0
			normal.SetSym(p, p, priorSteps)
			right.SetVec(p, -priorSteps*g.points[p].gain)
		}
		var at []int
		for i := range steps {
			o := &steps[i]
			if !o.known() {
				continue
			}
			at = at[:0]
			for p := range g.points {
				if columns[p][i] != 0 {
					at = append(at, p)
				}
			}
			left := o.log - offset[i] - base[i]
			for k, p := range at {
				weight := columns[p][i]
				g.points[p].steps += math.Abs(weight)
				right.SetVec(p, right.AtVec(p)+weight*left)
				for _, q := range at[k:] {
					normal.SetSym(p, q, normal.At(p, q)+weight*columns[q][i])
				}
			}
		}
		var c mat.Cholesky // the prior is on the diagonal: it is positive definite
		move, inverse := mat.NewVecDense(n, nil), mat.NewSymDense(n, nil)
		if !c.Factorize(normal) || c.SolveVecTo(move, right) != nil || c.InverseTo(inverse) != nil {
			return nil
		}
		for p := range g.points {
			const most = .5 // of a move: a table is not linear in its points' logarithms
			g.points[p].gain += min(max(move.AtVec(p), -most), most)
			g.points[p].error = spread * math.Sqrt(inverse.At(p, p))
		}
	}
	return nil
}

// scale multiplies all points.
func (g *grid) scale(by float64) {
	for p := range g.points {
		g.points[p].at *= by
	}
}

func (g *grid) report() *TableReport {
	r := &TableReport{}
	i := 0
	for _, b := range g.batch {
		for _, c := range g.context {
			r.Decode = append(r.Decode, g.points[i].report(b, c, 0))
			i++
		}
	}
	for _, n := range g.tokens {
		r.Prefill = append(r.Prefill, g.points[i].report(0, 0, n))
		i++
	}
	return r
}

func (p *point) report(batch, context, tokens int) TablePoint {
	ms := p.at * math.Exp(p.gain) / 1e6
	return TablePoint{
		Batch: batch, ContextTokens: context, Tokens: tokens, Steps: p.steps,
		StepMS: between(ms, ms*math.Exp(-z95*p.error), ms*math.Exp(z95*p.error)),
	}
}

// axis places points along values: at each of them if they are few, else at even ratios from the least to the greatest.
// There are at least as many as asked for, whatever the values.
func axis(values []float64, most, least int) []int {
	var at []int
	for _, v := range values {
		at = append(at, int(math.Floor(v)), int(math.Ceil(v)))
	}
	slices.Sort(at)
	if at = slices.Compact(at); len(at) > most {
		lo, hi := float64(at[0]), float64(at[len(at)-1])
		at = at[:0]
		for i := range most {
			at = append(at, int(math.Round(lo*math.Pow(hi/lo, float64(i)/float64(most-1)))))
		}
		at = slices.Compact(at)
	}
	for len(at) < least {
		next := 1
		if len(at) > 0 {
			next = 2 * at[len(at)-1]
		}
		at = append(at, next)
	}
	return at
}

// tabulate fits a table and the chain of its residuals in turn. The table comes first, to all steps as they are: states
// must not stand for what is the shape's.
func (f *modelFit) tabulate(ctx context.Context, a *affine) error {
	steps := f.steps[:min(len(f.steps), tableSteps)]
	g := newGrid(f.report.Model, f.steps, a)
	offset := make([]float64, len(steps))
	if err := g.fit(steps, offset, 0); err != nil {
		return err
	}
	var j *joint
	var all []Candidate
	for round := range rounds {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		t, err := g.build(-1, 0)
		if err != nil {
			return err
		}
		x := [][]float64{residuals(f.steps, t, nil)}
		start := func(c *chain, n int) *joint { return &joint{x: heads(x, n), chain: c.clone(), least: f.least} }
		if round == 0 || round == rounds-1 {
			j, all, err = fitStates(ctx, x, f.options.States, f.least, nil, start)
		} else {
			j = start(j.chain, chainSteps)
			err = j.run(ctx, roughly, maxRounds)
		}
		if err != nil {
			return err
		}
		if round == rounds-1 {
			break
		}
		k := j.chain.states()
		for i := range offset {
			offset[i] = 0
			for s, p := range j.post[0].gamma[i*k : i*k+k] {
				offset[i] += p * j.chain.mu[s]
			}
		}
		if err := g.fit(steps, offset, j.chain.sigma); err != nil {
			return err
		}
	}
	// The usual state's multiplier is 1: what it has else belongs to the table. So does the mean of the spread.
	shift := j.chain.mu[0]
	for i := range j.chain.mu {
		j.chain.mu[i] -= shift
	}
	for i := range j.x[0] {
		j.x[0][i] -= shift
	}
	f.joint = j
	g.scale(math.Exp(shift) * f.smear())
	t, err := g.build(-1, 0)
	if err != nil {
		return err
	}
	f.law, f.report.Table = t, g.report()
	f.report.Chain, err = j.report(ctx, all)
	return err
}

// withoutHost is a table less so many ns of the host's in each step.
func (t *tabled) withoutHost(ns float64) latency.Steps {
	less := func(row []float64) []float64 {
		out := slices.Clone(row)
		for i := range out {
			out[i] -= ns / 1e6
		}
		return out
	}
	s := t.steps
	s.Decode.StepMS = nil
	for _, row := range t.steps.Decode.StepMS {
		s.Decode.StepMS = append(s.Decode.StepMS, less(row))
	}
	s.Prefill.StepMS = less(t.steps.Prefill.StepMS)
	return s
}
