package markov

import (
	"context"
	"math"
)

const (
	// minWindow and maxWindow bound how many iterates an extrapolation combines. It starts small, since most chains
	// converge within ten sweeps, and doubles when a round gains less than a factor 10: slow modes are few.
	minWindow, maxWindow = 8, 64
	// stationaryTolerance is the L1 change of the stationary vector in a sweep at which the iteration stops. The bounds
	// say afterwards whether that was enough.
	stationaryTolerance = 1e-12
)

// estimate is a stationary distribution: the mass that passes each head between two sweeps, summing to 1.
type estimate struct {
	mass     []float64 // by head
	rate     float64   // tokens per quantum
	residual float64   // L1 change in the last sweep
	sweeps   int
}

// stationary iterates sweeps from the start state until the mass at the heads stops changing; false if it still does
// after limit sweeps. A small change is no proof of accuracy where the chain mixes slowly: see bounds.
func (c *chain) stationary(ctx context.Context, limit int) (estimate, bool, error) {
	acc := make([]float64, c.states())
	acc[0] = 1
	e := estimate{mass: make([]float64, len(c.heads)), residual: math.Inf(1)}
	x := make([]float64, len(c.heads))
	accelerate := newAccelerator()
	for e.sweeps < limit {
		if err := ctx.Err(); err != nil {
			return e, false, err
		}
		tokens, quanta := c.push(acc, nil)
		e.sweeps++
		rate := tokens / quanta
		for i, h := range c.heads {
			x[i] = acc[h]
		}
		scale(x)
		e.residual = distance(x, e.mass)
		settled := math.Abs(rate-e.rate) <= stationaryTolerance*rate
		e.rate = rate
		copy(e.mass, x)
		if e.residual <= stationaryTolerance && settled {
			return e, true, nil
		}
		if y := accelerate.add(x, e.residual); y != nil {
			// A combination may be slightly negative; what is far from a distribution is not used.
			if negative := clip(y); negative < .1 {
				scale(y)
				copy(e.mass, y)
			}
		}
		for i, h := range c.heads {
			acc[h] = e.mass[i]
		}
	}
	return e, false, nil
}

// bounds are proved limits of the throughput, in tokens per quantum.
type bounds struct {
	lower, upper float64
	sweeps       int
}

// bounds brackets the throughput g near rate, to a relative width of tolerance; false if limit sweeps did not suffice.
//
// For any values h of the heads let h' be those one sweep earlier, at the price of rate tokens a quantum, and theta the
// expected quanta between heads. Averaged over the stationary mass x of the heads, h' - h = R - rate theta + K h - h
// comes to (g - rate) x.theta, because x K = x and x.R = g x.theta. So g - rate lies between the least and the largest
// (h' - h) / theta, whatever h is; h' -> h makes them meet. A slowly mixing chain can't hide from this: its parts have
// different throughputs, and the bounds stay apart until h has found out how the parts are connected.
// Source: A. R. Odoni, On finding the maximal gain for Markov decision processes, Operations Research 17 (1969), for
// one fixed policy.
func (c *chain) bounds(ctx context.Context, rate, tolerance float64, limit int) (bounds, bool, error) {
	value := make([]float64, c.states())
	c.pull(value, 0, -1)
	theta := make([]float64, len(c.heads))
	for i, h := range c.heads {
		theta[i] = value[h]
	}
	clear(value)
	b := bounds{lower: 0, upper: math.Inf(1), sweeps: 1}
	old := make([]float64, len(c.heads))
	accelerate := newAccelerator()
	for b.sweeps < limit {
		if err := ctx.Err(); err != nil {
			return b, false, err
		}
		for i, h := range c.heads {
			old[i] = value[h]
		}
		c.pull(value, 1, rate)
		b.sweeps++
		lo, hi := math.Inf(1), math.Inf(-1)
		for i, h := range c.heads {
			gain := (value[h] - old[i]) / theta[i]
			lo, hi = min(lo, gain), max(hi, gain)
		}
		b.lower, b.upper = max(b.lower, rate+lo), min(b.upper, rate+hi)
		if b.upper-b.lower <= tolerance*rate {
			return b, true, nil
		}
		// Values matter up to a constant only; without it they stay small, and their differences exact.
		base := value[c.heads[0]]
		for i, h := range c.heads {
			old[i] = value[h] - base
		}
		if y := accelerate.add(old, hi-lo); y != nil {
			copy(old, y)
		}
		for i, h := range c.heads {
			value[h] = old[i]
		}
	}
	return b, false, nil
}

// accelerator is an extrapolator whose window grows when it is of little use.
type accelerator struct {
	extrapolator
	last float64 // the change at the end of the last round
}

func newAccelerator() *accelerator {
	return &accelerator{extrapolator: extrapolator{window: minWindow}, last: math.Inf(1)}
}

// add records an iterate and the size of its change.
func (a *accelerator) add(x []float64, change float64) []float64 {
	y := a.extrapolator.add(x)
	if y != nil {
		if change > a.last/10 {
			a.window = min(2*a.window, maxWindow)
		}
		a.last = change
	}
	return y
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
