package core

import (
	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
)

// Next returns the batch to run now, or, with ok false, the instant at which to ask again (clock.Never: on the next
// event). The Subserver owns the batch; it is in flight until Complete.
func (s *Subserver) Next(now clock.Instant) (b *step.Batch, wake clock.Instant, ok bool) {
	avail := s.available()
	if s.busy || avail == 0 {
		return nil, clock.Never, false
	}
	rows := len(s.run)
	admit := true
	if avail < int(s.need) {
		if s.cfg.Policy.Timer <= 0 {
			return nil, clock.Never, false
		}
		if at := s.oldest().Add(s.cfg.Policy.Timer); now < at {
			return nil, at, false
		}
	}
	if s.cfg.Policy.Gate > 1 && s.cont > 0 && avail-s.cont < s.cfg.Policy.Gate {
		rows, admit = s.cont, false
	}
	s.form(rows, admit)
	if s.batch.Len() == 0 {
		return nil, clock.Never, false
	}
	s.busy = true
	s.cont = s.batch.Len()
	s.batch.Step = s.stats.Steps
	s.stats.Steps++
	s.stats.Rows += int64(s.batch.Len())
	return &s.batch, 0, true
}

// oldest is when the request that has waited longest became available.
func (s *Subserver) oldest() clock.Instant {
	t := clock.Never
	if s.cont > 0 {
		t = s.stayed
	}
	if s.cont < len(s.run) {
		t = min(t, s.since(s.run[s.cont]))
	}
	if s.wait.len() > 0 {
		t = min(t, s.since(s.wait.front()))
	}
	return t
}

// since is when h became available; a preempted request counts from the step that preempted it.
func (s *Subserver) since(h step.Handle) clock.Instant {
	if t := s.seqs[h].since; t != step.Fresh {
		return t
	}
	return s.stayed
}

// former is a batch being formed.
type former struct {
	shape  step.Shape
	budget int32
	rows   int
}

// form fills s.batch: the first rows of run in order, then, if all of them fit and nobody was preempted, requests from
// the queue. A step that preempts admits nothing.
func (s *Subserver) form(rows int, admit bool) {
	most := min(s.cfg.Policy.MaxBatch, rows+s.wait.len())
	if cap(s.batch.Handle) < most {
		s.grow(max(most, 2*cap(s.batch.Handle)))
	}
	s.reslice(cap(s.batch.Handle))
	f := former{budget: int32(s.cfg.Policy.TokenBudget)}
	whole := len(s.run) == rows
	preempted := s.stats.Preempted
	blockTokens := s.cfg.BlockTokens

	for f.rows < min(rows, len(s.run), s.cfg.Policy.MaxBatch) {
		h := s.run[f.rows]
		q := &s.seqs[h]
		feed := s.feed(q, f.budget, f.rows == 0)
		if feed <= 0 {
			break
		}
		if end := q.kv + feed; end > q.blocks*blockTokens {
			if !s.extend(f.rows, q, s.pool.Blocks(end)-q.blocks) {
				break
			}
		}
		s.row(&f, h, q, feed)
	}
	if admit && whole && f.rows == len(s.run) && s.stats.Preempted == preempted {
		s.admit(&f)
	}
	s.reslice(f.rows)
	s.batch.Shape = f.shape
}

// grow gives the batch's columns room for n rows.
func (s *Subserver) grow(n int) {
	b := &s.batch
	b.Handle, b.ID = make([]step.Handle, n), make([]step.RequestID, n)
	b.Pos, b.Feed = make([]int32, n), make([]int32, n)
	b.Sample, b.Since = make([]bool, n), make([]clock.Instant, n)
	if s.scores {
		b.Verify = make([]int32, n)
	}
}

// reslice makes the batch's columns n rows long.
func (s *Subserver) reslice(n int) {
	b := &s.batch
	b.Handle, b.ID, b.Pos, b.Feed = b.Handle[:n], b.ID[:n], b.Pos[:n], b.Feed[:n]
	b.Sample, b.Since = b.Sample[:n], b.Since[:n]
	if s.scores {
		b.Verify = b.Verify[:n]
	}
}

// feed is how many of q's unprocessed tokens fit the budget. Drafts are scored in one pass, together with the token
// before them, so a chunk ends before that token or covers them all; the first row may exceed the budget for that.
func (s *Subserver) feed(q *seq, budget int32, first bool) int32 {
	want := q.n - q.kv
	if want <= budget || q.flags&verify == 0 {
		return min(want, budget)
	}
	if known := q.committed - 1 - q.kv; known > 0 {
		return min(known, budget)
	}
	if first {
		return want
	}
	return 0
}

// row adds one request to the batch and prices it into the shape.
func (s *Subserver) row(f *former, h step.Handle, q *seq, feed int32) {
	b := &s.batch
	pos := q.kv + feed
	f.budget -= feed
	f.shape.Longest = max(f.shape.Longest, int(pos))
	if feed == 1 && q.kv > 0 {
		f.shape.Decodes++
		f.shape.DecodeContext += int64(pos)
	} else {
		f.shape.Extends++
		f.shape.ExtendTokens += int64(feed)
		f.shape.ExtendWork += int64(feed) * int64(feed+2*q.kv)
		f.shape.ExtendContext += int64(pos)
	}
	since := step.Fresh
	if q.flags&peer != 0 {
		since = q.since
		q.flags &^= peer
	}
	q.since = step.Fresh
	k := f.rows
	f.rows++
	b.Handle[k] = h
	b.ID[k] = q.id
	b.Pos[k] = pos
	b.Feed[k] = feed
	b.Sample[k] = pos == q.n
	b.Since[k] = since
	if s.scores {
		drafted := int32(0)
		if q.flags&verify != 0 && pos == q.n {
			drafted = q.n - q.committed
		}
		b.Verify[k] = drafted
	}
}

// admit takes requests from the queue, first come first served, while the batch, the budget and KV have room. A request
// enters only if all its known tokens fit KV (vLLM's rule), though a chunk takes only the blocks that it fills.
func (s *Subserver) admit(f *former) {
	for s.wait.len() > 0 && len(s.run) < s.cfg.Policy.MaxBatch && f.budget > 0 {
		h := s.wait.front()
		q := &s.seqs[h]
		feed := s.feed(q, f.budget, f.rows == 0)
		if feed <= 0 || !s.claim(h, q, feed) {
			return
		}
		s.wait.pop()
		q.state = running
		s.run = append(s.run, h)
		s.row(f, h, q, feed)
	}
}
