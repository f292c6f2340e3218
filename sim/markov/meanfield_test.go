package markov

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func mustMeanField(t *testing.T, m Model, n int, b []int) MeanFieldResult {
	t.Helper()
	r, err := MeanField(m, n, b, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Large chains come close to the limit.
func TestMeanFieldIsTheLimit(t *testing.T) {
	for _, p := range []float64{.05, .1, .35, .5} {
		limit := mustMeanField(t, paper(p), 1000, []int{1, 1}).Max / 1000
		last := math.Inf(1)
		for _, n := range []int{8, 24, 64} {
			got := mustSolve(t, paper(p), n, []int{1, 1}, Options{Method: TwoModel}).Throughput / float64(n)
			off := relative(got, limit)
			if off > last+1e-9 {
				t.Errorf("p = %v, N = %d: %v off the limit, smaller N only %v", p, n, off, last)
			}
			last = off
		}
		if last > .002 {
			t.Errorf("p = %v: %v off the limit at N = 64", p, last)
		}
	}
}

// Two cycles of one system, a third apart; the chain is somewhere between.
func TestMeanFieldReportsEveryCycle(t *testing.T) {
	for _, c := range []struct {
		p      float64
		l0, l1 time.Duration
		b      int
		cycles int
	}{
		{.9, time.Millisecond, 4 * time.Millisecond, 16, 2},
		{.5, time.Millisecond, 8 * time.Millisecond, 32, 2},
		{.35, time.Millisecond, 2 * time.Millisecond, 32, 2},
		{.35, paperSmall, paperLarge, 1, 1},
	} {
		m := Model{R2R(c.p), Fixed(c.l0, c.l1)}
		r := mustMeanField(t, m, 64, []int{1, c.b})
		if len(r.Cycles) != c.cycles || r.Min != r.Cycles[0].Throughput || r.Max < r.Cycles[c.cycles-1].Throughput {
			t.Errorf("%+v: %+v", c, r)
		}
		starts := 0
		for _, cycle := range r.Cycles {
			starts += cycle.Starts
		}
		if starts != r.Starts {
			t.Errorf("%+v: cycles have %d starts, of %d", c, starts, r.Starts)
		}
		got := mustSolve(t, m, 64, []int{1, c.b}, Options{Method: TwoModel}).Throughput
		if got < .99*r.Min || got > 1.01*r.Max {
			t.Errorf("%+v: chain %v tok/s, mean field %v to %v", c, got, r.Min, r.Max)
		}
	}
}

// Nothing is random in lockstep: there the recursion is exact.
func TestMeanFieldOfEqualSteps(t *testing.T) {
	want, err := EqualSteps(R2R(.35), 12, paperSmall)
	if err != nil {
		t.Fatal(err)
	}
	r := mustMeanField(t, Model{R2R(.35), Fixed(paperSmall, paperSmall)}, 12, []int{1, 1})
	if relative(r.Max, want) > 1e-6 {
		t.Errorf("%+v, want %v", r, want)
	}
}

// No fluid is lost, and some model always runs.
func TestFluidIsConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 50).Draw(t, "N")
		m := Model{matrices(t, 3), stepTimes(t, 3, n, 9)}
		b := thresholds(t, 3, n)
		g, err := m.grid(n, 0)
		if err != nil {
			t.Fatal(err)
		}
		f := newFluid(m, g, n, b)
		f.begin([]float64{.5, .25, .25}, rapid.Float64Range(.1, 1).Draw(t, "fraction"))
		for range 300 {
			f.advance()
			total, busy := 0.0, false
			for i := range f.left {
				total += f.waiting[i] + f.running[i]
				busy = busy || f.left[i] > 0
			}
			if math.Abs(total-float64(n)) > 1e-9*float64(n) || !busy {
				t.Fatalf("%v of %d requests, busy %v", total, n, busy)
			}
		}
	})
}

func TestMeanFieldErrors(t *testing.T) {
	if _, err := MeanField(paper(2), 8, []int{1, 1}, 0); !errors.Is(err, ErrModel) {
		t.Errorf("model: %v", err)
	}
	if _, err := MeanField(paper(.2), 8, []int{1}, 0); !errors.Is(err, ErrModel) {
		t.Errorf("thresholds: %v", err)
	}
	if _, err := MeanField(paper(.2), 8, []int{1, 9}, 0); !errors.Is(err, ErrInfeasible) {
		t.Errorf("infeasible: %v", err)
	}
	if _, err := MeanField(paper(.2), 8, []int{1, 1}, time.Hour); !errors.Is(err, ErrModel) {
		t.Errorf("quantum: %v", err)
	}
}
