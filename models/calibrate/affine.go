package calibrate

import (
	"math"
	"slices"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
)

// The coefficients of latency.Affine, in its order.
const (
	c0 = iota
	c1
	c2
	p0
	p1
	p2
)

// termNames are their names in a latency file.
var termNames = [terms]string{
	"c0_ms", "c1_ms_per_seq", "c2_ms_per_context_token", "p0_ms", "p1_ms_per_token", "p2_ms_per_token2",
}

// byPriority is the order in which coefficients claim what a log can tell: where the batch never changes, the base
// takes what c1 would; where all prompts are alike, their tokens do.
var byPriority = [terms]int{c0, c2, c1, p1, p0, p2}

// law prices steps, in ns and unrounded.
type law interface {
	time(s *step.Shape) float64
}

// affine is latency.Affine in ns, less its rounding.
type affine [terms]float64

// columns are the factors of a's coefficients in the time of a step: each of the law's maxima has been decided, as a
// decides it.
func (a *affine) columns(s *step.Shape) (x [terms]float64) {
	decodes := func() { x[c1], x[c2] = float64(s.Decodes), float64(s.DecodeContext) }
	extends := func() { x[p1], x[p2] = float64(s.ExtendTokens), float64(s.ExtendWork) }
	switch {
	case s.Extends == 0:
		x[c0] = 1
		decodes()
	case s.Decodes == 0:
		if a[p0]+a[p1]*float64(s.ExtendTokens)+a[p2]*float64(s.ExtendWork) < a[c0] {
			x[c0] = 1
			break
		}
		x[p0] = 1
		extends()
	default:
		if a[p0] < a[c0] {
			x[c0] = 1
		} else {
			x[p0] = 1
		}
		decodes()
		extends()
	}
	return x
}

// dot is the time of a step with these columns, at least a picosecond so that it has a logarithm.
func (a *affine) dot(x *[terms]float64) float64 {
	t := 0.0
	for i, v := range x {
		t += a[i] * v
	}
	return max(t, 1e-3)
}

func (a *affine) time(s *step.Shape) float64 {
	x := a.columns(s)
	return a.dot(&x)
}

// scaled is a times a factor.
func (a affine) scaled(by float64) affine {
	for i := range a {
		a[i] *= by
	}
	return a
}

// model is a as the simulator takes it, with so much of each step, ns, as the host's part. A law without any base, of a
// log that tells none, gets the least step: one that costs nothing is refused.
func (a affine) model(host float64) latency.Affine {
	const (
		ms      = 1e6
		longest = 1e9 // of a coefficient in a latency file, ms
	)
	in := func(i int, less float64) float64 { return min(max(0, a[i]-less)/ms, longest) }
	m := latency.Affine{C0: in(c0, host), C1: in(c1, 0), C2: in(c2, 0), P0: in(p0, host), P1: in(p1, 0), P2: in(p2, 0)}
	if m.C0 == 0 && m.P0 == 0 {
		m.C0 = 1 / ms
	}
	return m
}

// observation is a step as a law is fitted to it.
type observation struct {
	shape step.Shape
	log   float64 // of its time, ns; NaN where the shape is unknown
}

// known says that the step takes part in a fit. A law passes over the others, and a chain moves through them unseen.
func (o *observation) known() bool { return !math.IsNaN(o.log) }

// gather sums up the normal equations of one Gauss-Newton move of a, of which x are the log residuals: of the logarithm
// of each step's time less offset, which is the logarithm of its multiplier. Errors of logarithms are relative errors,
// and so every step weighs the same however long it is: what a multiplicative residual wants.
func (a *affine) gather(steps []observation, x, offset []float64) (g gram) {
	for t := range steps {
		o := &steps[t]
		if !o.known() {
			continue
		}
		columns := a.columns(&o.shape)
		f := a.dot(&columns)
		for i := range columns {
			columns[i] /= f
		}
		e := x[t]
		if offset != nil {
			e -= offset[t]
		}
		g.add(&columns, e, 1)
	}
	return g
}

// residuals are the logarithms of time over law, into x; NaN where a shape is unknown.
func residuals(steps []observation, l law, x []float64) []float64 {
	x = resize(x, len(steps))
	for t := range steps {
		x[t] = math.NaN()
		if o := &steps[t]; o.known() {
			x[t] = o.log - math.Log(l.time(&o.shape))
		}
	}
	return x
}

// loss is the sum of the squares of residuals less offset.
func loss(x, offset []float64) float64 {
	sum := 0.0
	for t, e := range x {
		if math.IsNaN(e) {
			continue
		}
		if offset != nil {
			e -= offset[t]
		}
		sum += e * e
	}
	return sum
}

// improve makes one Gauss-Newton move that doesn't raise the loss. x are the log residuals of a, before and after;
// spare is as long. Coefficients that the log doesn't tell stay 0.
func (a *affine) improve(steps []observation, offset []float64, x, spare *[]float64) {
	g := a.gather(steps, *x, offset)
	before := loss(*x, offset)
	next := *a
	g.minimise((*[terms]float64)(&next), g.identified(byPriority))
	for range 6 {
		*spare = residuals(steps, &next, *spare)
		if loss(*spare, offset) <= before {
			*a = next
			*x, *spare = *spare, *x
			return
		}
		for i := range next { // half way back
			next[i] = (next[i] + a[i]) / 2
		}
	}
}

// fitAffine fits without a chain, and returns where the search ended, the best first: the law has maxima in it, so its
// loss has several minima. It starts from several guesses of which extends lie above the floor, with p0 above c0 and
// below it; of either kind the best end is returned.
func fitAffine(steps []observation) []affine {
	few := thin(steps, 4000)
	var ends []affine
	var losses []float64
	for _, high := range []bool{false, true} {
		var best affine
		least := math.Inf(1)
		for _, part := range []float64{0, .5, .9} {
			a := startAffine(few, part, high)
			if l := a.converge(few, 20); l < least*(1-1e-9) {
				best, least = a, l
			}
		}
		least = best.converge(steps, 50)
		if len(ends) > 0 && least < losses[0] {
			ends, losses = slices.Insert(ends, 0, best), slices.Insert(losses, 0, least)
			continue
		}
		ends, losses = append(ends, best), append(losses, least)
	}
	if (ends[0][p0] < ends[0][c0]) == (ends[1][p0] < ends[1][c0]) {
		return ends[:1]
	}
	return ends
}

// converge improves a until it stands still, and returns its loss.
func (a *affine) converge(steps []observation, most int) float64 {
	var spare []float64
	x := residuals(steps, a, nil)
	before := loss(x, nil)
	for range most {
		a.improve(steps, nil, &x, &spare)
		now := loss(x, nil)
		if !(now < before*(1-1e-10)) {
			return now
		}
		before = now
	}
	return before
}

// startAffine is a first guess: least squares of relative errors, with that part of the extends, the shortest, on the
// floor.
func startAffine(steps []observation, part float64, high bool) affine {
	var lengths []float64
	for i := range steps {
		if s := &steps[i].shape; steps[i].known() && s.Decodes == 0 {
			lengths = append(lengths, float64(s.ExtendTokens))
		}
	}
	floor := math.Inf(-1)
	if part > 0 && len(lengths) > 0 {
		floor = quantile(lengths, part)
	}
	guess := affine{c0: 1, p0: 0, p1: 1} // decides the maxima only
	if high {
		guess[p0] = 2
	}
	var g gram
	for i := range steps {
		o := &steps[i]
		if !o.known() {
			continue
		}
		a := guess
		if o.shape.Decodes == 0 && float64(o.shape.ExtendTokens) <= floor {
			a[p0], a[p1] = 0, 0
		}
		x := a.columns(&o.shape)
		for j := range x {
			x[j] /= math.Exp(o.log)
		}
		g.add(&x, 1, 1)
	}
	var a affine
	g.minimise((*[terms]float64)(&a), g.identified(byPriority))
	return a
}

// thin is about most of the steps, evenly spread.
func thin[T any](all []T, most int) []T {
	if len(all) <= most {
		return all
	}
	few := make([]T, 0, most)
	for i := range most {
		few = append(few, all[i*len(all)/most])
	}
	return few
}
