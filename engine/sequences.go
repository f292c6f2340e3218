package engine

import (
	"sync"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/step"
)

// Sequences holds the token ids of an engine's requests, for backends that compute: the prompt, what is committed and
// what is drafted. A model reads a request's tokens while it runs it, and nobody writes them meanwhile.
type Sequences struct {
	mu   sync.Mutex
	live []sequence // by handle
}

type sequence struct {
	tokens    []int32
	committed int32
}

// NewSequences returns an empty table.
func NewSequences() *Sequences { return &Sequences{} }

// Tokens are the tokens known of a request.
func (s *Sequences) Tokens(h step.Handle) []int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[h].tokens
}

// begin takes a new request's prompt.
func (s *Sequences) begin(h step.Handle, prompt []int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for int(h) >= len(s.live) {
		s.live = append(s.live, sequence{})
	}
	q := &s.live[h]
	q.tokens = append(q.tokens[:0], prompt...)
	q.committed = int32(len(prompt))
}

// stepped adds what a step has sampled, as the core has decided on it.
func (s *Sequences) stepped(b *step.Batch, res *step.Result, eff *core.Effects) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := int32(0) // draft of the row
	for i, h := range b.Handle {
		drafted := int32(0)
		if b.Verify != nil {
			drafted = b.Verify[i]
		}
		if b.Sample[i] {
			row, token := eff.Rows[i], res.Token[i]
			if row.Accept < drafted && row.Known > 0 && res.Drafts != nil {
				token = res.Drafts[first+row.Accept].Instead
			}
			q := &s.live[h]
			q.tokens = append(q.tokens[:b.Pos[i]-drafted+row.Accept], token)
			if row.Known > 0 {
				q.tokens = q.tokens[:row.Known]
			}
		}
		first += drafted
	}
}

// commit returns the ids of the next n tokens that are committed; they are the caller's.
func (s *Sequences) commit(h step.Handle, n int32) []int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := &s.live[h]
	ids := append([]int32(nil), q.tokens[q.committed:q.committed+n]...)
	q.committed += n
	return ids
}
