package engine

import (
	"sync/atomic"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/step"
)

// Sequences holds the token ids of an engine's requests, for backends that compute: the prompt, what is committed and
// what is drafted. The engine writes under its lock. A model reads a request's tokens while it runs it, and nobody writes
// them meanwhile, so that its step takes no lock: only the table is shared, and a table that grows is a new one.
type Sequences struct {
	live atomic.Pointer[[]*sequence] // by handle
}

type sequence struct {
	tokens    []int32
	committed int32
}

// NewSequences returns an empty table.
func NewSequences() *Sequences {
	s := &Sequences{}
	s.live.Store(&[]*sequence{})
	return s
}

// Tokens are the tokens known of a request.
func (s *Sequences) Tokens(h step.Handle) []int32 { return (*s.live.Load())[h].tokens }

// begin takes a new request's prompt.
func (s *Sequences) begin(h step.Handle, prompt []int32) {
	live := *s.live.Load()
	if n := len(live); int(h) >= n {
		grown := make([]*sequence, max(2*n, int(h)+1))
		fresh := make([]sequence, len(grown)-n)
		copy(grown, live)
		for i := range fresh {
			grown[n+i] = &fresh[i]
		}
		s.live.Store(&grown)
		live = grown
	}
	q := live[h]
	q.tokens = append(q.tokens[:0], prompt...)
	q.committed = int32(len(prompt))
}

// stepped adds what a step has sampled, as the core has decided on it.
func (s *Sequences) stepped(b *step.Batch, res *step.Result, eff *core.Effects) {
	live := *s.live.Load()
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
			q := live[h]
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
	q := (*s.live.Load())[h]
	ids := append([]int32(nil), q.tokens[q.committed:q.committed+n]...)
	q.committed += n
	return ids
}
