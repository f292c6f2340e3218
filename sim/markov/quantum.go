package markov

import (
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	// maxAutoQuanta bounds the longest step, in quanta, when the quantum is chosen: the state space grows with it.
	maxAutoQuanta = 1000
	// autoRounding is the relative rounding error of a step time that a chosen quantum may cost.
	autoRounding = 1e-4
)

// grid is the step times as whole quanta.
type grid struct {
	quantum  time.Duration
	steps    [][]int32 // steps[i][b] quanta for a batch of b on model i; index 0 is unused
	rounding float64   // largest relative error of a step time
}

// longest is the longest step of model i, in quanta.
func (g *grid) longest(i int) int32 { return slices.Max(g.steps[i][1:]) }

// grid rounds the step times of batches up to n to whole quanta: those of quantum, or of a chosen one where it is 0.
// The quantum is then enlarged by the common divisor of all the counts, which changes nothing but the size of the
// chain.
func (m Model) grid(n int, quantum time.Duration) (*grid, error) {
	if quantum < 0 {
		return nil, fmt.Errorf("%w: quantum is %v, must be positive", ErrModel, quantum)
	}
	if quantum == 0 {
		quantum = m.chooseQuantum(n)
	}
	g := &grid{quantum: quantum, steps: make([][]int32, m.Models())}
	divisor := int64(0)
	for i := range g.steps {
		g.steps[i] = make([]int32, n+1)
		for b := 1; b <= n; b++ {
			t := m.StepTime(i, b)
			k := int64((t + quantum/2) / quantum)
			if k == 0 {
				return nil, fmt.Errorf("%w: step of model %d at batch %d takes %v, less than half a quantum of %v",
					ErrModel, i, b, t, quantum)
			}
			if k > math.MaxInt32 {
				return nil, fmt.Errorf("%w: step of model %d at batch %d takes %v, over %d quanta of %v",
					ErrModel, i, b, t, math.MaxInt32, quantum)
			}
			g.steps[i][b] = int32(k)
			g.rounding = max(g.rounding, math.Abs(float64(k)*float64(quantum)/float64(t)-1))
			divisor = gcd(divisor, k)
		}
	}
	for _, row := range g.steps {
		for b := range row {
			row[b] /= int32(divisor)
		}
	}
	g.quantum *= time.Duration(divisor)
	return g, nil
}

// chooseQuantum returns the largest quantum that represents every step time up to batch n exactly, if that leaves at
// most maxAutoQuanta for the longest; else, of those that leave so many, the largest within autoRounding of all
// times, or the most exact one.
func (m Model) chooseQuantum(n int) time.Duration {
	var times []float64
	common, longest := int64(0), time.Duration(0)
	for i := range m.Models() {
		for b := 1; b <= n; b++ {
			t := m.StepTime(i, b)
			common, longest = gcd(common, int64(t)), max(longest, t)
			times = append(times, float64(t))
		}
	}
	if int64(longest)/common <= maxAutoQuanta {
		return time.Duration(common)
	}
	slices.Sort(times)
	times = slices.Compact(times)
	best, bestErr := fitQuantum(times, times[0]) // should the times be too far apart for any of the following
	for k := 1; k <= maxAutoQuanta; k++ {
		quantum, err := fitQuantum(times, float64(longest)/float64(k))
		if err < bestErr {
			best, bestErr = quantum, err
		}
		if err <= autoRounding {
			break
		}
	}
	return best
}

// fitQuantum rounds the times to whole multiples of about q and returns the quantum that makes the largest relative
// error least, with that error (infinite where a time rounds to nothing). With multiples d and times t it is
// 2 / (min d/t + max d/t), which balances the two extremes.
func fitQuantum(times []float64, q float64) (time.Duration, float64) {
	lo, hi := math.Inf(1), 0.0
	for _, t := range times {
		d := math.Round(t / q)
		lo, hi = min(lo, d/t), max(hi, d/t)
	}
	if lo == 0 {
		return time.Duration(max(1, math.Round(q))), math.Inf(1)
	}
	return time.Duration(max(1, math.Round(2/(lo+hi)))), (hi - lo) / (hi + lo)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
