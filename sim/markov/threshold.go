package markov

import (
	"fmt"
	"iter"
	"slices"
)

// Feasible reports whether n requests can never all wait at once under the thresholds: sum of (B_i - 1) < n. The error
// is an *InfeasibleError, or ErrModel for a threshold below 1. Source: paper, appendix D.
func Feasible(threshold []int, n int) error {
	stranded := 0
	for i, b := range threshold {
		if b < 1 {
			return fmt.Errorf("%w: threshold of model %d is %d, want at least 1", ErrModel, i, b)
		}
		stranded += b - 1
	}
	if stranded >= n {
		return &InfeasibleError{Threshold: slices.Clone(threshold), Requests: n, Stranded: stranded}
	}
	return nil
}

// eager is the threshold vector (1, ..., 1).
func eager(models int) []int {
	b := make([]int, models)
	for i := range b {
		b[i] = 1
	}
	return b
}

// feasibleThresholds yields every feasible vector for n requests in lexicographic order, the eager one first; those
// with B_0 = 1 only where smallEager. The slice is reused.
func feasibleThresholds(models, n int, smallEager bool) iter.Seq[[]int] {
	return func(yield func([]int) bool) {
		b := eager(models)
		first := 0
		if smallEager {
			first = 1
		}
		left := n - 1 // what sum (B_i - 1) may still grow by
		for {
			if !yield(b) {
				return
			}
			i := models - 1
			for i >= first && left == 0 {
				left += b[i] - 1
				b[i] = 1
				i--
			}
			if i < first {
				return
			}
			b[i]++
			left--
		}
	}
}
