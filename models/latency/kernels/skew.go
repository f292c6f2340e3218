package kernels

import (
	"math"
	"slices"
)

// skew says how much of the way from the time at the mean context to the time at the longest one a batch takes whose
// contexts differ: alpha. Measured batches have two contexts: a share of the sequences at the longer one.
//
// A single alpha is a small difference over a small difference, so that noise makes some of them wild. So what is kept
// and interpolated is not alpha but the sums of its least-squares fit, with d = t_max - t_mean and e = t_skew - t_mean
// as parts of t_mean: alpha = sum d e / sum d d.
//
// Steps with and without a prefill run different kernels, so that they never mix.
type skew struct{ pure, mixed sums }

// sums are the sums of batches by the variables of key, each level with the values that were measured.
type sums struct {
	ladder[sums]
	de, dd float64 // at the lowest level
}

// batch is a row of skew.csv.
type batch struct {
	chunk, cached, decodes, share, small float64 // small: the shorter context
	mean, longest, skewed                float64 // us
}

// key is a batch's place. Counts and contexts that double from one value to the next are even on a log scale.
func key(chunk, cached, decodes, share, small float64) [5]float64 {
	log := func(x float64) float64 { return math.Log2(max(1, x)) }
	return [...]float64{log(chunk), cached, log(decodes), share, log(small)}
}

func (b *batch) key() [5]float64 { return key(b.chunk, b.cached, b.decodes, b.share, b.small) }

func newSkew(rows []batch) skew {
	slices.SortStableFunc(rows, func(a, b batch) int {
		ka, kb := a.key(), b.key()
		return slices.Compare(ka[:], kb[:])
	})
	var s skew
	for i := range rows {
		r := &rows[i]
		at := &s.pure
		if r.chunk > 0 {
			at = &s.mixed
		}
		for _, x := range r.key() {
			at = at.rung(x)
		}
		d, e := (r.longest-r.mean)/r.mean, (r.skewed-r.mean)/r.mean
		at.de, at.dd = at.de+d*e, at.dd+d*d
	}
	return s
}

func (s *skew) empty() bool { return len(s.pure.at)+len(s.mixed.at) == 0 }

// alpha is that of a batch in which a share of the decodes has the longest context and the others the small one. Beyond
// what was measured it is that of the nearest; without anything like it, 0.
func (s *skew) alpha(chunk, cached, decodes, share, small float64) float64 {
	from := &s.pure
	if chunk > 0 {
		from = &s.mixed
	}
	if len(from.at) == 0 {
		return 0
	}
	at := key(chunk, cached, decodes, share, small)
	de, dd := from.find(at[:])
	if dd == 0 {
		return 0
	}
	return de / dd
}

// find interpolates the sums at a place.
func (s *sums) find(at []float64) (de, dd float64) {
	if len(at) == 0 {
		return s.de, s.dd
	}
	i, t := place(s.at, at[0])
	de, dd = s.of[i].find(at[1:])
	if t = min(t, 1); t > 0 {
		e, d := s.of[i+1].find(at[1:])
		de, dd = de+t*(e-de), dd+t*(d-dd)
	}
	return de, dd
}
