package metrics

import (
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/results"
)

// Part is one of the four parts of a switch's cost.
type Part uint8

// The parts of results.Switch.
const (
	Enqueue Part = iota
	Transport
	Wait
	Extend

	parts = 4
)

// Collector gathers one point. It is not safe for use by several goroutines. What it reports does not depend on the
// order of calls.
//
// The caller tells of each request once, as it ends (Add), and of each step that committed something for a request
// which is not a warm-up (Commit); the switches are optional.
type Collector struct {
	config   Config
	done     []span        // measured requests that finished
	rest     []span        // the others that committed a token; they hold a worker busy
	counts   [4]int        // measured requests by status
	first    clock.Instant // scheduled arrival of a measured request
	warmEnd  clock.Instant // last token of a warm-up request; -1 where there is none
	late     bool          // some finished request was not sent when it was due
	output   int64
	large    int64
	hops     int64
	itl, icl Histogram
	switches [parts]Histogram
	steady   *Window
}

// span is what the figures need of a request: 40 bytes.
type span struct {
	arrival, sent, first, last clock.Instant
	output                     int32
	met                        bool // every SLO
}

// Config is what a collector is asked for.
type Config struct {
	Percentiles []float64 // beyond 50, 90 and 99, which are always given
	SLO         SLO
	Concurrency int // workers of a closed loop; 0 in an open one, where steady throughput is undefined
	Expect      int // requests to come, a hint for memory
}

// Window is the time in which all workers were busy, and the tokens committed in it: (From, To].
type Window struct {
	From, To clock.Instant
	Tokens   int64
}

// NewCollector returns an empty collector.
func NewCollector(c Config) *Collector {
	return &Collector{config: c, done: make([]span, 0, c.Expect), first: clock.Never, warmEnd: -1}
}

// Add records a request that left the system. It keeps no reference to r.
func (c *Collector) Add(r *results.Request) {
	s := span{r.Arrival, r.Sent, r.First, r.Last, r.OutputTokens, false}
	if r.Warmup {
		if r.OutputTokens > 0 {
			c.rest = append(c.rest, s)
			c.warmEnd = max(c.warmEnd, r.Last)
		}
		return
	}
	c.counts[r.Status]++
	c.first = min(c.first, r.Arrival)
	if r.Status != results.Finished {
		if r.OutputTokens > 0 {
			c.rest = append(c.rest, s)
		}
		return
	}
	s.met = c.config.SLO.Met(r)
	c.done = append(c.done, s)
	c.late = c.late || r.Sent != r.Arrival
	c.output += int64(r.OutputTokens)
	c.large += int64(r.LargeTokens)
	c.hops += int64(r.Hops)
}

// Commit records a step that committed tokens >= 1 tokens of a measured request, gap after that request's step before.
// It is one chunk gap and, as tokens, the gap and tokens-1 zeros. A request's first step has no gap: use
// CommitFirst.
func (c *Collector) Commit(gap time.Duration, tokens int) {
	c.icl.RecordN(int64(gap), 1)
	c.itl.RecordN(int64(gap), 1)
	if tokens > 1 {
		c.itl.RecordN(0, uint64(tokens-1))
	}
}

// CommitFirst records a measured request's first step that committed something: tokens-1 zero gaps.
func (c *Collector) CommitFirst(tokens int) {
	if tokens > 1 {
		c.itl.RecordN(0, uint64(tokens-1))
	}
}

// CommitN records n steps of one token each that came after the same gap, as Commit(gap, 1) n times does.
func (c *Collector) CommitN(gap time.Duration, n int) {
	c.icl.RecordN(int64(gap), uint64(n))
	c.itl.RecordN(int64(gap), uint64(n))
}

// Switch records one part of one change of model.
func (c *Collector) Switch(p Part, d time.Duration) { c.switches[p].RecordN(int64(d), 1) }

// Steady states the window in which all workers were busy, for a caller that counted the tokens. Without it the window
// is found from the requests, and their tokens are taken as evenly spread between first and last.
func (c *Collector) Steady(w Window) { c.steady = &w }
