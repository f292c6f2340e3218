package arrival

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/workloads/internal/draw"
)

// ErrClosed is the error of asking a closed loop for arrival times.
var ErrClosed = errors.New("a closed loop has no arrival times: a request is sent when an earlier one ends")

// ErrNoArrivals is the error of replaying a workload that has no recorded arrivals.
var ErrNoArrivals = errors.New("the workload has no recorded arrivals to replay")

// Process gives arrival times, one by one.
//
// The first arrival comes one gap after the start of the run, not at its start, so that n arrivals take n gaps and the
// count up to any time follows the rate. (vLLM's and SGLang's benchmarks send the first request at once: their times
// are these less the first gap. Latencies are measured from the scheduled arrival, and don't notice.) A replay keeps
// the times as recorded, divided by the scale.
//
// Times depend on the spec and the seed alone. Gap i is drawn from its own stream, so that time i is the same however
// many are asked for, and two rates see the same gaps, scaled: runs at different loads are paired. Gamma gaps with
// cv = 1 are exponential, and drawn as Poisson's: the two processes are then equal to the nanosecond.
type Process struct {
	spec     Spec
	seed     uint64
	recorded []time.Duration
	n        int // arrivals given
	last     clock.Instant
	elapsed  float64 // sum of the gaps so far, in mean gaps: poisson and gamma
}

// Start begins the process. Recorded arrivals, since the start of their trace and never falling, matter to a replay
// only.
func (s Spec) Start(seed uint64, recorded []time.Duration) (*Process, error) {
	if err := s.valid(); err != nil {
		return nil, fmt.Errorf("arrival: %w", err)
	}
	switch {
	case s.Kind == Closed:
		return nil, fmt.Errorf("arrival: %w", ErrClosed)
	case s.Kind == Trace && len(recorded) == 0:
		return nil, fmt.Errorf("arrival: %w", ErrNoArrivals)
	case s.Kind == Trace:
		var before time.Duration
		for i, a := range recorded {
			if a < before {
				return nil, fmt.Errorf("arrival: recorded arrival %d is at %v, before %v: wanted them in order", i+1, a,
					before)
			}
			before = a
		}
	}
	return &Process{spec: s, seed: seed, recorded: recorded}, nil
}

// Next returns the next arrival, never before the last. It reports false where there is none: a replay is over, or the
// time lies beyond what an Instant can say (292 years).
func (p *Process) Next() (clock.Instant, bool) {
	var at float64 // ns
	switch s := p.spec; s.Kind {
	case Trace:
		if p.n >= len(p.recorded) {
			return clock.Never, false
		}
		at = float64(p.recorded[p.n]) / s.Scale // exact at scale 1 up to 2^53 ns, 104 days
	case Constant:
		at = float64(p.n+1) * 1e9 / s.Rate
	case Ramp:
		at = s.reach(float64(p.n+1)) * 1e9
	default:
		p.elapsed += p.gap()
		at = p.elapsed * 1e9 / s.Rate
	}
	p.n++
	if at >= math.MaxInt64 {
		return clock.Never, false
	}
	p.last = max(p.last, clock.Instant(math.Round(at)))
	return p.last, true
}

// gap draws the next gap, of mean 1.
func (p *Process) gap() float64 {
	s := draw.New(p.seed, draw.Gaps, uint64(p.n))
	if p.spec.Kind == Poisson || p.spec.CV == 1 {
		return s.Exponential()
	}
	shape := 1 / (p.spec.CV * p.spec.CV)
	return s.Gamma(shape) / shape
}

// reach is the second at which a ramp's rate, integrated from the start, comes to k: a ramp is even, without chance,
// request k arriving when k are due. While the rate moves the integral is From t + (To - From) t^2 / (2 Over); the root
// is written so that it holds for a rising, a falling and a flat ramp, without cancellation.
func (s Spec) reach(k float64) float64 {
	over := s.Over.Seconds()
	due := (s.From + s.To) / 2 * over // at the end of the ramp
	if k >= due {
		return over + (k-due)/s.To
	}
	slope := (s.To - s.From) / over
	return 2 * k / (s.From + math.Sqrt(float64(s.From*s.From)+float64(2*slope*k)))
}

// Times returns the first n arrivals. The process must have as many: a replay of a shorter record, a closed loop and
// times beyond 292 years are errors.
func (s Spec) Times(n int, seed uint64, recorded []time.Duration) ([]clock.Instant, error) {
	p, err := s.Start(seed, recorded)
	if err != nil {
		return nil, err
	}
	if s.Kind == Trace && n > len(recorded) {
		return nil, fmt.Errorf("arrival: found %d recorded arrivals, wanted %d", len(recorded), n)
	}
	times := make([]clock.Instant, max(n, 0))
	for i := range times {
		t, ok := p.Next()
		if !ok {
			return nil, fmt.Errorf("arrival %s: request %d of %d would arrive after 292 years", s, i+1, n)
		}
		times[i] = t
	}
	return times, nil
}
