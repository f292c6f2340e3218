package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/results/metrics"
	"github.com/trbench/trbench/sim/markov"
)

// matrix routes by a routing matrix P and keeps by C: the form of the exact chain.
type matrix struct {
	route.CommitAll
	p, c [][]float64
}

func (x *matrix) Route(m step.ModelID, b *step.Batch, res *step.Result, mv *route.Moves) {
	for i := range mv.To {
		u, j := res.Signal[i], 0
		for u -= x.p[m][0]; u >= 0 && j < len(x.p)-1; u -= x.p[m][j] {
			j++
		}
		mv.To[i] = step.ModelID(j)
	}
}

func (x *matrix) Send(b *step.Batch, row int, to step.ModelID) int32 {
	return 1 - int32(x.c[b.Model][to])
}

// memoryless draws anew for every row: a chain that drops a token and comes back to the same model at the same position
// must not meet the same draw, as it would with the paired ones.
type memoryless struct{ rng *rand.Rand }

func (s memoryless) Fill(b *step.Batch, dst []float64) {
	for i := range b.Handle {
		dst[i] = s.rng.Float64()
	}
}

// randomChain draws a system that the exact chain can hold: M = 2 or 3 models, step times that grow with the batch.
func randomChain(rng *rand.Rand) (m markov.Model, n int, b []int) {
	models := 2 + rng.IntN(2)
	n = 1 + rng.IntN(7)
	if models == 3 {
		n = 1 + rng.IntN(3)
	}
	for i := range models {
		row, keep := make([]float64, models), make([]float64, models)
		sum := 0.
		for j := range row {
			row[j] = .05 + rng.Float64()
			sum += row[j]
			keep[j] = float64(rng.IntN(2))
		}
		for j := range row {
			row[j] /= sum
		}
		keep[i] = 1 // a token that stays is kept
		m.P, m.C = append(m.P, row), append(m.C, keep)
		base, slope := 1+rng.IntN(20), rng.IntN(3)
		times := make([]time.Duration, n)
		for k := range times {
			times[k] = time.Duration(base+slope*k/2) * time.Millisecond
		}
		m.Step = append(m.Step, times)
	}
	for {
		b = nil
		sum := 0
		for range models {
			k := 1 + rng.IntN(min(n, 4))
			b = append(b, k)
			sum += k - 1
		}
		if sum < n {
			return m, n, b
		}
	}
}

// The simulator against the exact chain on 50 random systems: the error is at most 0.5 %, with the 95 % half-width of
// the simulation at most 0.2 %.
func TestExactChain(t *testing.T) {
	long(t)
	rng := rand.New(rand.NewPCG(2026, 12))
	worst, widest, three := 0., 0., 0
	for k := 0; k < 50; k++ {
		m, n, b := randomChain(rng)
		exact, err := markov.Solve(context.Background(), m, n, b, markov.Options{Quantum: time.Millisecond})
		if errors.Is(err, markov.ErrNotConverged) {
			k--
			continue
		}
		if err != nil {
			t.Fatalf("N = %d, B = %v, %+v: %v", n, b, m, err)
		}
		if len(b) == 3 {
			three++
		}
		rate, half := 0., math.Inf(1)
		var rates []float64
		for seed := uint64(1); seed <= 80 && (len(rates) < 8 || half > .0019*rate); seed++ {
			rates = append(rates, simulateChain(t, m, n, b, seed))
			rate, half = metrics.MeanCI(rates)
		}
		if len(rates) < 2 || half > .002*rate {
			t.Errorf("N = %d, B = %v: half-width %.3f %% after %d runs", n, b, 100*half/rate, len(rates))
		}
		e := math.Abs(rate/exact.Throughput - 1)
		worst, widest = max(worst, e), max(widest, half/rate)
		if e > .005 {
			t.Errorf("N = %d, B = %v, P = %v, C = %v: simulated %.4f, exact %.4f: off by %.3f %%", n, b, m.P, m.C, rate, exact.Throughput, 100*e)
		}
	}
	t.Logf("50 systems, %d of them with 3 models: worst error %.3f %%, widest 95 %% half-width %.3f %%", three, 100*worst, 100*widest)
}

// simulateChain is the simulated throughput under one seed, tok/s.
func simulateChain(t *testing.T, m markov.Model, n int, b []int, seed uint64) float64 {
	c := &Config{
		Requests: equal(n, 1, int32(40000/n)), Clients: n, Router: &matrix{p: m.P, c: m.C}, Signal: memoryless{rand.New(rand.NewPCG(seed, 1))},
	}
	for i := range m.P {
		c.Models = append(c.Models, Model{Name: fmt.Sprint(i), Latency: law(func(s step.Shape) time.Duration { return m.StepTime(i, s.Seqs()) })})
	}
	threshold(c, b...)
	return tokensPerSecond(mustRun(t, c))
}
