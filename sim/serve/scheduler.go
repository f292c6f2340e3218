package serve

import (
	"slices"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/kv"
	"github.com/trbench/trbench/models/latency/kernels"
)

type state uint8

const (
	absent state = iota // not arrived, or finished
	waiting
	running
)

// seq is a request in the server.
//
// Invariant: computed <= known + planned, and blocks hold computed tokens while it runs; filled <= len(blocks).
type seq struct {
	known    int32 // tokens of prompt and output that the scheduler has seen
	computed int32 // tokens in KV once the steps in flight have ended
	planned  int32 // output tokens that the steps in flight sample
	output   int32 // tokens sampled
	filled   int32 // leading blocks that have a content
	state    state
	lost     int32 // tokens that were in KV when it was preempted; 0 if it never was
	blocks   []kv.Block
}

// row is one request's part of a step.
type row struct {
	id     int32
	sample bool // the step reaches the end of what is known, and samples a token
}

// flying is a step in flight.
type flying struct {
	rows []row
	end  clock.Instant
}

// world is the server and the trace that it serves.
type world struct {
	cfg      *Config
	requests []Request
	order    []int32 // by arrival
	next     int     // of order
	ended    int

	seqs   []seq
	wait   []int32 // the front is its end: a preempted request goes there
	run    []int32 // in the order of admission
	pool   *kv.Blocks
	found  []kv.Block
	flight []flying // oldest first; at most two
	spare  [][]row
	now    clock.Instant // the host's
	gpu    clock.Instant // when the GPU is free
	out    Outcome
}

func newWorld(c *Config, requests []Request, order []int32) *world {
	w := &world{cfg: c, requests: requests, order: order, seqs: make([]seq, len(requests))}
	w.pool = kv.NewBlocks(max(0, c.Blocks-1), c.Caching)
	w.out.Requests = make([]Times, len(requests))
	return w
}

// arrive takes the requests that have come.
func (w *world) arrive() {
	from := w.next
	for w.next < len(w.order) && w.requests[w.order[w.next]].Arrival <= w.now {
		id := w.order[w.next]
		w.seqs[id] = seq{known: w.requests[id].Prompt, state: waiting}
		w.next++
	}
	if w.next > from {
		w.wait = slices.Insert(w.wait, 0, w.order[from:w.next]...)
		slices.Reverse(w.wait[:w.next-from])
	}
}

// plan forms the next step: running requests first, in the order of their admission, then waiting ones. A step that
// preempts admits nobody.
func (w *world) plan() ([]row, kernels.Shape) {
	var shape kernels.Shape
	var rows []row
	if n := len(w.spare); n > 0 {
		rows, w.spare = w.spare[n-1], w.spare[:n-1]
	}
	budget := int32(w.cfg.TokenBudget)
	preempted := w.out.Preempted
	for i := 0; i < len(w.run) && budget > 0; i++ {
		id := w.run[i]
		s := &w.seqs[id]
		if s.output+s.planned == w.requests[id].Output {
			continue // its last token is on its way
		}
		n := min(s.known+s.planned-s.computed, budget)
		if !w.room(i, id, s, n) {
			break
		}
		budget -= n
		rows = append(rows, w.feed(&shape, id, s, n))
	}
	if w.out.Preempted == preempted {
		rows = w.admit(rows, &shape, budget)
	}
	return rows, shape
}

// room gets the KV for running request i, from the last admitted ones if it must; false if it was preempted itself.
func (w *world) room(i int, id int32, s *seq, n int32) bool {
	for !w.extend(id, s, n) {
		last := len(w.run) - 1
		w.preempt(last)
		if last == i {
			return false
		}
	}
	return true
}

// preempt takes all KV from running request i, the last one; it waits before all others, to be computed again.
func (w *world) preempt(i int) {
	id := w.run[i]
	s := &w.seqs[id]
	w.out.Preempted++
	s.state, s.lost = waiting, s.computed
	w.drop(s)
	w.run = w.run[:i]
	w.wait = append(w.wait, id)
}

// admit takes waiting requests, first come first served.
func (w *world) admit(rows []row, shape *kernels.Shape, budget int32) []row {
	for len(w.wait) > 0 && budget > 0 && len(w.run) < w.cfg.MaxSeqs {
		id := w.wait[len(w.wait)-1]
		s := &w.seqs[id]
		hits := w.hits(id, s)
		cached := int32(len(hits)) * w.cfg.BlockTokens
		n := s.known - cached
		if n > budget {
			if !w.cfg.Chunked {
				break
			}
			n = budget
		}
		if !w.claim(id, s, hits, n) {
			break
		}
		w.wait = w.wait[:len(w.wait)-1]
		w.run = append(w.run, id)
		s.state = running
		if s.lost > 0 {
			w.out.Recomputed += int64(s.lost - cached)
		} else {
			w.out.Requests[id].Scheduled = w.now
			w.out.CacheHits += int64(cached)
		}
		budget -= n
		rows = append(rows, w.feed(shape, id, s, n))
	}
	return rows
}

// feed adds n tokens of a request to the step.
func (w *world) feed(shape *kernels.Shape, id int32, s *seq, n int32) row {
	before := s.computed
	s.computed += n
	context := int(s.computed)
	shape.Longest = max(shape.Longest, context)
	if n == 1 && before > 0 {
		shape.Decodes++
		shape.DecodeContext += int64(context)
		shape.DecodeLongest = max(shape.DecodeLongest, context)
		shape.DecodeSquares += float64(context) * float64(context)
	} else {
		shape.Extends++
		shape.ExtendTokens += int64(n)
		shape.ExtendWork += int64(n) * int64(n+2*before)
		shape.ExtendContext += int64(context)
	}
	sample := s.computed == s.known+s.planned
	if sample {
		s.planned++
	}
	return row{id, sample}
}

// complete takes the tokens of a step that has ended.
func (w *world) complete(rows []row) {
	ended := w.ended
	for _, r := range rows {
		if !r.sample {
			continue
		}
		s := &w.seqs[r.id]
		s.known++
		s.planned--
		s.output++
		t := &w.out.Requests[r.id]
		if t.Last = w.now; s.output == 1 {
			t.First = w.now
		}
		if s.output < w.requests[r.id].Output {
			if s.state == running {
				w.fill(r.id, s, s.computed-s.planned)
			}
			continue
		}
		if s.state == waiting { // preempted while its last token was on its way
			w.wait = slices.DeleteFunc(w.wait, func(id int32) bool { return id == r.id })
		}
		w.drop(s)
		s.state = absent
		w.ended++
	}
	if w.ended > ended {
		w.run = slices.DeleteFunc(w.run, func(id int32) bool { return w.seqs[id].state == absent })
	}
	w.out.Samples = append(w.out.Samples, Sample{w.now, len(w.run), len(w.wait), w.pool.Held()})
}
