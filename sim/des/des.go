// Package des is the event queue of a discrete-event simulation: a typed binary heap ordered by (Instant, priority,
// order of Push), so that a run is one sequence of events whatever the map or goroutine.
package des

import "github.com/trbench/trbench/engine/clock"

// Event is something that happens at an Instant. Kind and Arg are the caller's.
type Event struct {
	At   clock.Instant
	rank uint64 // priority<<56 | order of Push
	Kind uint8
	Arg  int32
	Tag  uint32 // the caller's: a generation, so that an event can be outdated
}

// Queue is a heap of events. The zero Queue is empty and ready.
type Queue struct {
	heap   []Event
	pushed uint64
}

// Len is the number of events that wait.
func (q *Queue) Len() int { return len(q.heap) }

// NextAt is the Instant of the next event, clock.Never if there is none.
func (q *Queue) NextAt() clock.Instant {
	if len(q.heap) == 0 {
		return clock.Never
	}
	return q.heap[0].At
}

func before(a, b *Event) bool { return a.At < b.At || a.At == b.At && a.rank < b.rank }

// Push adds an event. Within one Instant a lower priority value comes first, then the earlier Push.
func (q *Queue) Push(at clock.Instant, priority, kind uint8, arg int32, tag uint32) {
	e := Event{At: at, rank: uint64(priority)<<56 | q.pushed, Kind: kind, Arg: arg, Tag: tag}
	q.pushed++
	q.heap = append(q.heap, e)
	h := q.heap
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !before(&e, &h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
}

// Pop takes the next event out. The queue must not be empty.
func (q *Queue) Pop() Event {
	h := q.heap
	top := h[0]
	n := len(h) - 1
	e := h[n]
	h = h[:n]
	q.heap = h
	if n == 0 {
		return top
	}
	i := 0
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if r := c + 1; r < n && before(&h[r], &h[c]) {
			c = r
		}
		if !before(&h[c], &e) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = e
	return top
}
