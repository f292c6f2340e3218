package kernels

import (
	"cmp"
	"slices"
	"sort"
)

// grid is attention by prefill chunk, context cached before it, decodes, and context of each decode. Each level has the
// values that were measured below it, which need not be the same everywhere: memory limits how many long contexts fit,
// and a second sweep may have other values. So a look-up goes level by level, linear between the two neighbours that
// exist there.
type grid struct {
	pure   node   // no prefill
	mixed  levels // by chunk, then by cached context
	chunks []float64
}

// levels are nodes by one variable, ascending.
type levels struct {
	at    []float64
	below []node
}

// node is what was measured for one prefill: alone, and beside decodes. Or, in a level above, levels.
type node struct {
	levels           // by cached context, in a level of chunks
	alone  float64   // us without decodes
	has    bool      // alone was measured
	counts []float64 // decodes, ascending
	curves []curve   // by context, for each of counts
}

// point is a row of attention.csv.
type point struct{ chunk, cached, decodes, context, us float64 }

// newGrid sorts points, which hold no two of the same place.
func newGrid(points []point) grid {
	slices.SortFunc(points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.chunk, b.chunk), cmp.Compare(a.cached, b.cached), cmp.Compare(a.decodes, b.decodes),
			cmp.Compare(a.context, b.context))
	})
	var g grid
	for _, p := range points {
		at := &g.pure
		if p.chunk > 0 {
			at = g.mixed.sub(p.chunk).sub(p.cached)
		}
		if p.decodes == 0 {
			at.alone, at.has = p.us, true
			continue
		}
		if k := len(at.counts); k == 0 || at.counts[k-1] != p.decodes {
			at.counts, at.curves = append(at.counts, p.decodes), append(at.curves, curve{})
		}
		c := &at.curves[len(at.curves)-1]
		c.x, c.y = append(c.x, p.context), append(c.y, p.us)
	}
	return g
}

// sub is the last node, which is that of x or becomes it.
func (l *levels) sub(x float64) *node {
	if k := len(l.at); k == 0 || l.at[k-1] != x {
		l.at, l.below = append(l.at, x), append(l.below, node{})
	}
	return &l.below[len(l.below)-1]
}

// at is the time of one layer's attention, us. A chunk longer than any that was measured is taken as several, one behind
// the other: each attends to those before it.
func (g *grid) at(chunk, cached, decodes, context float64) float64 {
	if chunk == 0 {
		return g.pure.at(decodes, context)
	}
	most := g.lastChunk()
	us := g.prefill(min(chunk, most), cached, decodes, context)
	for chunk > most {
		chunk, cached = chunk-most, cached+most
		us += g.prefill(min(chunk, most), cached, 0, 0)
	}
	return us
}

func (g *grid) prefill(chunk, cached, decodes, context float64) float64 {
	return g.mixed.between(chunk, func(n *node) float64 {
		return n.between(cached, func(n *node) float64 { return n.at(decodes, context) })
	})
}

// between is linear in x between the neighbours' values; level before the first, and beyond the last as between the last
// two, but never down.
func (l *levels) between(x float64, value func(*node) float64) float64 {
	i, t := place(l.at, x)
	low := value(&l.below[i])
	if t == 0 {
		return low
	}
	return along(low, value(&l.below[i+1]), t)
}

// along is low + t (high - low); beyond t = 1 it does not fall.
func along(low, high, t float64) float64 {
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

// at is the time with so many decodes beside the prefill.
func (n *node) at(decodes, context float64) float64 {
	if decodes == 0 {
		if n.has || len(n.curves) == 0 {
			return n.alone
		}
		return n.curves[0].y[0]
	}
	if len(n.curves) == 0 {
		return n.alone
	}
	i, t := place(n.counts, decodes)
	low := n.curves[i].at(context)
	if t == 0 {
		return low
	}
	return along(low, n.curves[i+1].at(context), t)
}

func (g *grid) lastChunk() float64 {
	if n := len(g.mixed.at); n > 0 {
		return g.mixed.at[n-1]
	}
	return 0
}

func (g *grid) lastDecodes() float64 {
	if n := len(g.pure.counts); n > 0 {
		return g.pure.counts[n-1]
	}
	return 0
}

func (g *grid) lastContext() float64 {
	last := 0.0
	for i := range g.pure.curves {
		last = max(last, g.pure.curves[i].last())
	}
	return last
}
