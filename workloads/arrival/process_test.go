package arrival

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trbench/trbench/engine/clock"
)

func parsed(t testing.TB, s string) Spec {
	t.Helper()
	spec, err := Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func times(t testing.TB, s string, n int, seed uint64) []clock.Instant {
	t.Helper()
	at, err := parsed(t, s).Times(n, seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// gaps are the gaps of a process in seconds, the first counted from 0.
func gaps(at []clock.Instant) []float64 {
	g := make([]float64, len(at))
	var last clock.Instant
	for i, a := range at {
		g[i] = a.Sub(last).Seconds()
		last = a
	}
	return g
}

func TestConstantExact(t *testing.T) {
	for i, at := range times(t, "constant:8", 1000, 1) {
		if want := clock.Instant(125_000_000 * (i + 1)); at != want {
			t.Fatalf("arrival %d at %v, want %v", i+1, at, want)
		}
	}
	// A third of a second isn't a number of nanoseconds: the error must not add up.
	if at := times(t, "constant:3", 3_000_000, 1); at[2_999_999] != clock.Instant(1_000_000*time.Second) {
		t.Errorf("three million arrivals at 3 a second take %v, want 1,000,000 s", at[2_999_999])
	}
}

// Mean and coefficient of variation of the gaps lie within five standard errors of what the name says. The seed is
// fixed, so that the test can't flake.
func TestStatistics(t *testing.T) {
	const n = 100_000
	for _, c := range []struct {
		spec     string
		rate, cv float64
	}{
		{"poisson:8", 8, 1},
		{"poisson:0.01", .01, 1},
		{"gamma:8,cv=0.25", 8, .25},
		{"gamma:8,cv=0.5", 8, .5},
		{"gamma:8,cv=1", 8, 1},
		{"gamma:8,cv=2", 8, 2},
		{"gamma:8,cv=4", 8, 4},
	} {
		g := gaps(times(t, c.spec, n, 42))
		var sum, squares float64
		for _, x := range g {
			x = x*c.rate - 1
			sum += x
			squares += x * x
		}
		// Of a gamma variable with mean 1: variance v = cv^2, fourth central moment 3 v^2 + 6 v^3.
		v := c.cv * c.cv
		if off, limit := sum/n, 5*math.Sqrt(v/n); math.Abs(off) > limit {
			t.Errorf("%s: mean gap off by %.2g of itself, limit %.2g", c.spec, off, limit)
		}
		if off, limit := squares/n-v, 5*math.Sqrt((2*v*v+6*v*v*v)/n); math.Abs(off) > limit {
			t.Errorf("%s: squared cv %.4g, want %.4g, limit %.2g", c.spec, squares/n, v, limit)
		}
	}
}

// Counts of a Poisson process in disjoint windows are Poisson: their variance is their mean.
func TestPoissonCounts(t *testing.T) {
	const windows, rate = 20_000, 5.
	counts := make([]float64, windows)
	for _, at := range times(t, "poisson:5", windows*6, 9) {
		if w := int(at.Seconds()); w < windows {
			counts[w]++
		}
	}
	var mean, variance float64
	for _, c := range counts {
		mean += c / windows
	}
	for _, c := range counts {
		variance += (c - mean) * (c - mean) / (windows - 1)
	}
	if math.Abs(mean-rate) > 5*math.Sqrt(rate/windows) ||
		math.Abs(variance/rate-1) > 5*math.Sqrt(2./windows+1/(rate*windows)) {
		t.Errorf("counts a second: mean %.4f, variance %.4f, want %g both", mean, variance, rate)
	}
}

func TestGammaOfCVOneIsPoisson(t *testing.T) {
	if !slices.Equal(times(t, "gamma:8,cv=1", 1000, 5), times(t, "poisson:8", 1000, 5)) {
		t.Error("gamma:8,cv=1 differs from poisson:8")
	}
}

// A ramp has, at every arrival k, an integral of its rate of k, to the rounding of the time.
func TestRampIntegral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Spec{
			Kind: Ramp,
			From: rapid.OneOf(rapid.Just(0.), rapid.Float64Range(.01, 100)).Draw(t, "from"),
			To:   rapid.Float64Range(.01, 100).Draw(t, "to"),
			Over: time.Duration(rapid.Int64Range(1e6, 1e12).Draw(t, "over")),
		}
		at, err := s.Times(300, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range at {
			over := s.Over.Seconds()
			on := min(a.Seconds(), over)
			due := s.From*on + (s.To-s.From)*on*on/(2*over) + s.To*(a.Seconds()-on)
			if k := float64(i + 1); math.Abs(due-k) > 1e-6+1e-9*k {
				t.Fatalf("%s: %v due at arrival %v, at %v", s, due, k, a)
			}
		}
	})
}

func TestRampExact(t *testing.T) {
	// 1..3 over 2 s: 4 due by 2 s, then 3 a second. t + t^2/2 = 1 at sqrt(3) - 1.
	at := times(t, "ramp:1..3,2s", 7, 1)
	root := math.Sqrt(3) - 1
	want := []clock.Instant{
		clock.Instant(math.Round(root * 1e9)), 1236067977, 1645751311, 2000000000, 2333333333, 2666666667, 3000000000,
	}
	if !slices.Equal(at, want) {
		t.Errorf("arrivals %v, want %v", at, want)
	}
	// A flat ramp is a constant rate.
	if !slices.Equal(times(t, "ramp:8..8,3s", 100, 1), times(t, "constant:8", 100, 1)) {
		t.Error("ramp:8..8 differs from constant:8")
	}
	// A falling ramp is a rising one read backwards: 3..1 over 2 s, 3t - t^2/2 = 1 at 3 - sqrt(7).
	if at := times(t, "ramp:3..1,2s", 1, 1); at[0] != clock.Instant(math.Round((3-math.Sqrt(7))*1e9)) {
		t.Errorf("first arrival of ramp:3..1,2s at %v", at[0])
	}
}

func TestTrace(t *testing.T) {
	recorded := []time.Duration{0, time.Second, time.Second, 10 * time.Second}
	at, err := parsed(t, "trace").Times(3, 1, recorded)
	if want := []clock.Instant{0, 1e9, 1e9}; err != nil || !slices.Equal(at, want) {
		t.Errorf("trace: %v, %v; want %v", at, err, want)
	}
	at, err = parsed(t, "trace:2").Times(4, 1, recorded)
	if want := []clock.Instant{0, 5e8, 5e8, 5e9}; err != nil || !slices.Equal(at, want) {
		t.Errorf("trace:2: %v, %v; want %v", at, err, want)
	}
}

func TestTimesErrors(t *testing.T) {
	for _, c := range []struct {
		spec     Spec
		n        int
		recorded []time.Duration
		want     string
	}{
		{Spec{Kind: Closed}, 1, nil, ErrClosed.Error()},
		{Spec{Kind: Trace, Scale: 1}, 1, nil, ErrNoArrivals.Error()},
		{Spec{Kind: Trace, Scale: 1}, 3, []time.Duration{1, 2}, "found 2 recorded arrivals, wanted 3"},
		{Spec{Kind: Trace, Scale: 1}, 2, []time.Duration{2, 1}, "recorded arrival 2 is at 1ns, before 2ns: wanted"},
		{Spec{Kind: Trace, Scale: 1e-9}, 1, []time.Duration{time.Hour * 1e6}, "would arrive after 292 years"},
		{Spec{Kind: Constant, Rate: 1e-12}, 2, nil, "request 1 of 2 would arrive after 292 years"},
		{Spec{Kind: Poisson}, 1, nil, "found 0 as the rate"},
		{Spec{}, 1, nil, "unknown kind"},
	} {
		if _, err := c.spec.Times(c.n, 1, c.recorded); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.spec, err, c.want)
		}
	}
	_, err := Spec{Kind: Trace, Scale: 1}.Start(1, nil)
	if !errors.Is(err, ErrNoArrivals) {
		t.Errorf("replay of nothing: %v", err)
	}
}

// Times are a function of spec and seed: a longer list begins with the shorter, another seed differs, twice the rate
// halves them, and they never fall.
func TestPaired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		rate := rapid.Float64Range(.1, 100).Draw(t, "rate")
		s := Spec{Kind: Poisson, Rate: rate}
		if cv := rapid.Float64Range(.1, 5).Draw(t, "cv"); rapid.Bool().Draw(t, "gamma") {
			s.Kind, s.CV = Gamma, cv
		}
		long, err := s.Times(100, seed, nil)
		if err != nil {
			t.Fatal(err)
		}
		short, _ := s.Times(40, seed, nil)
		if !slices.Equal(long[:40], short) {
			t.Fatal("a longer list doesn't begin with the shorter")
		}
		if !slices.IsSorted(long) {
			t.Fatal("times fall")
		}
		if other, _ := s.Times(100, seed+1, nil); slices.Equal(other, long) {
			t.Fatal("another seed gives the same times")
		}
		s.Rate *= 2
		twice, _ := s.Times(100, seed, nil)
		for i := range twice {
			if d := long[i] - 2*twice[i]; d < -1 || d > 1 {
				t.Fatalf("arrival %d at %v, at twice the rate at %v", i+1, long[i], twice[i])
			}
		}
	})
}

func BenchmarkTimes(b *testing.B) {
	for _, s := range []string{"poisson:8", "gamma:8,cv=2", "ramp:1..8,60s"} {
		spec := parsed(b, s)
		b.Run(s, func(b *testing.B) {
			for b.Loop() {
				if _, err := spec.Times(10_000, 1, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
