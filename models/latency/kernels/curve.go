package kernels

import "sort"

// curve is a measured function of one variable: linear between its points, level before the first, and behind the last
// going on as it did on average over the last octave, but never down. The average passes over the steps in which kernels
// with tiles grow.
type curve struct{ x, y []float64 } // x ascending, each once

// add appends a point, to the right of the others.
func (c *curve) add(x, y float64) { c.x, c.y = append(c.x, x), append(c.y, y) }

func (c *curve) empty() bool { return len(c.x) == 0 }

func (c *curve) last() float64 {
	if c.empty() {
		return 0
	}
	return c.x[len(c.x)-1]
}

// at is the value at x; 0 of an empty curve.
func (c *curve) at(x float64) float64 {
	n := len(c.x)
	switch {
	case n == 0:
		return 0
	case x <= c.x[0]:
		return c.y[0]
	case x >= c.x[n-1]:
		return c.beyond(x)
	}
	i := sort.SearchFloat64s(c.x, x) // c.x[i-1] < x <= c.x[i]
	t := (x - c.x[i-1]) / (c.x[i] - c.x[i-1])
	return c.y[i-1] + t*(c.y[i]-c.y[i-1])
}

func (c *curve) beyond(x float64) float64 {
	n := len(c.x)
	end, top := c.x[n-1], c.y[n-1]
	if x == end || n == 1 {
		return top
	}
	i := min(sort.SearchFloat64s(c.x, end/2), n-2)
	slope := max(0, (top-c.y[i])/(end-c.x[i]))
	return top + slope*(x-end)
}

// sum is the sum of curves, each times its factor, at all of their points.
func sum(curves []*curve, times []float64) curve {
	var all []float64
	for _, c := range curves {
		all = append(all, c.x...)
	}
	sort.Float64s(all)
	var s curve
	for i, x := range all {
		if i > 0 && x == all[i-1] {
			continue
		}
		y := 0.0
		for k, c := range curves {
			y += times[k] * c.at(x)
		}
		s.add(x, y)
	}
	return s
}
