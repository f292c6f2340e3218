package markov

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func mustBest(t *testing.T, m Model, n int, search Search, o Options) Optimum {
	t.Helper()
	best, err := Best(t.Context(), m, n, search, o)
	if err != nil {
		t.Fatal(err)
	}
	return best
}

// The paper's optimum at N = 2, 3, 4, and the gains over eager that the reference study measured.
func TestBestThresholds(t *testing.T) {
	for _, c := range []struct {
		p    float64
		n    int
		b    []int
		gain float64
	}{
		{.35, 1, []int{1, 1}, 0}, {.35, 2, []int{1, 2}, .115}, {.35, 3, []int{1, 2}, .111},
		{.35, 4, []int{1, 3}, .11}, {.35, 8, []int{1, 5}, .08}, {.35, 16, []int{1, 10}, .06},
		{.5, 4, []int{1, 3}, .21}, {.5, 8, []int{1, 6}, .18}, {.5, 16, []int{1, 12}, .16},
		{.2, 4, []int{1, 2}, .03}, {.2, 8, []int{1, 3}, .023}, {.2, 16, []int{1, 6}, .014},
		{.1, 4, []int{1, 1}, 0}, {.1, 8, []int{1, 2}, .015}, {.1, 16, []int{1, 4}, .012},
		{.05, 4, []int{1, 1}, 0}, {.05, 8, []int{1, 1}, 0}, {.05, 16, []int{1, 3}, .0065},
		{.02, 8, []int{1, 1}, 0}, {0, 8, []int{1, 1}, 0},
	} {
		best := mustBest(t, paper(c.p), c.n, SmallEager, Options{})
		if !slices.Equal(best.Threshold, c.b) || math.Abs(best.Gain()-c.gain) > .006 {
			t.Errorf("p = %v, N = %d: best %v, %.4f over eager; want %v, %v", c.p, c.n, best.Threshold, best.Gain(), c.b, c.gain)
		}
		bound, err := UpperBound(paper(c.p), c.n)
		if err != nil {
			t.Fatal(err)
		}
		if best.Throughput > bound*(1+1e-12) {
			t.Errorf("p = %v, N = %d: %v tok/s, above the bound of %v", c.p, c.n, best.Throughput, bound)
		}
	}
}

// Overshooting is costly: with 12 / 55 ms, p = .1 and N = 32, gathering all requests takes 1,542 tok/s to 612.
func TestOvershoot(t *testing.T) {
	best := mustBest(t, Model{R2R(.1), Fixed(12*time.Millisecond, 55*time.Millisecond)}, 32, SmallEager, Options{})
	if gather := best.Curve[31].Throughput; math.Round(best.Eager) != 1542 || math.Round(gather) != 612 {
		t.Errorf("eager %v tok/s, B = N %v; want 1542, 612", best.Eager, gather)
	}
}

// From N = 50 on the eager plateau is a second local maximum: a climb from B = 1 would stay on it.
func TestCurveHasTwoMaxima(t *testing.T) {
	if testing.Short() {
		t.Skip("52 chains")
	}
	best := mustBest(t, paper(.35), 52, SmallEager, Options{})
	if !slices.Equal(best.Threshold, []int{1, 33}) {
		t.Errorf("best %v, want [1 33]", best.Threshold)
	}
	if second := best.Curve[1].Throughput; second > best.Eager*(1+1e-12) {
		t.Errorf("B_1 = 2 makes %v tok/s, eager %v: no plateau", second, best.Eager)
	}
}

func TestFullSearch(t *testing.T) {
	for _, n := range []int{2, 3, 5, 8} {
		small := mustBest(t, paper(.35), n, SmallEager, Options{})
		full := mustBest(t, paper(.35), n, Full, Options{})
		if len(full.Curve) != n*(n+1)/2 || len(small.Curve) != n {
			t.Errorf("N = %d: %d and %d vectors, want %d and %d", n, len(small.Curve), len(full.Curve), n, n*(n+1)/2)
		}
		if full.Throughput < small.Throughput*(1-1e-9) || full.Eager != small.Eager {
			t.Errorf("N = %d: full search %v, with B_0 = 1 %v", n, full.Throughput, small.Throughput)
		}
	}
	three := mustBest(t, Model{ME(.5, .3, .2), Fixed(6*time.Millisecond, 12*time.Millisecond, 28*time.Millisecond)}, 4,
		Full, Options{Quantum: time.Millisecond})
	if len(three.Curve) != 20 {
		t.Errorf("%d vectors for three models and N = 4, want 20", len(three.Curve))
	}
	for _, p := range three.Curve {
		if p.Throughput > three.Throughput*(1+1e-9) {
			t.Errorf("%v beats the best, %v", p, three.Threshold)
		}
	}
}

// What a search returns does not depend on how many search, nor on the solver.
func TestBestIsDeterministic(t *testing.T) {
	want := mustBest(t, paper(.2), 20, SmallEager, Options{Workers: 1})
	for _, workers := range []int{2, 3, 7, 100} {
		got := mustBest(t, paper(.2), 20, SmallEager, Options{Workers: workers})
		if !slices.EqualFunc(got.Curve, want.Curve, func(a, b Point) bool {
			return slices.Equal(a.Threshold, b.Threshold) && a.Throughput == b.Throughput
		}) {
			t.Errorf("%d workers: %v, one: %v", workers, got.Curve, want.Curve)
		}
	}
	swept := mustBest(t, paper(.2), 20, SmallEager, Options{Method: Direct})
	for i, p := range swept.Curve {
		if relative(p.Throughput, want.Curve[i].Throughput) > 1e-9 {
			t.Errorf("%v: %v tok/s by elimination, %v by two-model", p.Threshold, p.Throughput, want.Curve[i].Throughput)
		}
	}
}

func TestSeededFindsTheOptimum(t *testing.T) {
	for _, p := range []float64{.05, .1, .2, .35, .5} {
		for _, n := range []int{1, 2, 5, 12, 24} {
			want := mustBest(t, paper(p), n, SmallEager, Options{})
			got := mustBest(t, paper(p), n, Seeded, Options{})
			if relative(got.Throughput, want.Throughput) > 1e-9 {
				t.Errorf("p = %v, N = %d: %v, exhaustive %v", p, n, got.Threshold, want.Threshold)
			}
		}
	}
}

// Bounds and prices: every feasible vector is enumerated, once, in order, and no other.
func TestFeasibleThresholds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, n := rapid.IntRange(2, 4).Draw(t, "models"), rapid.IntRange(1, 6).Draw(t, "N")
		small := rapid.Bool().Draw(t, "small eager")
		var got [][]int
		for b := range feasibleThresholds(m, n, small) {
			got = append(got, slices.Clone(b))
		}
		var want [][]int
		b := eager(m)
		for {
			if Feasible(b, n) == nil && (!small || b[0] == 1) {
				want = append(want, slices.Clone(b))
			}
			i := m - 1
			for i >= 0 && b[i] == n {
				b[i] = 1
				i--
			}
			if i < 0 {
				break
			}
			b[i]++
		}
		if !slices.EqualFunc(got, want, slices.Equal[[]int]) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

func TestBestErrors(t *testing.T) {
	if _, err := Best(t.Context(), paper(.3), 4, "lucky", Options{}); !errors.Is(err, ErrMethod) {
		t.Errorf("unknown search: %v", err)
	}
	if _, err := Best(t.Context(), paper(3), 4, Full, Options{}); !errors.Is(err, ErrModel) {
		t.Errorf("bad model: %v", err)
	}
	_, err := Best(t.Context(), three(), 24, SmallEager, Options{MaxBytes: 1 << 20})
	if !errors.Is(err, ErrTooLarge) || !strings.HasPrefix(err.Error(), "at N = 24, B = [1 1 1]") {
		t.Errorf("too large: %v", err)
	}
}
