package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/results"
)

// law is a latency model made of a function.
type law func(step.Shape) time.Duration

func (l law) StepTime(s step.Shape) time.Duration { return l(s) }

// waits runs one model over single-token requests and returns each one's time in the system.
func waits(t *testing.T, c *Config) []float64 {
	t.Helper()
	w := make([]float64, len(c.Requests))
	n := 0
	c.Topology = Single
	c.Ended = func(r *results.Request) {
		e2e, _ := r.E2E()
		w[r.ID] = e2e.Seconds() * 1e3
		n++
	}
	if _, err := Run(context.Background(), c); err != nil && !errors.Is(err, ErrStranded) {
		t.Fatal(err)
	}
	return w[:n]
}

// meanCI is the mean and the half-width of its 99.9 % interval, by batch means: queueing times are correlated.
func meanCI(x []float64) (mean, half float64) {
	const batches = 40
	var means []float64
	for b := range batches {
		part := x[b*len(x)/batches : (b+1)*len(x)/batches]
		s := 0.
		for _, v := range part {
			s += v
		}
		means = append(means, s/float64(len(part)))
		mean += means[b] / batches
	}
	v := 0.
	for _, m := range means {
		v += (m - mean) * (m - mean)
	}
	return mean, 3.56 * math.Sqrt(v/(batches-1)/batches) // t(39) at 99.95 %
}

// Lindley's recursion, request by request: a G/G/1 queue waits W_k = max(0, W_{k-1} + S_{k-1} - A_k).
func TestLindley(t *testing.T) {
	const n = 20000
	at := poisson(n, 500, 3)
	requests := make([]Request, n)
	service := make([]time.Duration, n)
	for i := range requests {
		requests[i] = Request{Prompt: int32(1 + (i*7919)%97), Output: 1}
		service[i] = time.Duration(requests[i].Prompt) * 28900
	}
	c := &Config{Requests: requests, Arrivals: at, Check: false, Models: []Model{{
		Latency: law(func(s step.Shape) time.Duration { return time.Duration(s.ExtendTokens) * 28900 }),
		Policy:  core.Policy{MaxBatch: 1},
	}}}
	got := waits(t, c)
	var w time.Duration
	for k := range n {
		if k > 0 {
			w = max(0, w+service[k-1]-at[k].Sub(at[k-1]))
		}
		if want := (w + service[k]).Seconds() * 1e3; got[k] != want {
			t.Fatalf("request %d: %v ms in the system, Lindley says %v", k, got[k], want)
		}
	}
}

// M/D/1: Wq = rho S / (2 (1 - rho)) (Pollaczek-Khinchine with E[S^2] = S^2).
func TestMD1(t *testing.T) {
	long(t)
	const s = 2.0 // ms
	for _, rho := range []float64{.3, .6, .8} {
		n := 150000
		c := &Config{Requests: equal(n, 1, 1), Arrivals: poisson(n, rho/s*1e3, 17), Models: []Model{{
			Latency: latency.Constant(2 * time.Millisecond), Policy: core.Policy{MaxBatch: 1},
		}}}
		mean, half := meanCI(waits(t, c))
		want := s + rho*s/(2*(1-rho))
		if math.Abs(mean-want) > half {
			t.Errorf("rho %v: %.4f +- %.4f ms, want %.4f", rho, mean, half, want)
		}
	}
}

// Take-all batch service with tau(b) = alpha b + tau0 against the exact mean time in the system.
func TestBulkService(t *testing.T) {
	long(t)
	const alpha, tau0 = .1438, 1.8874
	for rho, want := range map[float64]float64{.3: 4.2248, .5: 5.9019, .7: 9.8176} {
		n := 300000
		c := &Config{Requests: equal(n, 1, 1), Arrivals: poisson(n, rho/alpha*1e3, 23), Models: []Model{{
			Latency: law(func(s step.Shape) time.Duration { return time.Duration((alpha*float64(s.Seqs()) + tau0) * 1e6) }),
			Policy:  core.Policy{MaxBatch: 10000, TokenBudget: 10000},
		}}}
		mean, half := meanCI(waits(t, c))
		if math.Abs(mean-want) > half || half > .05*want {
			t.Errorf("rho %v: %.4f +- %.4f, want %.4f", rho, mean, half, want)
		}
	}
}

// General bulk service [a, b] with deterministic tau(j) = .4 j + 55, b = 8, lambda = .1.
func TestGeneralBulkService(t *testing.T) {
	long(t)
	for a, want := range map[int32]float64{1: 90.535, 3: 90.336, 5: 90.784, 8: 97.831} {
		n := 200000
		c := &Config{Requests: equal(n, 1, 1), Arrivals: poisson(n, 100, 29), Models: []Model{{
			Latency: law(func(s step.Shape) time.Duration { return time.Duration((.4*float64(s.Seqs()) + 55) * 1e6) }),
			Policy:  core.Policy{MaxBatch: 8, Threshold: []int32{a}},
		}}}
		mean, half := meanCI(waits(t, c))
		if math.Abs(mean-want) > half || half > .03*want {
			t.Errorf("a = %d: %.3f +- %.3f, want %.3f", a, mean, half, want)
		}
	}
}

// Little's law: the integral over time of the number of active requests, as the scheduler counts them, is the sum of
// the times in the system, as the records have them: exactly, over a run that starts and ends empty.
func TestLittle(t *testing.T) {
	for _, topology := range []Topology{TokenRouter, RPC, StepSync} {
		t.Run(fmt.Sprint(topology), func(t *testing.T) {
			at := poisson(3000, 30, 5)
			var inSystem, integral time.Duration
			c := &Config{Topology: topology, Models: constants(small, 9*time.Millisecond), Requests: equal(len(at), 10, 6), Arrivals: at}
			c.RPC = RPCCosts{RTT: time.Millisecond, Dispatch: 50 * time.Microsecond}
			routed(t, c, "r2r", 1, 0, .2)
			c.Ended = func(r *results.Request) {
				e2e, _ := r.E2E()
				inSystem += e2e
			}
			w := newWorld(c)
			w.open()
			for w.queue.Len() > 0 {
				last, n := w.now, w.active
				if err := w.advance(); err != nil {
					t.Fatal(err)
				}
				integral += time.Duration(n) * w.now.Sub(last)
			}
			if integral != inSystem || w.ended != len(at) {
				t.Errorf("integral of N is %v, the times in the system sum to %v; %d of %d ended", integral, inSystem, w.ended, len(at))
			}
		})
	}
}
