package markov

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	paperSmall = 6 * time.Millisecond
	paperLarge = 27900 * time.Microsecond
)

func within(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(relative(got, want) <= tolerance) {
		t.Errorf("%s: %.12g, want %.12g", what, got, want)
	}
}

func TestSingleRequest(t *testing.T) {
	for _, p := range []float64{.01, .1, .276, .35, 1} {
		want := 1 / (.006 + p*.0279)
		got, err := SingleRequest(paper(p))
		if err != nil {
			t.Fatal(err)
		}
		within(t, "closed form", got, want, 1e-12)
		within(t, "chain", mustSolve(t, paper(p), 1, []int{1, 1}, Options{}).Throughput, want, 1e-12)
	}
	// The published 73.02 tok/s with 6.0 / 27.9 ms means p = .276.
	got, _ := SingleRequest(paper(.276))
	within(t, "published N = 1", got, 73.02, 1e-3)
}

func TestSingleRequestOfAnyAlgorithm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Model{matrices(t, 3), stepTimes(t, 3, 1, 40)}
		want, err := SingleRequest(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Solve(t.Context(), m, 1, []int{1, 1, 1}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if relative(got.Throughput, want) > 1e-12 {
			t.Errorf("chain %v, closed form %v", got.Throughput, want)
		}
	})
}

func TestGatherAll(t *testing.T) {
	for _, p := range []float64{.05, .1, .35, .9, 1} {
		for _, n := range []int{1, 2, 4, 16} {
			want, err := GatherAll(p, n, paperSmall, paperLarge)
			if err != nil {
				t.Fatal(err)
			}
			for _, method := range []Method{Auto, TwoModel} {
				got := mustSolve(t, paper(p), n, []int{1, n}, Options{Method: method})
				within(t, string(method), got.Throughput, want, 1e-11)
			}
		}
	}
	got, _ := GatherAll(.1, 32, paperSmall, paperLarge)
	within(t, "overshoot", got, 1221.3, 1e-4)
	got, _ = GatherAll(0, 4, paperSmall, paperLarge)
	within(t, "nobody leaves", got, 4/.006, 1e-15)
}

// The formula for small p meets the sum where both apply.
func TestLongestGeometric(t *testing.T) {
	for _, n := range []int{1, 2, 3, 64} {
		sum := 0.0
		const p = 9e-4
		for k := 0; k < 200_000; k++ {
			sum += -math.Expm1(float64(n) * math.Log1p(-math.Pow(1-p, float64(k))))
		}
		within(t, "sum", longestGeometric(p, n), sum, 1e-9)
	}
	within(t, "one", longestGeometric(1, 5), 1, 1e-15)
}

func TestEqualSteps(t *testing.T) {
	for _, p := range []float64{.1, .35, .8} {
		for _, n := range []int{1, 3, 8} {
			want := float64(n) / (.006 * (1 + p))
			got, err := EqualSteps(R2R(p), n, paperSmall)
			if err != nil {
				t.Fatal(err)
			}
			within(t, "closed form", got, want, 1e-12)
			m := Model{R2R(p), Fixed(paperSmall, paperSmall)}
			within(t, "chain", mustSolve(t, m, n, []int{1, 1}, Options{}).Throughput, want, 1e-11)
		}
	}
	want, _ := EqualSteps(ME(5, 3, 2), 5, paperSmall)
	m := Model{ME(5, 3, 2), Fixed(paperSmall, paperSmall, paperSmall)}
	within(t, "three models", mustSolve(t, m, 5, []int{1, 1, 1}, Options{}).Throughput, want, 1e-11)
}

// The paper's figures for the barrier: 138 and 242 tok/s at N = 4 and 8.
func TestStepSync(t *testing.T) {
	for _, c := range []struct {
		n    int
		want float64
	}{{4, 138}, {8, 242}} {
		got, err := StepSync(.35, c.n, paperSmall, paperLarge)
		if err != nil {
			t.Fatal(err)
		}
		if math.Round(got) != c.want {
			t.Errorf("N = %d: %v tok/s, want %v", c.n, got, c.want)
		}
	}
	sync, _ := StepSync(.35, 1, paperSmall, paperLarge)
	single, _ := SingleRequest(paper(.35))
	within(t, "N = 1 knows no barrier", sync, single, 1e-12)
	sync, _ = StepSync(1, 7, paperSmall, paperLarge)
	within(t, "p = 1", sync, 7/.0339, 1e-12)
}

// No vector beats the bound.
func TestUpperBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "N")
		m := Model{matrices(t, 3), stepTimes(t, 3, n, 6)}
		bound, err := UpperBound(m, n)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Solve(t.Context(), m, n, thresholds(t, 3, n), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if r.Throughput > bound*(1+1e-12) {
			t.Errorf("%v tok/s, bound %v", r.Throughput, bound)
		}
	})
	got, _ := UpperBound(paper(.35), 4)
	within(t, "R2R", got, 4/(.006+.35*.0279), 1e-12)
}

func TestLargeNEager(t *testing.T) {
	got, err := LargeNEager(.35, 64, paperSmall, paperLarge)
	if err != nil {
		t.Fatal(err)
	}
	within(t, "N = 64", got, 2923.3746, .01)
}

func TestVisits(t *testing.T) {
	v, err := R2R(.25).Visits()
	if err != nil || relative(v[0], .8) > 1e-15 || relative(v[1], .2) > 1e-14 {
		t.Errorf("%v, %v: want .8, .2", v, err)
	}
	// Model 0 is left for ever.
	v, err = Routing{P: [][]float64{{0, 1}, {0, 1}}, C: [][]float64{{1, 1}, {1, 1}}}.Visits()
	if err != nil || v[0] != 0 || v[1] != 1 {
		t.Errorf("%v, %v: want 0, 1", v, err)
	}
	_, err = Routing{
		P: [][]float64{{0, .5, .5}, {0, 1, 0}, {0, 0, 1}}, C: [][]float64{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
	}.Visits()
	if !errors.Is(err, ErrReducible) {
		t.Errorf("error %v", err)
	}
}

func TestClosedFormErrors(t *testing.T) {
	for _, p := range []float64{-.1, 1.1, math.NaN()} {
		if _, err := GatherAll(p, 2, paperSmall, paperLarge); !errors.Is(err, ErrModel) {
			t.Errorf("GatherAll(%v): %v", p, err)
		}
		if _, err := StepSync(p, 2, paperSmall, paperLarge); !errors.Is(err, ErrModel) {
			t.Errorf("StepSync(%v): %v", p, err)
		}
		if _, err := LargeNEager(p, 2, paperSmall, paperLarge); !errors.Is(err, ErrModel) {
			t.Errorf("LargeNEager(%v): %v", p, err)
		}
		if _, err := SingleRequest(paper(p)); !errors.Is(err, ErrModel) {
			t.Errorf("SingleRequest(%v): %v", p, err)
		}
	}
	if _, err := UpperBound(paper(.3), 0); !errors.Is(err, ErrModel) {
		t.Error("no requests")
	}
	if _, err := GatherAll(.3, 2, 0, paperLarge); !errors.Is(err, ErrModel) {
		t.Error("no step time")
	}
}
