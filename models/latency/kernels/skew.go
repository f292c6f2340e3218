package kernels

import (
	"math"
	"slices"
	"sort"
)

// skew says how much of the way from the time at the mean context to the time at the longest one a batch takes whose
// contexts differ: alpha. Measured batches have two contexts: a share of the sequences at the longer one.
//
// A single alpha is a small difference over a small difference, so that noise makes some of them wild. So what is kept
// and interpolated is not alpha but the sums of its least-squares fit, with d = t_max - t_mean and e = t_skew - t_mean
// as parts of t_mean: alpha = sum d e / sum d d.
type skew struct{ slices []skewSlice } // by chunk, ascending

// skewSlice is the cells of one prefill chunk, by cached context, decodes, share and shorter context, each level with
// the values that were measured.
type skewSlice struct {
	chunk float64
	cells cellLevels
}

// cellLevels are ascending.
type cellLevels struct {
	at    []float64
	below []cell
}

type cell struct {
	cellLevels
	de, dd float64 // at the lowest level
}

// batch is a row of skew.csv.
type batch struct{ chunk, cached, decodes, share, small, mean, longest, skewed float64 } // the last three in us

// key is a row's place; contexts and counts that double from one to the next are even on a log scale.
func (b *batch) key() [5]float64 {
	return [...]float64{b.chunk, b.cached, math.Log2(b.decodes), b.share, math.Log2(b.small)}
}

func newSkew(rows []batch) skew {
	slices.SortStableFunc(rows, func(a, b batch) int {
		ka, kb := a.key(), b.key()
		return slices.Compare(ka[:], kb[:])
	})
	var s skew
	for i := range rows {
		r := &rows[i]
		key := r.key()
		if k := len(s.slices); k == 0 || s.slices[k-1].chunk != r.chunk {
			s.slices = append(s.slices, skewSlice{chunk: r.chunk})
		}
		at := &s.slices[len(s.slices)-1].cells
		var c *cell
		for _, x := range key[1:] {
			c = at.sub(x)
			at = &c.cellLevels
		}
		d, e := (r.longest-r.mean)/r.mean, (r.skewed-r.mean)/r.mean
		c.de, c.dd = c.de+d*e, c.dd+d*d
	}
	return s
}

func (l *cellLevels) sub(x float64) *cell {
	if k := len(l.at); k == 0 || l.at[k-1] != x {
		l.at, l.below = append(l.at, x), append(l.below, cell{})
	}
	return &l.below[len(l.below)-1]
}

// alpha is that of a batch in which a share of the decodes has the longest context and the others the small one. Beyond
// what was measured it is that of the nearest.
func (s *skew) alpha(chunk, cached, decodes, share, small float64) float64 {
	at := [...]float64{cached, math.Log2(decodes), share, math.Log2(max(1, small))}
	var de, dd float64
	for _, p := range s.around(chunk) {
		if p.weight > 0 {
			a, b := p.slice.cells.sums(at[:])
			de, dd = de+p.weight*a, dd+p.weight*b
		}
	}
	if dd == 0 {
		return 0
	}
	return de / dd
}

// part is a slice, and how much it counts.
type part struct {
	slice  *skewSlice
	weight float64
}

// around are the slices at both sides of a chunk. Steps with and without a prefill run different kernels, so that they
// never mix.
func (s *skew) around(chunk float64) [2]part {
	mixed, pure := s.slices, []skewSlice(nil)
	if len(mixed) > 0 && mixed[0].chunk == 0 {
		pure, mixed = mixed[:1], mixed[1:]
	}
	if chunk == 0 {
		mixed = pure
	}
	if len(mixed) == 0 {
		return [2]part{}
	}
	i := sort.Search(len(mixed), func(i int) bool { return mixed[i].chunk >= chunk })
	switch {
	case i == 0:
		return [2]part{{&mixed[0], 1}}
	case i == len(mixed):
		return [2]part{{&mixed[i-1], 1}}
	}
	low, high := math.Log2(mixed[i-1].chunk), math.Log2(mixed[i].chunk)
	t := (math.Log2(chunk) - low) / (high - low)
	return [2]part{{&mixed[i-1], 1 - t}, {&mixed[i], t}}
}

// sums interpolates the sums of the fit at a place.
func (l *cellLevels) sums(at []float64) (de, dd float64) {
	i, t := place(l.at, at[0])
	t = min(t, 1)
	de, dd = l.below[i].sums(at[1:])
	if t > 0 {
		de2, dd2 := l.below[i+1].sums(at[1:])
		de, dd = de+t*(de2-de), dd+t*(dd2-dd)
	}
	return de, dd
}

func (c *cell) sums(at []float64) (de, dd float64) {
	if len(at) == 0 {
		return c.de, c.dd
	}
	return c.cellLevels.sums(at)
}
