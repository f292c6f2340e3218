package metrics

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trbench/trbench/results"
)

// standard are the percentiles that every distribution has.
var standard = [...]float64{50, 90, 99}

// Percentile returns the quantile q in [0, 1] of sorted, which must be ascending and hold no NaN: linear interpolation
// between the order statistics around (n-1) q, which is type 7 of Hyndman and Fan and numpy's default, to numpy's last
// digit. Of nothing it is NaN.
func Percentile(sorted []float64, q float64) float64 {
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	low, high, t := neighbours(int64(n), q)
	return interpolate(sorted[low], sorted[high], t)
}

// neighbours returns the order statistics around the quantile q of n values, and where it lies between them.
func neighbours(n int64, q float64) (low, high int64, t float64) {
	at := float64(n-1) * q
	floor := math.Floor(at)
	low = min(max(int64(floor), 0), n-1)
	return low, min(low+1, n-1), at - floor
}

// interpolate starts from the nearer end, as numpy does. The conversions keep a product from being fused with the sum,
// so that every platform rounds alike.
func interpolate(a, b, t float64) float64 {
	if t < 0.5 {
		return a + float64((b-a)*t)
	}
	return b - float64((b-a)*(1-t))
}

// Mean is the arithmetic mean; NaN of nothing.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// StdDev is the sample standard deviation, with n - 1; NaN of fewer than two.
func StdDev(values []float64) float64 {
	if len(values) < 2 {
		return math.NaN()
	}
	mean, squares := Mean(values), 0.0
	for _, v := range values {
		squares += float64((v - mean) * (v - mean))
	}
	return math.Sqrt(squares / float64(len(values)-1))
}

// Describe returns the mean and percentiles of values, which it sorts; nil of nothing. The percentiles are 50, 90, 99
// and those of further, each in (0, 100]. The sum runs over the sorted values, so that their order does not matter.
func Describe(values []float64, further []float64) *results.Dist {
	if len(values) == 0 {
		return nil
	}
	slices.Sort(values)
	d := &results.Dist{Mean: Mean(values)}
	for _, p := range percentiles(further) {
		d.Quantiles = append(d.Quantiles, results.Quantile{P: p, Value: Percentile(values, p/100)})
	}
	return d
}

// percentiles is the standard ones and further, ascending, each once.
func percentiles(further []float64) []float64 {
	all := append(standard[:len(standard):len(standard)], further...)
	slices.Sort(all)
	return slices.Compact(all)
}

// ParsePercentiles reads "50,90,99.9". What Describe gives always may be left out or named.
func ParsePercentiles(list string) ([]float64, error) {
	var found []float64
	for field := range strings.SplitSeq(list, ",") {
		word := strings.TrimSpace(field)
		p, err := strconv.ParseFloat(word, 64)
		if err != nil || !(p > 0 && p <= 100) { // NaN is neither
			return nil, fmt.Errorf("percentiles %q: %q: want numbers above 0 and up to 100, such as 50,90,99.9", list, word)
		}
		found = append(found, p)
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// Bounded is the fewest values whose percentile p, 50 or more, has a two-sided 95 % confidence interval from order
// statistics with an upper end: the least n with 1 - (p/100)^n >= 0.975, for 99 it is 368. With fewer the largest value
// is no bound either.
func Bounded(p float64) int {
	if p >= 100 {
		return math.MaxInt
	}
	return int(math.Ceil(math.Log(0.025) / math.Log(p/100)))
}

// Doubt is the warning that belongs beside percentile p of what over n values; "" where there is none.
func Doubt(what string, p float64, n int) string {
	need := Bounded(p)
	if n == 0 || n >= need || p >= 100 {
		return ""
	}
	return fmt.Sprintf("P%s of %s over %d requests: fewer than %d, its 95 %% interval has no upper bound",
		strconv.FormatFloat(p, 'f', -1, 64), what, n, need)
}
