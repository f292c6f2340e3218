package calibrate

import (
	"math"
	"slices"

	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/metrics"
)

// z95 is the two-sided 95 % quantile of the normal distribution.
const z95 = 1.959963984540054

// Estimate is a number and its 95 % interval; Low and High are null where the log doesn't tell.
type Estimate struct {
	Value float64       `json:"value"`
	Low   results.Float `json:"low"`
	High  results.Float `json:"high"`
}

func between(value, low, high float64) Estimate {
	return Estimate{value, results.F(low), results.F(high)}
}

// Contains says that x lies within the interval, of which there is one.
func (e Estimate) Contains(x float64) bool {
	low, ok := e.Low.Get()
	high, both := e.High.Get()
	return ok && both && low <= x && x <= high
}

// wilson is the share of k in n with Wilson's score interval (1927), which stays within [0, 1] and holds for few, too.
// n may be an effective number, less than what was counted. Of nothing there is no interval.
func wilson(k, n, effective float64) Estimate {
	if !(n > 0) {
		return Estimate{}
	}
	p := k / n
	n = math.Min(n, math.Max(effective, 1))
	mid := p + z95*z95/(2*n)
	half := z95 * math.Sqrt(p*(1-p)/n+z95*z95/(4*n*n))
	scale := 1 + z95*z95/n
	return between(p, math.Max(0, (mid-half)/scale), math.Min(1, (mid+half)/scale))
}

// atMost is the upper end of the exact 95 % interval (Clopper and Pearson, 1934) of a probability that n trials never
// showed.
func atMost(n float64) float64 {
	if !(n > 0) {
		return 1
	}
	return 1 - math.Pow(.025, 1/n)
}

// quantile is metrics.Percentile of values in any order.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return metrics.Percentile(sorted, q)
}
