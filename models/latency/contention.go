package latency

import (
	"fmt"
	"math"
	"time"

	"github.com/trbench/trbench/engine/clock"
)

// FittedContention is the slowdown kappa of models on shared GPUs: fitted to one published cell (the paper's ablation,
// eager, N = 4, 161.26 tok/s), with the host overhead of DefaultHost. It stands for whatever happens only while steps
// overlap. On separate GPUs it is 0.
const FittedContention = 0.47

// Contention tells when the steps of models that share GPUs end. While two or more of them run a step, each of these
// runs 1 + kappa times slower, however many there are. That is progressive: the rest of a step slows when a peer's
// begins, and recovers when it ends. So an end is an estimate until it comes, and may move whenever a peer starts or
// finishes.
//
// A driver calls Start and Finish as steps begin and end, in the order of time, and after each asks End again. All the
// calls of one Instant count together: a peer that finishes and starts anew in the same Instant changes nothing, nor
// does one that starts and finishes in it. With kappa 0, and for a step that overlaps with none, End is exactly
// start + work.
type Contention struct {
	slow float64 // how much longer a step takes while it overlaps
	runs []running
	busy int

	// at is the instant of the last change, and overlap is whether steps overlapped just before it, which is what every
	// running step's since..at was worked at. What holds from at on is known only once the clock has moved.
	at      clock.Instant
	overlap bool
}

// running is a step under way. Invariant: since <= Contention.at.
type running struct {
	busy  bool
	since clock.Instant
	left  float64 // work at since, ns at full speed
}

// NewContention is for so many models, none of them running. A kappa that is negative or not a number is a programmer's
// mistake and panics, as do Start of a model that runs, Finish of one that doesn't, and time that goes back.
func NewContention(kappa float64, models int) *Contention {
	if !(kappa >= 0) || math.IsInf(kappa, 1) {
		panic(fmt.Sprintf("latency: contention of %g, wanted 0 or more", kappa))
	}
	return &Contention{slow: 1 + kappa, runs: make([]running, models)}
}

// Start begins a step of model i that takes work when nothing else runs.
func (c *Contention) Start(now clock.Instant, i int, work time.Duration) {
	c.advance(now)
	if c.runs[i].busy {
		panic(fmt.Sprintf("latency: model %d starts a step at %v while it runs one", i, now))
	}
	c.runs[i] = running{busy: true, since: now, left: float64(max(0, work))}
	c.busy++
}

// Finish ends model i's step, whether or not its work is done.
func (c *Contention) Finish(now clock.Instant, i int) {
	c.advance(now)
	if !c.runs[i].busy {
		panic(fmt.Sprintf("latency: model %d finishes a step at %v and runs none", i, now))
	}
	c.runs[i] = running{}
	c.busy--
}

// End is when model i's step ends if no other starts or finishes before; clock.Never if it runs none.
func (c *Contention) End(i int) clock.Instant {
	r := c.runs[i]
	if !r.busy {
		return clock.Never
	}
	if overlap := c.busy > 1; overlap != c.overlap {
		return r.worked(c.at, c.pace(c.overlap)).end(c.pace(overlap))
	}
	return r.end(c.pace(c.overlap))
}

// advance moves the clock. Only then is what held after the last change a fact, and the work done until that change is
// settled if the pace differs from there on: between changes of pace nothing is rounded.
func (c *Contention) advance(now clock.Instant) {
	if now < c.at {
		panic(fmt.Sprintf("latency: contention at %v, after %v", now, c.at))
	}
	if now == c.at {
		return
	}
	if overlap := c.busy > 1; overlap != c.overlap {
		for i := range c.runs {
			if c.runs[i].busy {
				c.runs[i] = c.runs[i].worked(c.at, c.pace(c.overlap))
			}
		}
		c.overlap = overlap
	}
	c.at = now
}

// pace is the time that a unit of work takes.
func (c *Contention) pace(overlap bool) float64 {
	if overlap {
		return c.slow
	}
	return 1
}

// worked is the step at a later instant, at a steady pace since.
func (r running) worked(at clock.Instant, pace float64) running {
	r.left = max(0, r.left-float64(at.Sub(r.since))/pace)
	r.since = at
	return r
}

// end is when the step ends at a steady pace, to the nearest nanosecond.
func (r running) end(pace float64) clock.Instant {
	return r.since.Add(time.Duration(min(math.Round(r.left*pace), float64(longest))))
}
