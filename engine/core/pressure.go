package core

import "github.com/trbench/trbench/engine/step"

// extend gets need more blocks for row k of the batch being formed: from the pool, then from what is retained, oldest
// first, then from the youngest running request. If row k is itself the youngest, it is the one preempted, and false
// comes back.
func (s *Subserver) extend(k int, q *seq, need int32) bool {
	for !s.reclaim(need) {
		if last := len(s.run) - 1; last > k {
			s.preempt(last)
			continue
		}
		s.preempt(k)
		return false
	}
	s.pool.Take(need)
	q.blocks += need
	return true
}

// claim gets the blocks that let a waiting request in, and takes its cached prefix out of the cache. It changes nothing
// if they can't be had.
func (s *Subserver) claim(h step.Handle, q *seq, feed int32) bool {
	hold := s.pool.Blocks(q.kv)
	whole := s.pool.Blocks(q.n) - hold
	if free := s.pool.Free() + s.kept.Blocks() - min(hold, q.blocks); whole > free {
		return false
	}
	s.pool.Give(s.kept.Remove(h) - hold)
	q.blocks = hold
	need := max(0, s.pool.Blocks(q.kv+feed)-hold)
	if !s.reclaim(need) {
		panic("core: blocks counted as free are not")
	}
	s.pool.Take(need)
	q.blocks += need
	return true
}

// reclaim frees retained KV, oldest first, until need blocks are free. A pending request loses all of its KV: it is
// recomputed when it returns. A prefix cache loses blocks from the end of the oldest entry, as vLLM's does.
func (s *Subserver) reclaim(need int32) bool {
	for s.pool.Free() < need {
		h, blocks, ok := s.kept.Oldest()
		if !ok {
			return false
		}
		if s.cfg.Retain != Resident {
			blocks = min(blocks, need-s.pool.Free())
		}
		s.kept.ShrinkOldest(blocks)
		s.pool.Give(blocks)
		s.stats.Dropped++
		if h < 0 {
			continue
		}
		q := &s.seqs[h]
		before := q.kv
		q.blocks -= blocks
		q.kv = min(q.kv, q.blocks*s.cfg.BlockTokens)
		s.stats.Recompute += int64(before - q.kv)
		if q.blocks == 0 && q.state == absent {
			*q = seq{}
		}
	}
	return true
}

// preempt takes all KV from row i of run; it waits, before everybody else, to be recomputed.
func (s *Subserver) preempt(i int) {
	h := s.run[i]
	q := &s.seqs[h]
	s.pool.Give(q.blocks)
	s.stats.Recompute += int64(q.kv)
	s.stats.Preempted++
	q.blocks, q.kv, q.state, q.since = 0, 0, waiting, step.Fresh
	s.removeRun(i)
	s.wait.pushFront(h)
}
