package metrics

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/results"
)

// steadyRate is tokens per second over the steady window; nothing where there is none.
func (c *Collector) steadyRate() results.Float {
	w := c.steady
	if w == nil {
		found, ok := c.window()
		if !ok {
			return results.Float{}
		}
		w = &found
	}
	if w.To <= w.From {
		return results.Float{}
	}
	return results.F(float64(w.Tokens) / seconds(w.To.Sub(w.From)))
}

// window finds the time in which all workers of the closed loop are busy: from the first instant at which as many
// requests as workers are there, and no warm-up is left, to the last at which one leaves and none takes its place.
func (c *Collector) window() (Window, bool) {
	if c.config.Concurrency <= 0 {
		return Window{}, false
	}
	type change struct {
		at    clock.Instant
		delta int
	}
	changes := make([]change, 0, 2*(len(c.done)+len(c.rest)))
	for _, list := range [][]span{c.done, c.rest} {
		for i := range list {
			if s := &list[i]; s.output > 0 {
				changes = append(changes, change{s.arrival, +1}, change{s.last, -1})
			}
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	w := Window{From: clock.Never, To: -1}
	busy, full := 0, false
	for i := 0; i < len(changes); {
		at := changes[i].at
		for ; i < len(changes) && changes[i].at == at; i++ {
			busy += changes[i].delta // it may fall and rise again within the instant
		}
		wasFull := full
		if full = busy >= c.config.Concurrency; full && w.From == clock.Never {
			w.From = at
		} else if wasFull && !full {
			w.To = at
		}
	}
	w.From = max(w.From, c.warmEnd)
	if w.To <= w.From {
		return Window{}, false
	}
	for i := range c.done {
		s := &c.done[i]
		w.Tokens += s.until(w.To) - s.until(w.From)
	}
	return w, true
}

// until is the number of tokens committed at t or before, the tokens taken as evenly spread from first to last.
func (s *span) until(t clock.Instant) int64 {
	switch {
	case s.output <= 0 || t < s.first:
		return 0
	case t >= s.last:
		return int64(s.output)
	}
	high, low := bits.Mul64(uint64(t-s.first), uint64(s.output-1))
	more, _ := bits.Div64(high, low, uint64(s.last-s.first))
	return 1 + int64(more)
}
