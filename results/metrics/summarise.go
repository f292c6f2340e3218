package metrics

import (
	"fmt"
	"strings"
	"time"

	"github.com/trbench/trbench/results"
)

// Summarise returns base, which says what the point is, with the figures of the requests filled in:
//
//   - Requests counts measured requests of any status, Failed those that failed or were rejected. Only finished
//     requests enter a latency, a token count or a mean.
//   - DurationS runs from the first scheduled arrival of a measured request to the last completion.
//   - OutputTokS and RequestRate are over DurationS; SteadyTokS over the time in which all workers are busy and no
//     warm-up request is left.
//   - GoodputReqS counts the requests that meet every SLO; SLOAttainment is their share of all measured requests but
//     the cancelled. Both are null without an SLO.
//   - Note says which percentiles are over too few requests to be bounded.
//
// Threshold, BatchMean, Busy, the counts of preemptions and the cost are the caller's.
func (c *Collector) Summarise(base results.Point) results.Point {
	p := base
	finished := c.counts[results.Finished]
	p.Failed = c.counts[results.Failed] + c.counts[results.Rejected]
	p.Cancelled = c.counts[results.Cancelled]
	p.Requests = finished + p.Failed + p.Cancelled
	p.OutputTokens = c.output

	p.DurationS = c.duration()
	perSecond := func(n float64) results.Float { return results.Ratio(results.F(n), p.DurationS) }
	p.OutputTokS = perSecond(float64(c.output))
	p.RequestRate = perSecond(float64(finished))
	p.SteadyTokS = c.steadyRate()
	if !c.config.SLO.IsZero() {
		met := float64(c.met())
		p.GoodputReqS = perSecond(met)
		p.SLOAttainment = results.F(met / float64(p.Requests-p.Cancelled))
	}
	p.LargeShare = results.F(float64(c.large) / float64(c.output))
	p.Hops = results.F(float64(c.hops) / float64(finished))

	further := c.config.Percentiles
	ttft, tpot, e2e := c.TTFT(), c.TPOT(), c.E2E()
	p.TTFT = Describe(ttft, further)
	p.TPOT = Describe(tpot, further)
	p.E2E = Describe(e2e, further)
	if p.TTFTFromSend = p.TTFT; c.late {
		p.TTFTFromSend = Describe(c.millis(func(s *span) time.Duration { return s.first.Sub(s.sent) }), further)
	}
	p.ITL = c.itl.Describe(time.Millisecond, further)
	p.ICL = c.icl.Describe(time.Millisecond, further)
	p.Switch = c.switchCost()
	p.Note = c.doubts(len(ttft), len(tpot))
	return p
}

// duration is the seconds from the first scheduled arrival to the last completion; nothing where nothing completed.
func (c *Collector) duration() results.Float {
	end := c.first
	for i := range c.done {
		if s := &c.done[i]; s.output > 0 {
			end = max(end, s.last)
		}
	}
	if end == c.first {
		return results.Float{}
	}
	return results.F(seconds(end.Sub(c.first)))
}

// seconds is d in seconds, rounded once, which d.Seconds is not.
func seconds(d time.Duration) float64 { return float64(d) / 1e9 }

func (c *Collector) met() int {
	n := 0
	for i := range c.done {
		if c.done[i].met {
			n++
		}
	}
	return n
}

// TTFT returns the time to first token of each finished request, in ms, in the order of Add.
func (c *Collector) TTFT() []float64 {
	return c.millis(func(s *span) time.Duration { return s.first.Sub(s.arrival) })
}

// E2E returns the end-to-end latency of each finished request, in ms, in the order of Add.
func (c *Collector) E2E() []float64 {
	return c.millis(func(s *span) time.Duration { return s.last.Sub(s.arrival) })
}

// TPOT returns the time per output token of each finished request of two tokens or more, in ms, in the order of Add.
func (c *Collector) TPOT() []float64 {
	values := make([]float64, 0, len(c.done))
	for i := range c.done {
		s := &c.done[i]
		r := results.Request{First: s.first, Last: s.last, OutputTokens: s.output}
		if ms, ok := r.TPOT(); ok {
			values = append(values, ms)
		}
	}
	return values
}

// millis returns a span of each finished request that has a token.
func (c *Collector) millis(of func(*span) time.Duration) []float64 {
	values := make([]float64, 0, len(c.done))
	for i := range c.done {
		if s := &c.done[i]; s.output > 0 {
			values = append(values, results.Millis(of(s)))
		}
	}
	return values
}

// switchCost is nil where no switch was recorded.
func (c *Collector) switchCost() *results.Switch {
	part := func(p Part) *results.Dist { return c.switches[p].Describe(time.Microsecond, c.config.Percentiles) }
	s := results.Switch{Enqueue: part(Enqueue), Transport: part(Transport), Wait: part(Wait), Extend: part(Extend)}
	if s == (results.Switch{}) {
		return nil
	}
	return &s
}

// doubts joins the percentiles that are over too few requests into one sentence each.
func (c *Collector) doubts(ttft, tpot int) string {
	var notes []string
	note := func(what string, p float64, n int) {
		if d := Doubt(what, p, n); d != "" {
			notes = append(notes, d)
		}
	}
	for _, p := range percentiles(c.config.Percentiles) {
		switch {
		case p < 99: // a few dozen requests are enough for those
		case ttft == tpot:
			note("ttft, tpot and e2e", p, ttft)
		default: // tpot is over those of two tokens or more
			note("ttft and e2e", p, ttft)
			note("tpot", p, tpot)
		}
	}
	return strings.Join(notes, "; ")
}

// Doubts gathers the notes of points, each once, and says of how many points it holds.
func Doubts(points []results.Point) []string {
	var notes []string
	count := map[string]int{}
	for i := range points {
		note := points[i].Note
		if note == "" {
			continue
		}
		if count[note]++; count[note] == 1 {
			notes = append(notes, note)
		}
	}
	for i, note := range notes {
		notes[i] = fmt.Sprintf("%s (%d of %d points)", note, count[note], len(points))
	}
	return notes
}
