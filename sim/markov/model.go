package markov

import (
	"fmt"
	"math"
	"time"

	"github.com/trbench/trbench/engine/step"
)

// Routing is a routing algorithm as the chain sees it: memoryless moves between models, one a step.
type Routing struct {
	// P[i][j] is the probability that a request steps on model j after a step on model i. Rows sum to 1.
	P [][]float64
	// C[i][j] is how many tokens a step on model i commits when the request goes on to model j: 1 where the sampled
	// token is kept, 0 where it is dropped.
	C [][]float64
}

// Model is the system whose throughput is asked: an algorithm, and how long the steps take.
type Model struct {
	Routing
	// Step[i][b-1] is the time of a step of model i with b requests. A row with a single entry holds for every b.
	Step [][]time.Duration
}

// rowSumTolerance is how far a row of P may be from 1: rounding in a file's decimals, not a mistake.
const rowSumTolerance = 1e-9

// maxModels bounds the models of one chain; a deployment has no more.
const maxModels = step.MaxModels

// Fixed returns step times that don't depend on the batch size, for Model.Step.
func Fixed(times ...time.Duration) [][]time.Duration {
	s := make([][]time.Duration, len(times))
	for i, t := range times {
		s[i] = []time.Duration{t}
	}
	return s
}

// StepTimer prices a step; every latency model is one.
type StepTimer interface {
	StepTime(step.Shape) time.Duration
}

// Sampled returns the step times of batches of 1..n plain decodes with context tokens of KV each, for Model.Step.
func Sampled(n, context int, timers ...StepTimer) [][]time.Duration {
	s := make([][]time.Duration, len(timers))
	for i, t := range timers {
		s[i] = make([]time.Duration, n)
		for b := 1; b <= n; b++ {
			s[i][b-1] = t.StepTime(step.Shape{Decodes: b, DecodeContext: int64(b) * int64(context), Longest: context})
		}
	}
	return s
}

// Models is the number of models.
func (m Model) Models() int { return len(m.P) }

// StepTime is the time of a step of model i with b >= 1 requests.
func (m Model) StepTime(i, b int) time.Duration {
	if len(m.Step[i]) == 1 {
		return m.Step[i][0]
	}
	return m.Step[i][b-1]
}

// fixed reports whether no step time depends on the batch size, up to n requests.
func (m Model) fixed(n int) bool {
	for i := range m.Step {
		for b := 2; b <= n; b++ {
			if m.StepTime(i, b) != m.StepTime(i, 1) {
				return false
			}
		}
	}
	return true
}

// validate checks the model for n requests.
func (m Model) validate(n int) error {
	if n < 1 {
		return fmt.Errorf("%w: %d requests, want at least 1", ErrModel, n)
	}
	if err := m.Routing.validate(); err != nil {
		return err
	}
	if len(m.Step) != len(m.P) {
		return fmt.Errorf("%w: step times of %d models, routing of %d", ErrModel, len(m.Step), len(m.P))
	}
	for i, row := range m.Step {
		if len(row) != 1 && len(row) < n {
			return fmt.Errorf("%w: model %d has step times up to batch %d, want one for all or up to %d",
				ErrModel, i, len(row), n)
		}
		for b, t := range row {
			if t <= 0 {
				return fmt.Errorf("%w: step time of model %d at batch %d is %v, must be positive", ErrModel, i, b+1, t)
			}
		}
	}
	return nil
}

func (r Routing) validate() error {
	n := len(r.P)
	if n < 2 || n > maxModels {
		return fmt.Errorf("%w: %d models, want 2 to %d", ErrModel, n, maxModels)
	}
	if len(r.C) != n {
		return fmt.Errorf("%w: C has %d rows, P has %d", ErrModel, len(r.C), n)
	}
	for i := range n {
		if len(r.P[i]) != n || len(r.C[i]) != n {
			return fmt.Errorf("%w: row %d of P has %d entries and of C %d, want %d",
				ErrModel, i, len(r.P[i]), len(r.C[i]), n)
		}
		sum := 0.0
		for j := range n {
			if p := r.P[i][j]; !(p >= 0 && p <= 1+rowSumTolerance) {
				return fmt.Errorf("%w: P[%d][%d] is %v, want a probability", ErrModel, i, j, p)
			}
			if c := r.C[i][j]; !(c >= 0) || math.IsInf(c, 1) {
				return fmt.Errorf("%w: C[%d][%d] is %v, want a token count", ErrModel, i, j, c)
			}
			sum += r.P[i][j]
		}
		if math.Abs(sum-1) > rowSumTolerance {
			return fmt.Errorf("%w: row %d of P sums to %.12g, want 1", ErrModel, i, sum)
		}
	}
	return nil
}

// never is the probability below which a move counts as impossible: it is lost in the rounding of its row's sum.
const never = 1e-15

// normalized returns P without what is below never, each row divided by its sum, so that no mass leaks through a
// decimal's rounding.
func (r Routing) normalized() [][]float64 {
	p := make([][]float64, len(r.P))
	for i, row := range r.P {
		p[i] = make([]float64, len(row))
		for j, x := range row {
			if x >= never {
				p[i][j] = x
			}
		}
		scale(p[i])
	}
	return p
}

// committed returns how many tokens one request's step on each model commits on average: sum_j P_ij C_ij.
func (r Routing) committed() []float64 {
	p := r.normalized()
	g := make([]float64, len(p))
	for i := range p {
		for j := range p[i] {
			g[i] += p[i][j] * r.C[i][j]
		}
	}
	return g
}
