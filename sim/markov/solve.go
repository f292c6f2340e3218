package markov

import (
	"context"
	"errors"
	"fmt"
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
	// Quantum is the unit of time; step times are rounded to whole multiples. 0 chooses the largest one that represents
	// them exactly with at most 1,000 quanta to the longest step, else the largest within a relative 1e-4 of each, else
	// the most exact one. Result.Rounding says what it cost.
	Quantum   time.Duration
	Tolerance float64 // relative width of the bracket; 0: DefaultTolerance
	MaxSweeps int     // 0: DefaultMaxSweeps
	MaxBytes  int64   // of one chain; 0: DefaultMaxBytes
	Method    Method
	Workers   int // chains solved at once by Best and BuildTable; 0: as many as the process may use cores
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

// Result is the stationary behaviour of one model under one threshold vector.
type Result struct {
	Throughput   float64 // committed tokens per second
	Lower, Upper float64 // proved bounds of it; equal where the chain was eliminated, which leaves rounding only

	Busy      []float64 // by model: share of the time in which a step runs
	MeanBatch []float64 // by model: requests per step; 0 for a model that never runs

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
	if o.Method == TwoModel {
		if err := twoModelApplies(m, n, threshold); err != nil {
			return Result{}, err
		}
		return solveTwoModel(ctx, m, g, n, threshold[1])
	}
	c, err := build(ctx, g, m.Routing, threshold, n, o.MaxBytes)
	if errors.Is(err, ErrTooLarge) && o.Method == Auto && twoModelApplies(m, n, threshold) == nil {
		return solveTwoModel(ctx, m, g, n, threshold[1])
	}
	if err != nil {
		return Result{}, err
	}
	return c.solve(ctx, o)
}

// solve picks the method for an enumerated chain and measures the solution.
func (c *chain) solve(ctx context.Context, o Options) (Result, error) {
	switch {
	case o.Method == Dense:
		return c.solveDense()
	case o.Method == Direct && 8*float64(len(c.heads))*float64(len(c.heads)) > float64(o.MaxBytes):
		return Result{}, fmt.Errorf("%w: %q needs the square of %d heads, over %d MiB",
			ErrMethod, Direct, len(c.heads), o.MaxBytes>>20)
	case o.Method == Direct || o.Method == Auto && len(c.heads) <= fewHeads:
		e, err := c.direct(ctx)
		if err != nil {
			return Result{}, err
		}
		return c.measure(e, bounds{lower: e.rate, upper: e.rate}, Direct), nil
	case o.Method != Auto && o.Method != Sweeps:
		return Result{}, fmt.Errorf("%w: no method %q", ErrMethod, o.Method)
	}
	limit := o.MaxSweeps
	fallback := o.Method == Auto && len(c.heads) <= maxDirectHeads
	if fallback { // as much work again as elimination, at most
		limit = min(limit, 2*fewHeads+len(c.heads))
	}
	e, settled, err := c.stationary(ctx, limit)
	if err != nil {
		return Result{}, err
	}
	var b bounds
	if settled || !fallback {
		met := false
		b, met, err = c.bounds(ctx, e.rate, o.Tolerance, limit)
		if err != nil {
			return Result{}, err
		}
		slack := o.Tolerance * e.rate
		if settled && met && e.rate >= b.lower-slack && e.rate <= b.upper+slack {
			return c.measure(e, b, Sweeps), nil
		}
	}
	if fallback {
		swept := e.sweeps + b.sweeps
		e, err = c.direct(ctx)
		if err != nil {
			return Result{}, err
		}
		e.sweeps += swept
		return c.measure(e, bounds{lower: e.rate, upper: e.rate}, Direct), nil
	}
	if _, _, err := c.classes(); err != nil {
		return Result{}, err
	}
	second := c.grid.quantum.Seconds()
	return Result{}, &NotConvergedError{
		Sweeps: e.sweeps + b.sweeps, Residual: e.residual, Lower: b.lower / second, Upper: b.upper / second,
	}
}

// measure turns a stationary distribution into figures: one more sweep counts how often each set of batches completes.
func (c *chain) measure(e estimate, b bounds, method Method) Result {
	acc := make([]float64, c.states())
	for i, h := range c.heads {
		acc[h] = e.mass[i]
	}
	visits := make([]float64, len(c.rows))
	_, quanta := c.push(acc, visits)
	r := c.figures(visits, quanta)
	second := c.grid.quantum.Seconds()
	r.Throughput, r.Lower, r.Upper = e.rate/second, b.lower/second, b.upper/second
	r.Method, r.Sweeps, r.Residual = method, e.sweeps+b.sweeps+1, e.residual
	return r
}

func (c *chain) solveDense() (Result, error) {
	if c.states() > maxDenseStates {
		return Result{}, fmt.Errorf("%w: %q takes up to %d states, the chain has %d",
			ErrMethod, Dense, maxDenseStates, c.states())
	}
	visits, quanta, err := c.dense()
	if err != nil {
		return Result{}, err
	}
	r := c.figures(visits, quanta)
	r.Method = Dense
	return r, nil
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
