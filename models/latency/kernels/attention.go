package kernels

import (
	"cmp"
	"slices"
	"sort"
)

// attention is the time of one layer's attention, us, as it was measured: by decodes and the context of each; by prefill
// chunk and the context cached before it; and by all four together.
//
// The values of a variable need not be the same everywhere: memory limits how many long contexts fit, and a second sweep
// may have other values. So a look-up goes variable by variable, linear between the two neighbours that exist there.
type attention struct {
	decodes  ladder[curve]                 // by decodes; curves by context
	prefills ladder[curve]                 // by chunk; curves by cached context
	mixed    ladder[ladder[ladder[curve]]] // by chunk, cached context, decodes; curves by context
}

// point is a row of attention.csv.
type point struct{ chunk, cached, decodes, context, us float64 }

// newAttention sorts points, which hold no two of the same place.
func newAttention(points []point) attention {
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.chunk, b.chunk), cmp.Compare(a.cached, b.cached), cmp.Compare(a.decodes, b.decodes),
			cmp.Compare(a.context, b.context))
	})
	var a attention
	for _, p := range points {
		switch {
		case p.chunk == 0:
			a.decodes.rung(p.decodes).add(p.context, p.us)
		case p.decodes == 0:
			a.prefills.rung(p.chunk).add(p.cached, p.us)
		default:
			a.mixed.rung(p.chunk).rung(p.cached).rung(p.decodes).add(p.context, p.us)
		}
	}
	return a
}

// at is the time of a prefill chunk over cached context beside decodes of a context; chunk or decodes may be 0. A chunk
// longer than any that was measured is taken as several, one behind the other: each attends to those before it.
func (a *attention) at(chunk, cached, decodes, context float64) float64 {
	if chunk == 0 {
		return a.pure(decodes, context)
	}
	most := a.prefills.last()
	first := min(chunk, most)
	us := 0.0
	switch {
	case decodes == 0:
		us = a.prefill(first, cached)
	case len(a.mixed.at) == 0: // as if one kernel ran behind the other
		us = a.prefill(first, cached) + a.pure(decodes, context)
	default:
		us = a.mixed.between(first, func(l *ladder[ladder[curve]]) float64 {
			return l.between(cached, func(l *ladder[curve]) float64 {
				return l.between(decodes, func(c *curve) float64 { return c.at(context) })
			})
		})
	}
	for chunk > most {
		chunk, cached = chunk-most, cached+most
		us += a.prefill(min(chunk, most), cached)
	}
	return us
}

func (a *attention) pure(decodes, context float64) float64 {
	return a.decodes.between(decodes, func(c *curve) float64 { return c.at(context) })
}

func (a *attention) prefill(chunk, cached float64) float64 {
	return a.prefills.between(chunk, func(c *curve) float64 { return c.at(cached) })
}

// longest is the longest context of a decode that was measured.
func (a *attention) longest() float64 {
	most := 0.0
	for i := range a.decodes.of {
		most = max(most, a.decodes.of[i].last())
	}
	return most
}

// ladder holds a T for each value of a variable that was measured, ascending.
type ladder[T any] struct {
	at []float64
	of []T
}

// rung is the last T, which is x's or becomes it.
func (l *ladder[T]) rung(x float64) *T {
	if k := len(l.at); k == 0 || l.at[k-1] != x {
		var zero T
		l.at, l.of = append(l.at, x), append(l.of, zero)
	}
	return &l.of[len(l.of)-1]
}

func (l *ladder[T]) last() float64 { return l.at[len(l.at)-1] }

// between is linear in x between the neighbours' values; level before the first, and beyond the last as between the last
// two, but never down.
func (l *ladder[T]) between(x float64, value func(*T) float64) float64 {
	i, t := place(l.at, x)
	low := value(&l.of[i])
	if t == 0 {
		return low
	}
	high := value(&l.of[i+1])
	if t > 1 {
		return high + (t-1)*max(0, high-low)
	}
	return low + t*(high-low)
}

// place finds i and t such that x is at[i] + t (at[i+1] - at[i]), with t = 0 before the first and t > 1 beyond the last.
func place(at []float64, x float64) (i int, t float64) {
	n := len(at)
	if n == 1 || x <= at[0] {
		return 0, 0
	}
	i = min(sort.SearchFloat64s(at, x)-1, n-2)
	return i, (x - at[i]) / (at[i+1] - at[i])
}
