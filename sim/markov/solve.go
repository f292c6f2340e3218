package markov

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"
)

// Method names a way to solve the chain.
type Method string

const (
	// Auto enumerates the chain; it eliminates where the heads are few, sweeps otherwise, and eliminates after all where
	// sweeps stall. A chain that is too large goes to TwoModel where that applies.
	Auto Method = ""
	// Sweeps iterates, whatever the chain; ErrNotConverged where it mixes too slowly.
	Sweeps Method = "sweeps"
	// Direct eliminates the heads; time grows with the cube of their number.
	Direct Method = "direct"
	// TwoModel is the fast solver for two models, B_0 = 1 and step times that don't depend on the batch.
	TwoModel Method = "two-model"
	// Dense eliminates all states one by one: an oracle for chains of up to a few thousand states.
	Dense Method = "dense"
)

const (
	// DefaultTolerance is the relative width of the bracket around a returned throughput.
	DefaultTolerance = 1e-10
	// DefaultMaxSweeps ends an iteration that does not converge.
	DefaultMaxSweeps = 5000
	// DefaultMaxBytes is the memory that one chain may take.
	DefaultMaxBytes = 2 << 30

	// fewHeads is how many heads are eliminated at once: sweeps would hardly be fewer, and never exact.
	fewHeads = 24
	// maxDirectHeads bounds elimination where it is not asked for: 50 MB and 5e9 multiplications.
	maxDirectHeads = 2500
	// maxDenseStates bounds the oracle: 128 MB and 2e10 multiplications.
	maxDenseStates = 4000
)

// Options tune a solution; the zero value is the default.
type Options struct {
	// Quantum is the unit of time; step times are rounded to whole multiples. 0 chooses one that leaves at most 1,000
	// quanta to the longest step: the largest that represents all step times exactly, else the largest within a
	// relative 1e-4 of each, else the most exact one. Result.Rounding says what it cost.
	Quantum   time.Duration
	Tolerance float64 // relative width of the bracket; 0: DefaultTolerance
	MaxSweeps int     // 0: DefaultMaxSweeps
	MaxBytes  int64   // of one chain, Workers of which may be held at once; 0: DefaultMaxBytes
	Method    Method
	Workers   int    // chains solved at once by Best and BuildTable; 0: as many as the process may use cores
	Solved    func() // called after each vector that Best or BuildTable has solved, by several goroutines; may be nil
}

func (o Options) filled() Options {
	if o.Tolerance == 0 {
		o.Tolerance = DefaultTolerance
	}
	if o.MaxSweeps == 0 {
		o.MaxSweeps = DefaultMaxSweeps
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	return o
}

func (o Options) validate() error {
	switch o.Method {
	case Auto, Sweeps, Direct, TwoModel, Dense:
	default:
		return fmt.Errorf("%w: no method %q", ErrMethod, o.Method)
	}
	if !(o.Tolerance > 0) || o.MaxSweeps < 0 || o.MaxBytes < 0 || o.Workers < 0 {
		return fmt.Errorf("%w: negative option in %+v", ErrMethod, o)
	}
	return nil
}

// Result is the stationary behaviour of one model under one threshold vector.
type Result struct {
	Throughput   float64 // committed tokens per second
	Lower, Upper float64 // proved bounds of it; equal where the chain was eliminated, which leaves rounding only

	// Busy is the share of the time in which a step runs, MeanBatch the requests per step (0 where none ever runs), by
	// model, to about 1e-8. Both are nil in the rare case that the throughput could be proved and they could not.
	Busy, MeanBatch []float64

	Quantum  time.Duration // unit of time, after common divisors were taken out
	Rounding float64       // largest relative error of a step time in whole quanta

	Method      Method  // that gave the figures
	States      int     // of the chain; for TwoModel, of the chain embedded where both models launch
	Transitions int     // between them; 0 for TwoModel
	Sweeps      int     // passes over the chain, those for the bounds included
	Residual    float64 // L1 change of the stationary vector in the last pass
}

// Solve returns the throughput of n requests under the thresholds: T(B) of the paper, appendix D. Errors: ErrModel,
// ErrInfeasible, ErrTooLarge, ErrNotConverged, ErrReducible, ErrMethod, or the context's.
func Solve(ctx context.Context, m Model, n int, threshold []int, o Options) (Result, error) {
	o = o.filled()
	if err := o.validate(); err != nil {
		return Result{}, err
	}
	if err := m.validate(n); err != nil {
		return Result{}, err
	}
	if len(threshold) != m.Models() {
		return Result{}, fmt.Errorf("%w: %d thresholds for %d models", ErrModel, len(threshold), m.Models())
	}
	if err := Feasible(threshold, n); err != nil {
		return Result{}, err
	}
	g, err := m.grid(n, o.Quantum)
	if err != nil {
		return Result{}, err
	}
	return solve(ctx, m, g, n, threshold, true, o)
}

// solve is Solve for checked arguments; figures asks for busy times and batch sizes too.
func solve(ctx context.Context, m Model, g *grid, n int, threshold []int, figures bool, o Options) (Result, error) {
	if o.Method == TwoModel {
		if err := twoModelApplies(m, n, threshold); err != nil {
			return Result{}, err
		}
		return solveTwoModel(ctx, m, g, n, threshold[1], figures, o)
	}
	c, err := build(ctx, g, m.Routing, threshold, n, o.MaxBytes)
	if errors.Is(err, ErrTooLarge) && o.Method == Auto && twoModelApplies(m, n, threshold) == nil {
		return solveTwoModel(ctx, m, g, n, threshold[1], figures, o)
	}
	if err != nil {
		return Result{}, err
	}
	return c.solve(ctx, figures, o)
}

// solution is what settle found.
type solution struct {
	estimate
	bounds  bounds // of rate
	method  Method
	figures bool // mass is proved too, as far as busy times and batch sizes depend on it
}

// settle solves an embedded chain by the method asked for. Under Auto it eliminates at once where the heads are few.
// Where they are not too many it iterates for less time than elimination would take, and then eliminates.
//
// Where parts of the chain are hardly connected they may still have the same throughput, as with a saturated model 1:
// it is then proved, and the rest is not. So the figures beside it, if they are wanted, need a proof of their own.
func settle(ctx context.Context, c embedded, figures bool, o Options) (solution, error) {
	n := c.heads()
	passes := 0
	eliminate := func() (solution, error) {
		e, err := direct(ctx, c)
		e.passes += passes
		return solution{e, bounds{e.rate, e.rate, e.rate}, Direct, true}, err
	}
	fallback := o.Method == Auto && n <= maxDirectHeads
	limit := o.MaxSweeps
	switch {
	case o.Method == Direct && 16*float64(n)*float64(n) > float64(o.MaxBytes):
		return solution{}, fmt.Errorf("%w: %q needs the square of %d heads, over %d MiB",
			ErrMethod, Direct, n, o.MaxBytes>>20)
	case o.Method == Direct, fallback && n <= fewHeads:
		return eliminate()
	case fallback:
		limit = min(limit, fewHeads+n/4)
	}
	e, settled, err := iterate(ctx, c, limit)
	if err != nil {
		return solution{}, err
	}
	passes = e.passes
	if !settled && fallback {
		return eliminate()
	}
	b, more, err := bracket(ctx, c, e, figures, o.Tolerance, limit)
	if err != nil {
		return solution{}, err
	}
	passes += more
	e.passes = passes
	proved := settled && b[0].met(o.Tolerance) && near(e.rate, b[0].rate)
	all := proved && figures && b[1].met(o.Tolerance) && near(e.activity, b[1].rate)
	switch {
	case proved && (all || !figures || !fallback):
		e.rate = b[0].rate
		return solution{e, b[0], Sweeps, all}, nil
	case fallback:
		return eliminate()
	}
	return solution{}, &NotConvergedError{Sweeps: passes, Residual: e.residual, Lower: b[0].lower, Upper: b[0].upper}
}

// near reports whether a figure that follows from the stationary distribution agrees with the same one from its bounds.
func near(x, y float64) bool { return math.Abs(x-y) <= 1e-8*y }

// solve settles an enumerated chain and measures the solution.
func (c *chain) solve(ctx context.Context, figures bool, o Options) (Result, error) {
	if o.Method == Dense {
		if c.states() > maxDenseStates {
			return Result{}, fmt.Errorf("%w: %q takes up to %d states, the chain has %d",
				ErrMethod, Dense, maxDenseStates, c.states())
		}
		visits, quanta, err := c.dense(ctx)
		if err != nil {
			return Result{}, err
		}
		r := c.figures(visits, quanta)
		r.Method = Dense
		return r, nil
	}
	s := newSweeper(c)
	sol, err := settle(ctx, s, figures, o)
	second := c.grid.quantum.Seconds()
	if stuck := (*NotConvergedError)(nil); errors.As(err, &stuck) {
		if _, _, reducible := c.classes(); reducible != nil {
			return Result{}, reducible
		}
		stuck.Lower /= second
		stuck.Upper /= second
	}
	if err != nil {
		return Result{}, err
	}
	visits := make([]float64, len(c.rows))
	y := s.count(sol.mass, visits, negligible)
	r := c.figures(visits, y.quanta)
	r.take(sol, second)
	return r, nil
}

// take copies what the solution says, in tokens per quantum, with quanta of so many seconds.
func (r *Result) take(s solution, second float64) {
	r.Throughput, r.Lower, r.Upper = s.rate/second, s.bounds.lower/second, s.bounds.upper/second
	r.Method, r.Sweeps, r.Residual = s.method, s.passes, s.residual
	if !s.figures {
		r.Busy, r.MeanBatch = nil, nil
	}
}

// figures averages over time, given how often each set of batches completes in so many quanta.
func (c *chain) figures(visits []float64, quanta float64) Result {
	m := len(c.grid.steps)
	r := Result{
		Busy: make([]float64, m), MeanBatch: make([]float64, m),
		Quantum: c.grid.quantum, Rounding: c.grid.rounding,
		States: c.states(), Transitions: len(c.to),
	}
	tokens := 0.0
	for j, v := range visits {
		tokens += v * c.rows[j].tokens
	}
	r.Throughput = tokens / quanta / c.grid.quantum.Seconds()
	r.Lower, r.Upper = r.Throughput, r.Throughput
	for i := range m {
		steps, requests, busy := 0.0, 0.0, 0.0
		for j, v := range visits {
			if batch := c.rows[j].batch[i]; batch > 0 {
				steps += v
				requests += v * float64(batch)
				busy += v * float64(c.grid.steps[i][batch])
			}
		}
		r.Busy[i] = busy / quanta
		if steps > 0 {
			r.MeanBatch[i] = requests / steps
		}
	}
	return r
}
