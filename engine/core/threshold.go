package core

import (
	"errors"
	"fmt"
	"slices"
)

// ErrInfeasible is the kind of a threshold vector that can stop the system: with every model one request short of its
// threshold, all N requests could wait.
var ErrInfeasible = errors.New("infeasible threshold")

// CheckFeasible reports an error of kind ErrInfeasible unless sum (B_i - 1) < n (paper, appendix D): only then do n
// active requests always start some batch.
func CheckFeasible(b []int, n int) error {
	sum := 0
	for i, x := range b {
		if x < 1 {
			return fmt.Errorf("%w: B[%d] = %d, want at least 1", ErrInfeasible, i, x)
		}
		sum += x - 1
	}
	if sum >= n {
		return fmt.Errorf("%w %v for %d active requests: sum of (B_i - 1) is %d, want less than %d", ErrInfeasible, b, n, sum, n)
	}
	return nil
}

// Table is a threshold vector for each number of active requests: Table[n-1][i] is model i's for n of them, and the
// last row holds beyond.
type Table [][]int

// Scalar is the vector that a single number stands for: (1, ..., 1, k), the largest model waits for k.
func Scalar(models, k int) []int {
	b := slices.Repeat([]int{1}, models)
	b[models-1] = k
	return b
}

// Lowered returns the table that is safe while requests finish: each row feasible for its number of active requests.
// Where one is not, its largest entry (ties: the highest model) is lowered until it is. The last row of the result is
// that of t, so the result has as many rows as that one needs to be feasible.
func (t Table) Lowered() Table {
	if len(t) == 0 {
		return nil
	}
	last := t[len(t)-1]
	rows := 1
	for _, x := range last {
		rows += max(x, 1) - 1
	}
	rows = max(rows, len(t))
	out := make(Table, rows)
	for n := range out {
		b := slices.Clone(t[min(n, len(t)-1)])
		sum := 0
		for i := range b {
			b[i] = max(b[i], 1)
			sum += b[i] - 1
		}
		for sum >= n+1 {
			at := 0
			for i := range b {
				if b[i] >= b[at] {
					at = i
				}
			}
			b[at]--
			sum--
		}
		out[n] = b
	}
	return out
}

// At is the vector for n active requests; nil for an empty table.
func (t Table) At(n int) []int {
	if len(t) == 0 || n < 1 {
		return nil
	}
	return t[min(n, len(t))-1]
}

// Column is model i's Policy.Threshold.
func (t Table) Column(i int) []int32 {
	if len(t) == 0 {
		return nil
	}
	c := make([]int32, len(t))
	for n := range t {
		c[n] = int32(t[n][i])
	}
	return c
}
