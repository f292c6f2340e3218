package byhand

import (
	"context"
	"math"
)

// SpecDec is speculative decoding: the small model drafts, the large one keeps each draft with probability min(1, p/q)
// and writes one token itself.
type SpecDec struct {
	Small, Large *Server
	Draft        int  // tokens drafted before a verification
	Adaptive     bool // Draft is the first number; it changes after each verification
	Greedy       bool // keep what the large model would have written itself
}

// most bounds an adaptive number of drafts.
const most = 64

// Answer implements Algorithm.
func (s *SpecDec) Answer(ctx context.Context, a *Answer) error {
	k := s.Draft
	for !a.Done() {
		drafts, err := s.Small.Complete(ctx, a.Call(min(k, a.Left()-1)))
		if err != nil {
			return err
		}
		at, next, err := s.Large.Verify(ctx, a.Call(1, drafts...), len(drafts))
		if err != nil {
			return err
		}
		kept := 0
		for kept < len(drafts) {
			t, p := drafts[kept], at[kept].At(a.Temperature)
			q := t.Top.At(a.Temperature)
			pos := a.Len() + kept
			if s.Greedy && t.ID == at[kept].Likeliest().ID ||
				!s.Greedy && a.Draw(pos, 1) < math.Exp(p.Log(t.ID)-q.Log(t.ID)) {
				kept++
				continue
			}
			next = s.Large.Written(p.Less(q, a.Draw(pos, 2)))
			break
		}
		a.Commit(append(drafts[:kept:kept], next)...)
		if !s.Adaptive {
			continue
		}
		if kept == len(drafts) {
			k = min(k+2, most)
		} else {
			k = max(k-1, 1)
		}
	}
	return nil
}
