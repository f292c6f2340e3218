package serve

import (
	"context"
	"errors"
	"fmt"
)

// ErrStranded is the kind of a run that can't go on: the request that has waited longest does not fit though nobody runs.
var ErrStranded = errors.New("no request can run")

// loop serves until the trace is done.
//
// With Async the host plans a step as soon as the one before the last has ended, while the last one runs; it is launched
// behind it, so that the GPU goes on at once. What a step brings is so seen when the next one has been planned already:
// a request that comes, or KV that becomes free, during one step counts for the next but one.
func (w *world) loop(ctx context.Context) error {
	depth := 1
	if w.cfg.Async {
		depth = 2
	}
	for {
		w.arrive()
		if len(w.run)+len(w.wait) > 0 && w.launch() && len(w.flight) < depth && w.flight[0].end > w.now {
			continue
		}
		if len(w.flight) > 0 {
			w.await()
			if err := w.check(); err != nil {
				return err
			}
			if w.out.Steps&0xff == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			continue
		}
		switch {
		case len(w.run)+len(w.wait) > 0:
			id := w.wait[len(w.wait)-1]
			return fmt.Errorf("serve: %w: at %v request %d waits with %d tokens, %d blocks are free", ErrStranded, w.now, id,
				w.seqs[id].known, w.pool.Free())
		case w.next == len(w.order):
			w.out.End = w.now
			return nil
		}
		w.now = w.requests[w.order[w.next]].Arrival
	}
}

// launch plans a step and puts it behind those on the GPU; false if there is nothing to run now.
func (w *world) launch() bool {
	rows, shape := w.plan()
	if len(rows) == 0 {
		w.spare = append(w.spare, rows)
		return false
	}
	d := w.cfg.Latency.Time(shape)
	w.gpu = max(w.gpu, w.now).Add(d)
	w.flight = append(w.flight, flying{rows, w.gpu})
	w.out.Busy += d
	w.out.Steps++
	return true
}

// await waits for the oldest step in flight.
func (w *world) await() {
	s := w.flight[0]
	w.flight = append(w.flight[:0], w.flight[1:]...)
	w.now = max(w.now, s.end)
	w.complete(s.rows)
	w.spare = append(w.spare, s.rows[:0])
}

// check looks at the invariants where the config asks for it.
func (w *world) check() error {
	if !w.cfg.Check {
		return nil
	}
	held := map[int32]bool{}
	for id := range w.seqs {
		s := &w.seqs[id]
		if s.state != running && len(s.blocks) > 0 {
			return fmt.Errorf("serve: request %d does not run and holds %d blocks", id, len(s.blocks))
		}
		if s.state == running && int32(len(s.blocks)) != w.blocksOf(s.computed) {
			return fmt.Errorf("serve: request %d: %d tokens in %d blocks", id, s.computed, len(s.blocks))
		}
		if s.computed > s.known+s.planned || s.known != w.requests[id].Prompt+s.output && s.known > 0 {
			return fmt.Errorf("serve: request %d: %d known, %d computed, %d planned, %d sampled", id, s.known, s.computed,
				s.planned, s.output)
		}
		for _, b := range s.blocks {
			held[b] = true
		}
	}
	if n := int32(len(held)); n != w.pool.Held() {
		return fmt.Errorf("serve: requests hold %d blocks, the pool says %d", n, w.pool.Held())
	}
	return w.pool.Valid()
}
