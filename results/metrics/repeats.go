package metrics

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// MeanCI returns the mean of repeats and the half-width of its two-sided 95 % confidence interval, t(0.975, n-1) s /
// sqrt(n) with Student's t; the half-width of fewer than two is NaN.
func MeanCI(repeats []float64) (mean, half float64) {
	mean = Mean(repeats)
	n := len(repeats)
	if n < 2 {
		return mean, math.NaN()
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(n - 1)}.Quantile(0.975)
	return mean, t * StdDev(repeats) / math.Sqrt(float64(n))
}
