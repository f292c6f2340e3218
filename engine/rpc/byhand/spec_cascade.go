package byhand

import (
	"context"
	"math"
)

// SpecCascade is a speculative cascade: the large model verifies the small one's drafts against what a cascade of both
// would write. A draft that the cascade would not defer is kept, another one with probability min(1, p/q).
type SpecCascade struct {
	Small, Large *Server
	Draft        int
	Rule         string  // chow, diff or opt
	Threshold    float64 // chow: of the small model's confidence; diff, opt: alpha
}

// defers says that the cascade would take this token from the large model.
func (s *SpecCascade) defers(q, p Logprobs) bool {
	gain := p.Confidence() - q.Confidence()
	switch s.Rule {
	case "diff":
		return gain > s.Threshold
	case "opt":
		return gain > s.Threshold*(1-p.Shared(q))
	}
	return q.Confidence() < s.Threshold
}

// Answer implements Algorithm.
func (s *SpecCascade) Answer(ctx context.Context, a *Answer) error {
	for !a.Done() {
		drafts, err := s.Small.Complete(ctx, a.Call(min(s.Draft, a.Left()-1)))
		if err != nil {
			return err
		}
		at, next, err := s.Large.Verify(ctx, a.Call(1, drafts...), len(drafts))
		if err != nil {
			return err
		}
		kept := 0
		for kept < len(drafts) {
			t, pos := drafts[kept], a.Len()+kept
			p, q := at[kept].At(a.Temperature), t.Top.At(a.Temperature)
			if !s.defers(t.Top, at[kept]) || a.Draw(pos, 1) < math.Exp(p.Log(t.ID)-q.Log(t.ID)) {
				kept++
				continue
			}
			next = s.Large.Written(p.Less(q, a.Draw(pos, 2)))
			break
		}
		a.Commit(append(drafts[:kept:kept], next)...)
	}
	return nil
}
