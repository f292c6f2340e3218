package markov

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// paper is the paper's pair under R2R.
func paper(p float64) Model { return Model{R2R(p), paperSteps()} }

// golden are the throughputs of the paper's appendix D, to four decimals, by N and B_1.
var golden = []struct {
	n, b int
	want float64
}{
	{2, 1, 98.9569}, {2, 2, 110.3227},
	{3, 1, 142.3388}, {3, 2, 158.1171}, {3, 3, 151.8913},
	{4, 1, 187.1897}, {4, 2, 195.4391}, {4, 3, 207.9540}, {4, 4, 190.7422},
}

func mustSolve(t *testing.T, m Model, n int, b []int, o Options) Result {
	t.Helper()
	r, err := Solve(t.Context(), m, n, b, o)
	if err != nil {
		t.Fatalf("N = %d, B = %v: %v", n, b, err)
	}
	return r
}

func TestGolden(t *testing.T) {
	for _, c := range golden {
		for _, method := range []Method{Auto, Sweeps, Direct, TwoModel, Dense} {
			for _, quantum := range []time.Duration{0, 100 * time.Microsecond, 300 * time.Microsecond} {
				r := mustSolve(t, paper(.35), c.n, []int{1, c.b}, Options{Method: method, Quantum: quantum})
				if math.Abs(r.Throughput-c.want) > 5e-5 {
					t.Errorf("N = %d, B_1 = %d, %q: %.4f tok/s, want %.4f", c.n, c.b, method, r.Throughput, c.want)
				}
				if r.Quantum != 300*time.Microsecond || r.Rounding != 0 {
					t.Errorf("quantum %v, rounding %v: want 300µs, the common divisor, and 0", r.Quantum, r.Rounding)
				}
			}
		}
	}
}

func TestStateCounts(t *testing.T) {
	for _, c := range []struct{ n, b, states int }{
		{4, 1, 715}, {16, 1, 14257}, {64, 1, 228265}, {64, 4, 203047}, {64, 16, 109465}, {64, 32, 2833},
	} {
		if c.n > 16 && c.b < 32 && testing.Short() {
			continue
		}
		m := paper(.35)
		g, err := m.grid(c.n, 0)
		if err != nil {
			t.Fatal(err)
		}
		chain, err := build(t.Context(), g, m.Routing, []int{1, c.b}, c.n, DefaultMaxBytes)
		if err != nil {
			t.Fatal(err)
		}
		if chain.states() != c.states {
			t.Errorf("N = %d, B_1 = %d: %d states, want %d", c.n, c.b, chain.states(), c.states)
		}
	}
}

// The quantum is a matter of notation: one three times finer gives the same chain, to the bit.
func TestQuantumIsNotation(t *testing.T) {
	for _, method := range []Method{Auto, TwoModel} {
		a := mustSolve(t, paper(.35), 6, []int{1, 2}, Options{Quantum: 300 * time.Microsecond, Method: method})
		b := mustSolve(t, paper(.35), 6, []int{1, 2}, Options{Quantum: 100 * time.Microsecond, Method: method})
		if a.Throughput != b.Throughput || a.States != b.States {
			t.Errorf("%q: %v and %v tok/s over %d and %d states", method, a.Throughput, b.Throughput, a.States, b.States)
		}
	}
}

// Both solvers share the definition and nothing else.
func TestTwoModelMatchesAnyModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "N")
		chance := rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 1, .5, 1e-3, .999}))
		p, q := chance.Draw(t, "P01"), chance.Draw(t, "P10")
		commit := rapid.Float64Range(0, 2)
		ms := func(most int) time.Duration {
			return time.Duration(rapid.IntRange(1, most).Draw(t, "ms")) * time.Millisecond
		}
		m := Model{
			Routing{
				P: [][]float64{{1 - p, p}, {q, 1 - q}},
				C: [][]float64{{commit.Draw(t, "c"), commit.Draw(t, "c")}, {commit.Draw(t, "c"), commit.Draw(t, "c")}},
			},
			Fixed(ms(15), ms(60)),
		}
		b := []int{1, rapid.IntRange(1, n).Draw(t, "B1")}
		x, err := Solve(t.Context(), m, n, b, Options{})
		if err != nil {
			t.Fatal(err)
		}
		y, err := Solve(t.Context(), m, n, b, Options{Method: TwoModel})
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, x, y float64) {
			if relative(x, y) > 1e-9 {
				t.Errorf("%s: %.12g by any-model, %.12g by two-model", what, x, y)
			}
		}
		check("throughput", x.Throughput, y.Throughput)
		for i := range 2 {
			check(fmt.Sprintf("busy[%d]", i), x.Busy[i], y.Busy[i])
			check(fmt.Sprintf("batch[%d]", i), x.MeanBatch[i], y.MeanBatch[i])
		}
	})
}

// Where all step times are equal to those of the paper but N is large, both solvers iterate; they agree all the same.
func TestSolversAgreeWhenTheyIterate(t *testing.T) {
	for _, c := range []struct {
		p    float64
		n, b int
	}{{.35, 30, 1}, {.1, 30, 7}, {.35, 64, 32}, {.5, 40, 12}, {.9, 28, 3}, {.95, 32, 1}} {
		x := mustSolve(t, paper(c.p), c.n, []int{1, c.b}, Options{})
		y := mustSolve(t, paper(c.p), c.n, []int{1, c.b}, Options{Method: TwoModel})
		if relative(x.Throughput, y.Throughput) > 1e-9 || relative(x.MeanBatch[0], y.MeanBatch[0]) > 1e-8 {
			t.Errorf("p = %v, N = %d, B_1 = %d: %.12g and %.12g tok/s, batches %v and %v",
				c.p, c.n, c.b, x.Throughput, y.Throughput, x.MeanBatch, y.MeanBatch)
		}
	}
}

// slowCase is a chain that sits for very long in parts of its state space: plain sweeps stall on it, up to 5 % off.
type slowCase struct {
	n, b   int
	p      float64
	l0, l1 int // ms
}

func (c slowCase) model() Model {
	return Model{R2R(c.p), Fixed(time.Duration(c.l0)*time.Millisecond, time.Duration(c.l1)*time.Millisecond)}
}

var slow = []slowCase{
	{3, 1, .948, 6, 14}, {7, 1, .817, 3, 20}, {6, 2, .679, 4, 40}, {9, 1, .855, 12, 60}, {3, 1, .374, 2, 41},
	{10, 3, .938, 10, 54}, {4, 1, .9, 60, 279}, {5, 1, .35, 22, 244}, {3, 1, .999, 6, 14}, {5, 2, .99, 7, 90},
	{3, 1, .999999, 6, 14}, {4, 2, .9999, 5, 21},
}

func TestSlowChainsAreRight(t *testing.T) {
	for _, c := range slow {
		want := mustSolve(t, c.model(), c.n, []int{1, c.b}, Options{Method: Dense})
		for _, method := range []Method{Auto, Direct, TwoModel} {
			got := mustSolve(t, c.model(), c.n, []int{1, c.b}, Options{Method: method})
			if relative(got.Throughput, want.Throughput) > 1e-9 {
				t.Errorf("%+v by %q: %.12g tok/s, elimination of all states says %.12g", c, method, got.Throughput, want.Throughput)
			}
			for i := range 2 {
				if math.Abs(got.Busy[i]-want.Busy[i]) > 1e-9 || relative(got.MeanBatch[i], want.MeanBatch[i]) > 1e-9 {
					t.Errorf("%+v by %q: busy %v, batches %v; want %v, %v",
						c, method, got.Busy, got.MeanBatch, want.Busy, want.MeanBatch)
				}
			}
		}
	}
}

// However early the sweeps are stopped, what they return is right and what they can't prove is an error.
func TestSweepsNeverReturnAWrongFigure(t *testing.T) {
	gaveUp := 0
	for _, c := range slow {
		want := mustSolve(t, c.model(), c.n, []int{1, c.b}, Options{Method: Dense})
		for _, sweeps := range []int{1, 3, 10, 30, 100, 300} {
			got, err := Solve(t.Context(), c.model(), c.n, []int{1, c.b}, Options{Method: Sweeps, MaxSweeps: sweeps})
			var stuck *NotConvergedError
			switch {
			case errors.As(err, &stuck):
				gaveUp++
				if !errors.Is(err, ErrNotConverged) || got.Throughput != 0 {
					t.Errorf("%+v: error %v with a figure of %v", c, err, got.Throughput)
				}
				if want.Throughput < stuck.Lower*(1-1e-9) || want.Throughput > stuck.Upper*(1+1e-9) {
					t.Errorf("%+v after %d: %v tok/s is not within %v", c, sweeps, want.Throughput, stuck)
				}
			case err != nil:
				t.Fatal(err)
			case relative(got.Throughput, want.Throughput) > 1e-8:
				t.Errorf("%+v after %d sweeps: %v tok/s, want %v or an error", c, sweeps, got.Throughput, want.Throughput)
			case got.Busy != nil && math.Abs(got.Busy[0]-want.Busy[0]) > 1e-6:
				t.Errorf("%+v after %d sweeps: busy %v, want %v or nothing", c, sweeps, got.Busy, want.Busy)
			}
		}
	}
	if gaveUp < 2*len(slow) {
		t.Errorf("%d times not converged: the chains are not as slow as they should be", gaveUp)
	}
}

// The plain iteration, without its proof, is wrong on such a chain: this is what the bracket is for.
func TestSmallResidualProvesNothing(t *testing.T) {
	c := slowCase{10, 3, .938, 10, 54}
	m := c.model()
	g, err := m.grid(c.n, 0)
	if err != nil {
		t.Fatal(err)
	}
	chain, err := build(t.Context(), g, m.Routing, []int{1, c.b}, c.n, DefaultMaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	s := newSweeper(chain)
	x := make([]float64, s.heads())
	s.start(x)
	var e estimate
	for range 40 {
		e.take(s.forward(x, negligible))
	}
	e.mass = x
	want := mustSolve(t, m, c.n, []int{1, c.b}, Options{Method: Dense}).Throughput
	if got := e.rate / g.quantum.Seconds(); relative(got, want) < .003 {
		t.Errorf("40 plain sweeps: %v tok/s, true %v: no longer an example", got, want)
	}
	b, _, err := bracket(t.Context(), s, e, false, 1e-10, 3)
	if err != nil {
		t.Fatal(err)
	}
	if b[0].met(1e-3) {
		t.Errorf("bounds %v after three passes, true %v: too good", b[0], want*g.quantum.Seconds())
	}
}

// Three models, batch-dependent steps: too many heads for elimination to be the first choice, and few enough for the
// oracle.
func TestSlowThreeModels(t *testing.T) {
	routing := Routing{
		P: [][]float64{{.01, .98, .01}, {.01, .01, .98}, {.98, .01, .01}},
		C: [][]float64{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
	}
	m := Model{routing, Fixed(3*time.Millisecond, 5*time.Millisecond, 9*time.Millisecond)}
	want := mustSolve(t, m, 4, []int{1, 1, 1}, Options{Method: Dense})
	for _, method := range []Method{Auto, Sweeps, Direct} {
		got := mustSolve(t, m, 4, []int{1, 1, 1}, Options{Method: method})
		if relative(got.Throughput, want.Throughput) > 1e-9 {
			t.Errorf("%q: %.12g tok/s, want %.12g", method, got.Throughput, want.Throughput)
		}
	}
}

// Numbering the models otherwise changes nothing but the numbering.
func TestPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "N")
		m := Model{matrices(t, 3), stepTimes(t, 3, n, 6)}
		b := thresholds(t, 3, n)
		to := rapid.Permutation([]int{0, 1, 2}).Draw(t, "order")
		q := Model{Routing{P: make([][]float64, 3), C: make([][]float64, 3)}, make([][]time.Duration, 3)}
		b2 := make([]int, 3)
		for i := range 3 {
			q.P[to[i]], q.C[to[i]] = make([]float64, 3), make([]float64, 3)
			for j := range 3 {
				q.P[to[i]][to[j]], q.C[to[i]][to[j]] = m.P[i][j], m.C[i][j]
			}
			q.Step[to[i]], b2[to[i]] = m.Step[i], b[i]
		}
		x, err := Solve(t.Context(), m, n, b, Options{})
		if errors.Is(err, ErrReducible) { // where it starts then matters
			t.Skip()
		}
		if err != nil {
			t.Fatal(err)
		}
		y, err := Solve(t.Context(), q, n, b2, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if relative(y.Throughput, x.Throughput) > 1e-9 {
			t.Errorf("%.12g tok/s, relabelled by %v %.12g", x.Throughput, to, y.Throughput)
		}
	})
}

// A model that nobody visits changes nothing.
func TestIdleModelChangesNothing(t *testing.T) {
	want := mustSolve(t, paper(.35), 5, []int{1, 2}, Options{})
	with := Model{
		Routing{
			P: [][]float64{{.65, .35, 0}, {1, 0, 0}, {1, 0, 0}},
			C: [][]float64{{1, 0, 0}, {1, 0, 0}, {1, 0, 0}},
		},
		append(paperSteps(), []time.Duration{time.Millisecond}),
	}
	got := mustSolve(t, with, 5, []int{1, 2, 1}, Options{})
	if relative(got.Throughput, want.Throughput) > 1e-12 || got.Busy[2] != 0 || got.MeanBatch[2] != 0 {
		t.Errorf("%+v, want the throughput of %+v and an idle third model", got, want)
	}
}

// Where no token is ever committed the throughput is 0, and no error.
func TestNoTokens(t *testing.T) {
	none := Routing{P: R2R(.35).P, C: [][]float64{{0, 0}, {0, 0}}}
	for _, method := range []Method{Auto, Sweeps, Direct, TwoModel, Dense} {
		for _, n := range []int{3, 27} {
			if n > 3 && method == Dense {
				continue
			}
			r := mustSolve(t, Model{none, paperSteps()}, n, []int{1, 1}, Options{Method: method})
			if r.Throughput != 0 || r.Busy[1] < .9 {
				t.Errorf("%q, N = %d: %+v", method, n, r)
			}
		}
	}
}

// Stretching all times stretches the answer.
func TestTimeScale(t *testing.T) {
	a := mustSolve(t, paper(.35), 8, []int{1, 3}, Options{})
	b := mustSolve(t, Model{R2R(.35), Fixed(18*time.Millisecond, 83700*time.Microsecond)}, 8, []int{1, 3}, Options{})
	if relative(3*b.Throughput, a.Throughput) > 1e-12 {
		t.Errorf("%v tok/s, three times slower %v", a.Throughput, b.Throughput)
	}
}

// Requests are conserved: those at a model, running or waiting, add up to N, so the running ones to at most N; and the
// committed tokens are those of the steps.
func TestFiguresAreConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "N")
		m := Model{matrices(t, 3), Fixed(2*time.Millisecond, 3*time.Millisecond, 7*time.Millisecond)}
		r, err := Solve(t.Context(), m, n, thresholds(t, 3, n), Options{})
		if err != nil {
			t.Fatal(err)
		}
		running, tokens := 0.0, 0.0
		for i, busy := range r.Busy {
			if busy < -1e-12 || busy > 1+1e-9 {
				t.Errorf("model %d is busy for %v of the time", i, busy)
			}
			running += busy * r.MeanBatch[i]
			tokens += busy / m.Step[i][0].Seconds() * r.MeanBatch[i] * m.committed()[i]
		}
		if running > float64(n)*(1+1e-9) {
			t.Errorf("%v of %d requests run on average", running, n)
		}
		if relative(tokens, r.Throughput) > 1e-9 {
			t.Errorf("steps commit %v tok/s, the throughput is %v", tokens, r.Throughput)
		}
	})
}

func TestErrors(t *testing.T) {
	one := [][]float64{{1, 1}, {1, 1}}
	ms := time.Millisecond
	for _, c := range []struct {
		name    string
		model   Model
		n       int
		b       []int
		options Options
		want    error
		says    string
	}{
		{"row sum", Model{Routing{[][]float64{{.7, .3}, {.5, .4}}, one}, Fixed(ms, ms)}, 2, []int{1, 1}, Options{},
			ErrModel, "row 1 of P sums to 0.9, want 1"},
		{"negative", Model{Routing{[][]float64{{1.2, -.2}, {1, 0}}, one}, Fixed(ms, ms)}, 2, []int{1, 1}, Options{},
			ErrModel, "P[0][0] is 1.2"},
		{"not a number", Model{R2R(math.NaN()), Fixed(ms, ms)}, 2, []int{1, 1}, Options{}, ErrModel, "P[0][0] is NaN"},
		{"commit", Model{Routing{R2R(.5).P, [][]float64{{1, -1}, {1, 0}}}, Fixed(ms, ms)}, 2, []int{1, 1}, Options{},
			ErrModel, "C[0][1] is -1"},
		{"ragged", Model{Routing{[][]float64{{1}, {1, 0}}, one}, Fixed(ms, ms)}, 2, []int{1, 1}, Options{},
			ErrModel, "row 0 of P has 1 entries"},
		{"one model", Model{Routing{[][]float64{{1}}, [][]float64{{1}}}, Fixed(ms)}, 2, []int{1}, Options{},
			ErrModel, "1 models, want 2 to 8"},
		{"no weights", Model{ME(), nil}, 2, nil, Options{}, ErrModel, "0 models"},
		{"zero weights", Model{ME(0, 0), Fixed(ms, ms)}, 2, []int{1, 1}, Options{}, ErrModel, "NaN"},
		{"no requests", paper(.3), 0, []int{1, 1}, Options{}, ErrModel, "0 requests"},
		{"no step", Model{R2R(.3), Fixed(ms, 0)}, 2, []int{1, 1}, Options{}, ErrModel, "model 1 at batch 1 is 0s"},
		{"few steps", Model{R2R(.3), [][]time.Duration{{ms}, {ms, ms}}}, 3, []int{1, 1}, Options{},
			ErrModel, "model 1 has step times up to batch 2, want one for all or up to 3"},
		{"steps of one", Model{R2R(.3), Fixed(ms)}, 3, []int{1, 1}, Options{}, ErrModel, "step times of 1 models"},
		{"infeasible", paper(.3), 4, []int{2, 4}, Options{}, ErrInfeasible,
			"[2 4] for 4 requests: sum of (B_i - 1) is 4, must be below 4"},
		{"zero threshold", paper(.3), 4, []int{0, 4}, Options{}, ErrModel, "threshold of model 0 is 0"},
		{"thresholds", paper(.3), 4, []int{1}, Options{}, ErrModel, "1 thresholds for 2 models"},
		{"coarse quantum", paper(.3), 4, []int{1, 1}, Options{Quantum: time.Second}, ErrModel, "less than half a quantum"},
		{"negative quantum", paper(.3), 4, []int{1, 1}, Options{Quantum: -1}, ErrModel, "quantum is -1ns"},
		{"fine quantum", Model{R2R(.3), Fixed(time.Hour, ms)}, 4, []int{1, 1}, Options{Quantum: 1},
			ErrModel, "quanta of 1ns"},
		{"method", paper(.3), 4, []int{1, 1}, Options{Method: "guess"}, ErrMethod, `no method "guess"`},
		{"tolerance", paper(.3), 4, []int{1, 1}, Options{Tolerance: -1}, ErrMethod, "negative option"},
		{"two-model of three", three(), 4, []int{1, 1, 1}, Options{Method: TwoModel}, ErrMethod, "2 models, not 3"},
		{"two-model lazy", paper(.3), 4, []int{2, 1}, Options{Method: TwoModel}, ErrMethod, "B_0 = 1, not 2"},
		{"two-model growing", growing(.3, 4), 4, []int{1, 1}, Options{Method: TwoModel}, ErrMethod, "depend on the batch"},
		{"two-model fine", Model{R2R(.3), Fixed(6000001, 27900000)}, 4, []int{1, 1}, Options{Method: TwoModel, Quantum: 1},
			ErrTooLarge, "6000001 phases"},
		{"dense", paper(.3), 16, []int{1, 1}, Options{Method: Dense}, ErrMethod, "the chain has 14257"},
		{"direct", growing(.3, 16), 16, []int{1, 1}, Options{Method: Direct, MaxBytes: 16 << 20}, ErrMethod, "square of"},
		{"too large at once", three(), 30, []int{1, 1, 1}, Options{}, ErrTooLarge, "up to"},
		{"too large", growing(.3, 64), 64, []int{1, 1}, Options{MaxBytes: 16 << 20}, ErrTooLarge, "more than"},
		{"too many", paper(.3), 1_000_000, []int{1, 1}, Options{}, ErrTooLarge, "up to"},
		{"too many of three", three(), 1_000_000, []int{1, 1, 1}, Options{}, ErrTooLarge, "up to"},
		{"too many for two-model", paper(.3), 20_000, []int{1, 1}, Options{Method: TwoModel},
			ErrTooLarge, "up to 2e+04 states"},
		{"too wide", Model{ME(1, 1, 1, 1, 1, 1, 1, 1), Fixed(ms, 1000001, ms, ms, ms, ms, ms, ms)}, 1, eager(8),
			Options{Quantum: 1}, ErrTooLarge, "128 bits"},
		{"reducible", Model{Routing{
			[][]float64{{.5, .25, .25}, {0, 1, 0}, {0, 0, 1}}, [][]float64{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
		}, Fixed(ms, ms, 2*ms)}, 3, eager(3), Options{}, ErrReducible, "4 of them"},
		{"reducible by sweeps", Model{Routing{
			[][]float64{{.5, .25, .25}, {0, 1, 0}, {0, 0, 1}}, [][]float64{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
		}, Fixed(ms, ms, 2*ms)}, 3, eager(3), Options{Method: Sweeps, MaxSweeps: 100}, ErrReducible, "depends on chance"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Solve(t.Context(), c.model, c.n, c.b, c.options)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %v with %q", err, c.want, c.says)
			}
			if r.Throughput != 0 {
				t.Errorf("a figure of %v beside the error", r.Throughput)
			}
		})
	}
}

func TestTooLargeSaysHowLarge(t *testing.T) {
	for _, c := range []struct {
		model     Model
		n         int
		limit     int64
		estimated bool
	}{{three(), 30, 1 << 30, true}, {growing(.35, 64), 64, 32 << 20, false}} {
		_, err := Solve(t.Context(), c.model, c.n, eager(c.model.Models()), Options{MaxBytes: c.limit})
		var large *TooLargeError
		if !errors.As(err, &large) {
			t.Fatalf("error %v", err)
		}
		if large.Estimated != c.estimated || large.Limit != c.limit || large.Bytes <= float64(c.limit) || large.States < 1e4 {
			t.Errorf("%+v", large)
		}
	}
}

// Where the whole chain does not fit, the fast solver steps in by itself.
func TestTooLargeFallsBackToTwoModel(t *testing.T) {
	want := mustSolve(t, paper(.35), 32, []int{1, 1}, Options{Method: TwoModel})
	got := mustSolve(t, paper(.35), 32, []int{1, 1}, Options{MaxBytes: 100 << 10})
	if got.Method != TwoModel || got.Throughput != want.Throughput {
		t.Errorf("%v tok/s by %q, want %v by %q", got.Throughput, got.Method, want.Throughput, TwoModel)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, method := range []Method{Auto, TwoModel} {
		if _, err := Solve(ctx, paper(.35), 4, []int{1, 1}, Options{Method: method}); !errors.Is(err, context.Canceled) {
			t.Errorf("%q: error %v", method, err)
		}
	}
	if _, err := Best(ctx, paper(.35), 4, SmallEager, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Best: error %v", err)
	}
}

// The bounds that come with a figure hold, and are as narrow as was asked for.
func TestBoundsHold(t *testing.T) {
	for _, tolerance := range []float64{1e-4, 1e-7, 1e-10} {
		r := mustSolve(t, growing(.35, 6), 6, []int{1, 2}, Options{Tolerance: tolerance, Method: Sweeps})
		exact := mustSolve(t, growing(.35, 6), 6, []int{1, 2}, Options{Method: Direct})
		if r.Upper-r.Lower > tolerance*r.Throughput || r.Throughput < r.Lower || r.Throughput > r.Upper {
			t.Errorf("%v within [%v, %v], asked for %v", r.Throughput, r.Lower, r.Upper, tolerance)
		}
		if x := exact.Throughput; x < r.Lower*(1-1e-12) || x > r.Upper*(1+1e-12) {
			t.Errorf("exact %v outside [%v, %v]", x, r.Lower, r.Upper)
		}
	}
}

func TestAlgorithms(t *testing.T) {
	if !slices.EqualFunc(CITER(.2).P, R2R(.2).P, slices.Equal[[]float64]) ||
		!slices.EqualFunc(CoLLM(.2).C, R2R(.2).C, slices.Equal[[]float64]) {
		t.Error("CITER and Co-LLM have R2R's form")
	}
	for _, c := range []struct {
		r       Routing
		perStep float64 // tokens that a step commits on average
	}{
		{R2R(.25), 1 / 1.25},                  // one dropped draft for each token of model 1
		{RStitch(.1, .3), .925},               // visits .75, .25; every step but a tenth of model 0's
		{ME(5, 3, 2), 1},                      // every step
		{ME(.5, .3, .2), 1},                   // the same
		{RStitch(.2, 1), 1 - .2/1.2},          // returns at once: as R2R
		{Routing{R2R(1).P, R2R(1).C}, 1. / 2}, // every draft is dropped
	} {
		if err := c.r.validate(); err != nil {
			t.Fatal(err)
		}
		v, err := c.r.Visits()
		if err != nil {
			t.Fatal(err)
		}
		if got := c.r.committedPerStep(v); relative(got, c.perStep) > 1e-12 {
			t.Errorf("%v: %v tokens a step, want %v", c.r, got, c.perStep)
		}
	}
	if p := ME(5, 3, 2).P[2]; relative(p[0], .5) > 1e-15 || relative(p[1], .3) > 1e-15 || relative(p[2], .2) > 1e-15 {
		t.Errorf("weights 5, 3, 2 give %v", p)
	}
}
