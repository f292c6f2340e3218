package markov

import (
	"context"
	"fmt"
	"math"
)

// yield is what a stretch of time brings; as a price, what a unit of each is worth.
type yield struct {
	tokens   float64 // committed
	activity float64 // steps and busy time of all models, see activityOf
	quanta   float64 // of time
}

// activityOf weighs a completed step of model i that took so many quanta. The weights are distinct and arbitrary: parts
// of a chain that differ in how often, or how long, some model runs differ in their activity.
func activityOf(i int, quanta int32) float64 {
	return 1/float64(i+2) + float64(quanta)/float64(i*i+i+3)
}

// embedded is the chain watched only at some of its states, the heads, which every path meets again and again. Let K be
// the chances of the next head, and Y what is yielded until then, by head.
type embedded interface {
	// heads is the number of heads.
	heads() int
	// start sets x to the distribution of the first head met from the start state: all requests waiting at model 0.
	start(x []float64)
	// forward sets x to x K and returns x.Y. States with a mass of no more than drop may be passed over.
	forward(x []float64, drop float64) yield
	// backward sets every column h to Y at that column's price, plus K h. There are one or two columns.
	backward(columns []valuation)
}

// valuation is a column of values of the heads, and the price at which they are reckoned.
type valuation struct {
	h     []float64
	price yield
}

// estimate is a stationary distribution of the heads and what follows from it.
type estimate struct {
	mass     []float64
	rate     float64 // tokens per quantum
	activity float64 // per quantum
	residual float64 // L1 change of mass in the last pass
	passes   int     // over the chain
}

const (
	// minWindow and maxWindow bound how many iterates an extrapolation combines. It starts small, since most chains
	// converge within ten passes, and doubles when a round gains less than a factor 10.
	minWindow, maxWindow = 12, 32
	// windowBytes bounds the iterates' memory instead where there are very many heads.
	windowBytes = 128 << 20
	// valueRounding is the relative rounding error allowed for in a value that a pass has carried to the next head: the
	// bounds are widened by it. An ulp is 2.2e-16; paths are some tens of states long, and their errors mostly cancel.
	valueRounding = 1e-14
	// settled is the residual at which the iteration stops; the bounds tell afterwards whether that was enough.
	settled = 1e-12
	// dropped is the mass that an iteration passes over: even a million states of it are lost among rounding errors.
	dropped = 1e-20
	// negligible is what even an elimination, which must not lose a rare transition, passes over: products of such masses
	// with probabilities would become denormal, which is slow.
	negligible = 1e-150
)

// iterate passes forward from the start until the distribution stops changing; false if it still does after limit
// passes. A small change is no proof of accuracy where the chain mixes slowly: see bracket.
func iterate(ctx context.Context, c embedded, limit int) (estimate, bool, error) {
	x := make([]float64, c.heads())
	c.start(x)
	e := estimate{mass: make([]float64, len(x)), residual: math.Inf(1)}
	accelerate := newAccelerator(len(x))
	for e.passes < limit {
		if err := ctx.Err(); err != nil {
			return e, false, err
		}
		copy(e.mass, x)
		last := e.rate
		e.take(c.forward(x, dropped))
		e.passes++
		scale(x)
		e.residual = distance(x, e.mass)
		if e.residual <= settled && math.Abs(e.rate-last) <= settled*e.rate {
			return e, true, nil
		}
		// A combination may be slightly negative; one far from a distribution is not used.
		if y := accelerate.add(x, e.residual); y != nil && clip(y) < .1 {
			scale(y)
			copy(x, y)
		}
	}
	return e, false, nil
}

func (e *estimate) take(y yield) { e.rate, e.activity = y.tokens/y.quanta, y.activity/y.quanta }

// bounds are proved limits of what is yielded per quantum, and the value itself to the same accuracy.
type bounds struct{ rate, lower, upper float64 }

// met reports whether the bounds are within a relative tolerance.
func (b bounds) met(tolerance float64) bool { return b.upper-b.lower <= tolerance*b.rate }

// bracket bounds the tokens per quantum and, if that is wanted, the activity per quantum, starting from an estimate. It
// stops when all bounds are within a relative tolerance, or after limit passes.
//
// For any values h of the heads let h' = R - rate theta + K h, with the reward R and the time theta until the next
// head. Averaged over the stationary distribution x, h' - h comes to (g - rate) x.theta, because x K = x and x.R = g
// x.theta. So g - rate lies between the least and the largest (h' - h) / theta, whatever h and rate are; iterating h
// makes the two meet if rate is g. A slowly mixing chain can't hide from this: its parts have different rates, and
// the bounds stay apart until h knows how the parts are connected. Where all parts have the same rate they meet
// early, and rightly. Source: A. R. Odoni, On finding the maximal gain for Markov decision processes, Operations
// Research 17 (1969), here for one fixed policy and steps of unequal length.
func bracket(
	ctx context.Context, c embedded, e estimate, activity bool, tolerance float64, limit int,
) (b []bounds, passes int, err error) {
	n := c.heads()
	theta := make([]float64, n)
	c.backward([]valuation{{theta, yield{quanta: 1}}})
	passes = 1
	mean := dot(e.mass, theta)
	columns := []valuation{{price: yield{tokens: 1}}}
	b = []bounds{{e.rate, 0, math.Inf(1)}}
	if activity {
		columns = append(columns, valuation{price: yield{activity: 1}})
		b = append(b, bounds{e.activity, 0, math.Inf(1)})
	}
	values := make([]float64, n*len(columns)) // all columns, one after the other
	old := make([]float64, len(values))
	for j := range columns {
		columns[j].h = values[j*n : (j+1)*n]
	}
	accelerate := newAccelerator(len(values))
	better := make([]float64, len(columns))
	for passes < limit {
		if err := ctx.Err(); err != nil {
			return b, passes, err
		}
		copy(old, values)
		for j := range columns {
			columns[j].price.quanta = -b[j].rate
		}
		c.backward(columns)
		passes++
		met, change := true, 0.0
		for j, col := range columns {
			lo, hi, drift := math.Inf(1), math.Inf(-1), 0.0
			before := old[j*n:]
			rounding := valueRounding * largest(before[:n])
			for i, v := range col.h {
				d := v - before[i]
				lo, hi = min(lo, (d-rounding)/theta[i]), max(hi, (d+rounding)/theta[i])
				drift += e.mass[i] * d
			}
			rate := b[j].rate
			b[j].lower, b[j].upper = max(b[j].lower, rate+lo), min(b[j].upper, rate+hi)
			// The same average over the estimate of x: its error meets only what h' - h still lacks in evenness.
			better[j] = max(b[j].lower, min(rate+drift/mean, b[j].upper))
			met = met && b[j].met(tolerance)
			change = max(change, (hi-lo)/rate)
			// Values matter up to a constant only; without it they stay small, and their differences exact.
			base := col.h[0]
			for i := range col.h {
				col.h[i] -= base
			}
		}
		y := accelerate.add(values, change)
		if y != nil {
			copy(values, y)
		}
		if met || y != nil { // in between, the iteration must stay linear for the extrapolation
			for j := range b {
				b[j].rate = better[j]
			}
		}
		if met {
			break
		}
	}
	return b, passes, nil
}

// direct eliminates instead of iterating: one pass for each row of K, then elimination without subtractions, so that
// every entry is accurate to rounding however slowly the chain mixes. It takes as many passes as there are heads within
// reach, and their number cubed / 3 multiplications. ErrReducible if the heads fall into several closed classes.
func direct(ctx context.Context, c embedded) (estimate, error) {
	n := c.heads()
	x := make([]float64, n)
	c.start(x)
	var reached []int // heads, in the order in which they are met
	at := make([]int32, n)
	meet := func() {
		for i, w := range x {
			if w > 0 && at[i] == 0 {
				reached = append(reached, i)
				at[i] = int32(len(reached)) // position + 1
			}
		}
	}
	meet()
	var rows [][]float64
	var next [][]int32
	for a := 0; a < len(reached); a++ {
		if err := ctx.Err(); err != nil {
			return estimate{}, err
		}
		clear(x)
		x[reached[a]] = 1
		c.forward(x, negligible)
		meet()
		rows = append(rows, append([]float64(nil), x...))
		var successors []int32
		for i, w := range x {
			if w > 0 {
				successors = append(successors, at[i]-1)
			}
		}
		next = append(next, successors)
	}
	class, closed := closedClasses(len(reached), func(v int) []int32 { return next[v] })
	if closed > 1 {
		return estimate{}, reducible(closed)
	}
	var recurrent []int // positions in reached
	for a := range reached {
		if class[a] == 0 {
			recurrent = append(recurrent, a)
		}
	}
	k := len(recurrent)
	kernel := make([]float64, 0, k*k)
	for _, a := range recurrent {
		for _, b := range recurrent {
			kernel = append(kernel, rows[a][reached[b]])
		}
	}
	pi, err := eliminate(ctx, kernel, k)
	if err != nil {
		return estimate{}, err
	}
	e := estimate{mass: make([]float64, n), passes: len(reached) + 1}
	for a, w := range pi {
		e.mass[reached[recurrent[a]]] = w
	}
	copy(x, e.mass)
	e.take(c.forward(x, negligible))
	e.residual = distance(x, e.mass)
	return e, nil
}

func reducible(closed int) error {
	return fmt.Errorf("%w: %d of them, so the throughput depends on chance", ErrReducible, closed)
}

// accelerator is an extrapolator whose window grows when it is of little use.
type accelerator struct {
	extrapolator
	most int     // iterates to combine
	last float64 // the change at the end of the last round
}

// newAccelerator returns an accelerator for vectors of length n.
func newAccelerator(n int) *accelerator {
	most := max(2, min(maxWindow, windowBytes/(8*n)))
	return &accelerator{extrapolator: extrapolator{window: min(minWindow, most)}, most: most, last: math.Inf(1)}
}

// add records an iterate and the size of its change.
func (a *accelerator) add(x []float64, change float64) []float64 {
	y := a.extrapolator.add(x)
	if y != nil {
		if change > a.last/10 {
			a.window = min(2*a.window, a.most)
		}
		a.last = change
	}
	return y
}

// largest is the largest absolute value in x.
func largest(x []float64) float64 {
	most := 0.0
	for _, v := range x {
		most = max(most, math.Abs(v))
	}
	return most
}

// scale divides x by its sum.
func scale(x []float64) {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	for i := range x {
		x[i] /= sum
	}
}

// clip sets negative entries to 0 and returns their weight.
func clip(x []float64) float64 {
	sum := 0.0
	for i, v := range x {
		if v < 0 {
			sum -= v
			x[i] = 0
		}
	}
	return sum
}

// distance is the L1 distance.
func distance(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += math.Abs(v - b[i])
	}
	return sum
}
