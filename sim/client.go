package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/metrics"
)

// client is the client loop: it issues requests, and keeps what their records need.
type client struct {
	live      []live        // by handle
	free      []step.Handle // handles nobody uses
	next      int           // requests issued
	scheduled int           // of a closed loop: those whose arrival is queued or past
	active    int           // admitted, unfinished
	ended     int
	room      int64 // tokens of the smallest KV pool
	steady    window
	record    results.Request
}

// live is one request as its client sees it.
type live struct {
	arrival, first, last clock.Instant
	gap                  time.Duration // longest
	id                   step.RequestID
	output, large, hops  int32
	agreed               int32   // tokens that the large model wrote, or would have written too
	nats                 float64 // sum of -ln p of the reference's tokens under the models that wrote in their place
	refs                 int32   // subservers that have not let go of the handle yet
	warm                 bool
}

// window counts the tokens committed while all workers are busy.
type window struct {
	from, to clock.Instant
	tokens   int64 // committed so far
	before   int64 // of which by from
	warm     int   // warm-up requests still to end
	closed   bool
}

func (c *client) init(cfg *Config) {
	c.room = math.MaxInt64
	for _, m := range cfg.Models {
		if m.KVTokens > 0 {
			c.room = min(c.room, int64(blocks(m.KVTokens))*core.DefaultBlockTokens)
		}
	}
	c.steady = window{warm: cfg.Warmup}
}

// open schedules the first arrivals: one a worker in a closed loop, the first scheduled one in an open loop.
func (w *world) open() {
	if w.cfg.Arrivals != nil {
		w.queue.Push(w.cfg.Arrivals[0], atSubmission, evArrive, 0, 0)
		return
	}
	w.scheduled = min(w.cfg.Clients, len(w.cfg.Requests))
	for range w.scheduled {
		w.queue.Push(0, atSubmission, evArrive, 0, 0)
	}
}

// arrive issues the next request of the list.
func (w *world) arrive() error {
	id := w.next
	w.next++
	if w.cfg.Arrivals != nil && w.next < len(w.cfg.Requests) {
		w.queue.Push(w.cfg.Arrivals[w.next], atSubmission, evArrive, 0, 0)
	}
	r := w.cfg.Requests[id]
	if need := int64(r.Prompt) + int64(r.Output); need > w.room {
		w.reject(id, fmt.Sprintf("prompt %d + output %d = %d tokens exceed the KV pool of %d", r.Prompt, r.Output, need, w.room))
		return nil
	}
	h := step.Handle(len(w.live))
	if n := len(w.free); n > 0 {
		h = w.free[n-1]
		w.free = w.free[:n-1]
	} else {
		w.live = append(w.live, live{})
	}
	w.live[h] = live{arrival: w.now, id: step.RequestID(id), warm: id < w.cfg.Warmup, refs: 1}
	w.active++
	a := route.Arrival{At: w.now, Handle: h, ID: step.RequestID(id), Prompt: r.Prompt, Output: r.Output}
	if s, ok := w.cfg.Signal.(signal.Admitter); ok {
		a.Score = s.Admit(h, a.ID, r.Prompt)
	}
	if w.rpc != nil {
		w.rpc.admit(w, a)
		return nil
	}
	first := step.ModelID(0)
	if w.follower != nil {
		var err error
		if first, err = w.follower.Begin(a); err != nil {
			w.end(h, err)
			w.release(h)
			return nil
		}
	}
	w.setActive(first)
	return w.subs[first].Submit(w.now, core.Request{Handle: h, ID: a.ID, Prompt: r.Prompt, Max: r.Output})
}

// reject ends a request that can never run.
func (w *world) reject(id int, why string) {
	r := w.cfg.Requests[id]
	w.ended++
	w.emit(&results.Request{
		ID: int32(id), Arrival: w.now, Sent: w.now, PromptTokens: r.Prompt, Status: results.Rejected, Error: why, Warmup: id < w.cfg.Warmup,
	})
	w.reissue(id < w.cfg.Warmup)
}

// commit records committed tokens. Neighbouring rows with the same gap make one entry in the histogram.
func (w *world) commit(commits []core.Commit, large bool) {
	var gap time.Duration
	same := 0
	for i := range commits {
		c := &commits[i]
		l := &w.live[c.Handle]
		w.steady.tokens += int64(c.Tokens)
		if large {
			l.large += c.Own
		}
		if w.judge != nil {
			w.agreement(l, c, large)
		}
		if w.cfg.Log != nil {
			w.cfg.Log.Commit(w.now, l.id, c.Tokens)
		}
		if l.output == 0 {
			l.first = w.now
			if !l.warm {
				w.out.CommitFirst(int(c.Tokens))
			}
		} else {
			d := w.now.Sub(l.last)
			l.gap = max(l.gap, d)
			switch {
			case l.warm:
			case c.Tokens > 1:
				w.out.Commit(d, int(c.Tokens))
			case d == gap:
				same++
			default:
				if same > 0 {
					w.out.CommitN(gap, same)
				}
				gap, same = d, 1
			}
		}
		l.output += c.Tokens
		l.last = w.now
	}
	if same > 0 {
		w.out.CommitN(gap, same)
	}
}

// agreement counts the committed tokens that the large model would have written too, and grades them.
func (w *world) agreement(l *live, c *core.Commit, large bool) {
	before := l.agreed
	for k := range c.Tokens {
		own := large && k >= c.Tokens-c.Own
		if own || w.judge.Agrees(l.id, l.output+k) {
			l.agreed++
		}
		if w.grader != nil {
			l.nats += w.grader.NLL(l.id, l.output+k, own)
		}
	}
	if !l.warm {
		w.out.Quality.Judged += int64(c.Tokens)
		w.out.Quality.Agreed += int64(l.agreed - before)
	}
}

// end records a request that finished, or that err failed, and lets its worker issue the next one.
func (w *world) end(h step.Handle, err error) {
	l := &w.live[h]
	w.active--
	w.ended++
	if w.follower != nil && w.rpc == nil {
		w.follower.End(h)
	}
	w.record = results.Request{
		ID: int32(l.id), Arrival: l.arrival, Sent: l.arrival, First: l.first, Last: l.last,
		PromptTokens: w.cfg.Requests[l.id].Prompt, OutputTokens: l.output, LargeTokens: l.large, Hops: l.hops,
		MaxITL: l.gap, Status: results.Finished, Warmup: l.warm,
	}
	if w.judge != nil {
		tokens := results.F(float64(l.output))
		w.record.Agreement = results.Ratio(results.F(float64(l.agreed)), tokens)
		if w.grader != nil {
			w.record.NLL = results.Ratio(results.F(l.nats), tokens)
		}
	}
	if err != nil {
		w.cfg.Log.Failed(w.now, l.id)
		w.record.Status, w.record.Error = results.Failed, err.Error()
	} else {
		w.cfg.Log.Done(w.now, l.id)
	}
	w.emit(&w.record)
	w.reissue(l.warm)
}

func (w *world) emit(r *results.Request) {
	w.out.Add(r)
	if w.cfg.Ended != nil {
		w.cfg.Ended(r)
	}
}

// reissue follows an end: the worker's next arrival in a closed loop, and the bounds of the steady window.
func (w *world) reissue(warm bool) {
	if warm {
		if w.steady.warm--; w.steady.warm == 0 {
			w.steady.from, w.steady.before = w.now, w.steady.tokens
		}
	}
	if w.cfg.Arrivals != nil {
		return
	}
	if w.scheduled < len(w.cfg.Requests) {
		w.scheduled++
		w.queue.Push(w.now, atSubmission, evArrive, 0, 0)
		return
	}
	if !w.steady.closed {
		w.steady.closed = true
		w.steady.to = w.now
		if w.steady.warm == 0 {
			w.out.Steady(metrics.Window{From: w.steady.from, To: w.now, Tokens: w.steady.tokens - w.steady.before})
		}
	}
}

// release drops one hold on a handle; the last one frees it.
func (w *world) release(h step.Handle) {
	l := &w.live[h]
	if l.refs--; l.refs == 0 {
		w.free = append(w.free, h)
	}
}
