package markov

import (
	"context"
	"fmt"
	"math"
	"time"
)

// Visits returns how often a single request steps on each model in the long run, as fractions of its steps: the
// stationary distribution of P, from model 0. ErrReducible if it can get caught in one of several sets of models.
func (r Routing) Visits() ([]float64, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	p := r.normalized()
	// Models within reach of model 0, in the order in which they are met.
	reached := []int{0}
	at := make([]int32, len(p)) // position + 1
	at[0] = 1
	next := make([][]int32, 0, len(p))
	for a := 0; a < len(reached); a++ {
		var to []int32
		for j, w := range p[reached[a]] {
			if w > 0 {
				if at[j] == 0 {
					reached = append(reached, j)
					at[j] = int32(len(reached))
				}
				to = append(to, at[j]-1)
			}
		}
		next = append(next, to)
	}
	class, closed := closedClasses(len(reached), func(v int) []int32 { return next[v] })
	if closed > 1 {
		return nil, reducible(closed)
	}
	var models []int
	for a, i := range reached {
		if class[a] == 0 {
			models = append(models, i)
		}
	}
	matrix := make([]float64, 0, len(models)*len(models))
	for _, i := range models {
		for _, j := range models {
			matrix = append(matrix, p[i][j])
		}
	}
	pi, err := eliminate(context.Background(), matrix, len(models))
	if err != nil {
		return nil, err
	}
	visits := make([]float64, len(p))
	for a, w := range pi {
		visits[models[a]] = w
	}
	return visits, nil
}

// committedPerStep is the tokens that a request's step commits in the long run, over all models.
func (r Routing) committedPerStep(visits []float64) float64 {
	return dot(r.committed(), visits)
}

// SingleRequest is the throughput of N = 1, in tok/s: the tokens of a step over its time, both averaged over the
// visits. Exact; for R2R it is 1 / (L_0 + p L_1). Source: paper, appendix D, with one request.
func SingleRequest(m Model) (float64, error) { return UpperBound(m, 1) }

// UpperBound is a bound on the throughput of n requests under any thresholds, in tok/s: a request never waits, and
// every step is as short as the shortest of its model for a batch up to n; nor does a model take in more per second
// than its best batch. For fixed step times and R2R it is N / (L_0 + p L_1). Source: paper, appendix D; the rest
// follows from counting.
func UpperBound(m Model, n int) (float64, error) {
	if err := m.validate(n); err != nil {
		return 0, err
	}
	return m.bound(n, func(i, b int) float64 { return m.StepTime(i, b).Seconds() })
}

// upperBound is UpperBound for the step times in whole quanta.
func (m Model) upperBound(g *grid, n int) (float64, error) {
	return m.bound(n, func(i, b int) float64 { return float64(g.steps[i][b]) * g.quantum.Seconds() })
}

func (m Model) bound(n int, seconds func(i, b int) float64) (float64, error) {
	visits, err := m.Visits()
	if err != nil {
		return 0, err
	}
	cycle, capacity := 0.0, math.Inf(1)
	for i, v := range visits {
		if v == 0 {
			continue
		}
		shortest, fastest := math.Inf(1), 0.0 // time of a step; requests per second
		for b := 1; b <= n; b++ {
			t := seconds(i, b)
			shortest, fastest = min(shortest, t), max(fastest, float64(b)/t)
		}
		cycle += v * shortest
		capacity = min(capacity, fastest/v)
	}
	return m.committedPerStep(visits) * min(float64(n)/cycle, capacity), nil
}

// EqualSteps is the throughput of n requests when all models take the same time for a step, whatever the batch, and all
// are eager: they run in lockstep and nobody waits. In tok/s, exact; for R2R it is N / (L (1 + p)).
// Source: paper, appendix D, with equal L.
func EqualSteps(r Routing, n int, l time.Duration) (float64, error) {
	return UpperBound(Model{Routing: r, Step: Fixed(repeat(l, len(r.P))...)}, n)
}

func repeat(l time.Duration, n int) []time.Duration {
	times := make([]time.Duration, n)
	for i := range times {
		times[i] = l
	}
	return times
}

// GatherAll is the throughput of R2R with B = (1, N), in tok/s: model 0 runs until every request has been handed over,
// the longest of N geometric times, then model 1 runs once. Exact. Source: paper, appendix D, with B_1 = N.
func GatherAll(p float64, n int, l0, l1 time.Duration) (float64, error) {
	if err := checkR2R(p, n, l0, l1); err != nil {
		return 0, err
	}
	if p == 0 {
		return float64(n) / l0.Seconds(), nil // never gathered
	}
	return float64(n) / p / (l0.Seconds()*longestGeometric(p, n) + l1.Seconds()), nil
}

// longestGeometric is the expected maximum of n geometric times with success probability p > 0, counted from 1: the
// sum over k >= 0 of the chance that some request is left after k steps, 1 - (1 - (1-p)^k)^n. Where p is small the
// sum is long, and equals H_n / -ln(1-p) + 1/2 to within p^4: its Euler-Maclaurin formula has no further term below
// third order.
func longestGeometric(p float64, n int) float64 {
	if n == 1 {
		return 1 / p
	}
	if p < 1e-3 {
		harmonic := 0.0
		for k := n; k >= 1; k-- {
			harmonic += 1 / float64(k)
		}
		return .5 - harmonic/math.Log1p(-p)
	}
	steps := 0.0
	for k := 0; ; k++ {
		left := -math.Expm1(float64(n) * math.Log1p(-math.Pow(1-p, float64(k))))
		steps += left
		if left < 1e-18*steps {
			return steps
		}
	}
}

// StepSync is the throughput of R2R under a barrier at each step, in tok/s: all requests step on model 0, then model 1
// runs for those handed over, if any. This is not the chain's policy but the paper's baseline without asynchronous
// execution. Source: paper, appendix D and ablation.
func StepSync(p float64, n int, l0, l1 time.Duration) (float64, error) {
	if err := checkR2R(p, n, l0, l1); err != nil {
		return 0, err
	}
	some := -math.Expm1(float64(n) * math.Log1p(-p))
	return float64(n) / (l0.Seconds() + some*l1.Seconds()), nil
}

// LargeNEager approximates the throughput of R2R with B = (1, 1) for large N, in tok/s: a request handed over finds
// model 1 in mid-step and waits half a step, and so on its return. N / (L_0 + p (1.5 L_1 + .5 L_0)); 1 % off at N =
// 64, p = .35, 6.0 / 27.9 ms. See MeanField for why no single figure is the limit.
func LargeNEager(p float64, n int, l0, l1 time.Duration) (float64, error) {
	if err := checkR2R(p, n, l0, l1); err != nil {
		return 0, err
	}
	return float64(n) / (l0.Seconds() + p*(1.5*l1.Seconds()+.5*l0.Seconds())), nil
}

func checkR2R(p float64, n int, l0, l1 time.Duration) error {
	if !(p >= 0 && p <= 1) {
		return fmt.Errorf("%w: switch rate %v, want a probability", ErrModel, p)
	}
	return Model{R2R(p), Fixed(l0, l1)}.validate(n)
}
