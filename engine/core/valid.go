package core

import (
	"fmt"

	"github.com/trbench/trbench/engine/step"
)

// Valid checks the invariants; it costs time in proportion to all live requests. Tests call it after every step.
func (s *Subserver) Valid() error {
	inRun := make(map[step.Handle]bool, len(s.run))
	for _, h := range s.run {
		if inRun[h] {
			return fmt.Errorf("subserver %d: request %d runs twice", s.cfg.Model, s.seqs[h].id)
		}
		inRun[h] = true
	}
	inWait := make(map[step.Handle]bool, s.wait.len())
	for _, h := range s.wait.h[s.wait.head:] {
		if inWait[h] || inRun[h] {
			return fmt.Errorf("subserver %d: request %d is queued twice", s.cfg.Model, s.seqs[h].id)
		}
		inWait[h] = true
	}
	held := int32(0)
	for h := range s.seqs {
		q := &s.seqs[h]
		h := step.Handle(h)
		if inRun[h] != (q.state == running) || inWait[h] != (q.state == waiting) {
			return fmt.Errorf("subserver %d: request %d: state %d, in run %v, in queue %v", s.cfg.Model, q.id, q.state, inRun[h], inWait[h])
		}
		if q.state == running {
			held += q.blocks
		}
		if q.blocks < 0 || q.kv > q.blocks*s.cfg.BlockTokens {
			return fmt.Errorf("subserver %d: request %d: %d tokens in %d blocks", s.cfg.Model, q.id, q.kv, q.blocks)
		}
		if q.state != absent && (q.kv > q.n || q.committed > q.n || q.committed > q.end) {
			return fmt.Errorf("subserver %d: request %d: kv %d, committed %d, known %d, end %d", s.cfg.Model, q.id, q.kv, q.committed, q.n, q.end)
		}
	}
	if held+s.kept.Blocks()+s.pool.Free() != s.pool.Total() {
		return fmt.Errorf("subserver %d: running %d + kept %d + free %d blocks, want %d", s.cfg.Model, held, s.kept.Blocks(),
			s.pool.Free(), s.pool.Total())
	}
	if s.cont > len(s.run) {
		return fmt.Errorf("subserver %d: %d rows continue of %d", s.cfg.Model, s.cont, len(s.run))
	}
	return nil
}

// Idle reports an error unless nothing is left here but cached prefixes: what must hold when all requests have ended.
func (s *Subserver) Idle() error {
	if s.busy || s.available() > 0 {
		return fmt.Errorf("subserver %d: not idle: in flight %v, %d available", s.cfg.Model, s.busy, s.available())
	}
	for h := range s.seqs {
		if s.seqs[h].state != absent {
			return fmt.Errorf("subserver %d: request %d is still here", s.cfg.Model, s.seqs[h].id)
		}
	}
	if s.kept.Blocks()+s.pool.Free() != s.pool.Total() {
		return fmt.Errorf("subserver %d: %d blocks kept + %d free, want %d", s.cfg.Model, s.kept.Blocks(), s.pool.Free(), s.pool.Total())
	}
	return nil
}
