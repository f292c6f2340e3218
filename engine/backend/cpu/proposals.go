package cpu

import (
	"sync"

	"github.com/trbench/trbench/engine/step"
)

// Proposals keeps, for the models of one engine, the logits that recently sampled tokens come from: the tokens of a
// request that no model has committed yet are drafts, and the model that verifies them needs what they were sampled
// from. Its methods may be called by several goroutines. The methods of nil keep nothing.
type Proposals struct {
	depth int
	mu    sync.Mutex
	seqs  [][]proposal // by handle; by rising position
}

// proposal is a sampled token and what it was sampled from.
type proposal struct {
	request step.RequestID
	model   step.ModelID
	pos     int32 // of the token in the sequence
	token   int32
	logits  []float32
}

// NewProposals returns an empty table that remembers the last depth tokens of each request: as many as are drafted
// before a verification.
func NewProposals(depth int) *Proposals { return &Proposals{depth: max(1, depth)} }

// put remembers p with a copy of logits, in the place of what h had at or beyond its position.
func (t *Proposals) put(h step.Handle, p proposal, logits []float32) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for int(h) >= len(t.seqs) {
		t.seqs = append(t.seqs, nil)
	}
	s := t.seqs[h]
	kept := len(s)
	for kept > 0 && (s[kept-1].pos >= p.pos || s[kept-1].request != p.request) {
		kept--
	}
	var memory []float32
	switch {
	case kept < len(s):
		memory = s[kept].logits
	case kept == t.depth:
		memory = s[0].logits
		copy(s, s[1:])
		kept--
	}
	p.logits = append(memory[:0], logits...)
	t.seqs[h] = append(s[:kept], p)
}

// get returns the logits that the token of want was sampled from by another model; nil if they are not known.
func (t *Proposals) get(h step.Handle, want proposal) []float32 {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if int(h) >= len(t.seqs) {
		return nil
	}
	for _, p := range t.seqs[h] {
		if p.pos == want.pos && p.request == want.request && p.token == want.token && p.model != want.model {
			return p.logits
		}
	}
	return nil
}

// release forgets h.
func (t *Proposals) release(h step.Handle) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if int(h) < len(t.seqs) {
		t.seqs[h] = nil
	}
}
