package metrics

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/trbench/trbench/results"
)

const (
	subBits = 10           // a bucket's width is at most 2^-10 of its values
	subSize = 1 << subBits // buckets to a power of two
)

// Histogram counts int64 values >= 0, nanoseconds here, in log-linear buckets: those below 2^11 exactly, the others to
// 2^-10 of their size. A percentile is the middle of its bucket, at most 2^-11 (.05 %) off; count and mean are exact.
// The zero value is empty. Memory is 8 KiB for each power of two up to the largest value, 432 KiB at most.
//
// Why not a library: the record of a token gap is on the hot path of a simulation of millions of tokens a second.
type Histogram struct {
	// Value v is in bucket e 2^10 + v >> e, where e is 0 below 2^11 and else puts v >> e into [2^10, 2^11). So the
	// buckets of one power of two follow those of the one below.
	counts    []uint64
	high, low uint64 // sum of all values, 128 bits
}

// Record counts value once.
func (h *Histogram) Record(value int64) { h.RecordN(value, 1) }

// RecordN counts value n times. A negative value is a programmer's mistake and panics.
func (h *Histogram) RecordN(value int64, n uint64) {
	v := uint64(value)
	e := uint(bits.Len64(v|(2*subSize-1))) - (subBits + 1)
	i := uint64(e)<<subBits + v>>(e&63)
	if i >= uint64(len(h.counts)) {
		h.grow(value, e)
	}
	h.counts[i] += n
	high, low := bits.Mul64(v, n)
	var carry uint64
	h.low, carry = bits.Add64(h.low, low, 0)
	h.high += high + carry
}

// grow makes room for the power of two that value is the first of.
func (h *Histogram) grow(value int64, e uint) {
	if value < 0 {
		panic(fmt.Sprintf("metrics: histogram value %d: want 0 or more", value))
	}
	h.extend(int(e+2) << subBits)
}

func (h *Histogram) extend(buckets int) {
	if buckets > len(h.counts) {
		h.counts = append(make([]uint64, 0, buckets), h.counts...)[:buckets]
	}
}

// Count is the number of values.
func (h *Histogram) Count() uint64 {
	n := uint64(0)
	for _, c := range h.counts {
		n += c
	}
	return n
}

// Mean is that of the values themselves, not of their buckets; NaN of nothing.
func (h *Histogram) Mean() float64 {
	n := h.Count()
	if n == 0 {
		return math.NaN()
	}
	return (math.Ldexp(float64(h.high), 64) + float64(h.low)) / float64(n)
}

// Merge adds the counts of other, as if its values had been recorded here.
func (h *Histogram) Merge(other *Histogram) {
	h.extend(len(other.counts))
	for i, n := range other.counts {
		h.counts[i] += n
	}
	var carry uint64
	h.low, carry = bits.Add64(h.low, other.low, 0)
	h.high += other.high + carry
}

// Quantile returns the quantile q in [0, 1] as Percentile does, with each value at the middle of its bucket; NaN of
// nothing.
func (h *Histogram) Quantile(q float64) float64 {
	n := h.Count()
	if n == 0 {
		return math.NaN()
	}
	low, high, t := neighbours(int64(n), q)
	return interpolate(h.ranked(uint64(low)), h.ranked(uint64(high)), t)
}

// ranked returns the value of a rank below Count, counted from 0.
func (h *Histogram) ranked(rank uint64) float64 {
	seen := uint64(0)
	for i, n := range h.counts {
		if seen += n; seen > rank {
			return middle(i)
		}
	}
	panic(fmt.Sprintf("metrics: rank %d of %d values", rank, seen))
}

// middle is the value that stands for bucket i: the middle of the integers in it.
func middle(i int) float64 {
	e := max(i>>subBits-1, 0)
	from := uint64(i-e<<subBits) << e
	width := uint64(1) << e
	return float64(from) + float64(width-1)/2
}

// Describe returns mean and percentiles with values divided by unit; nil where nothing was recorded.
func (h *Histogram) Describe(unit time.Duration, further []float64) *results.Dist {
	if h.Count() == 0 {
		return nil
	}
	d := &results.Dist{Mean: h.Mean() / float64(unit)}
	for _, p := range percentiles(further) {
		d.Quantiles = append(d.Quantiles, results.Quantile{P: p, Value: h.Quantile(p/100) / float64(unit)})
	}
	return d
}
