package byhand

import "context"

// BiLD is the big little decoder: the small model drafts until it is unsure, the large one rolls back to the first draft
// that it finds unlikely and writes that token itself.
type BiLD struct {
	Small, Large *Server
	Fallback     float64 // confidence below which the small model stops
	Rollback     float64 // loss of a draft above which it is taken back, nats
	Draft        int     // tokens, at most
}

// Answer implements Algorithm.
func (b *BiLD) Answer(ctx context.Context, a *Answer) error {
	for !a.Done() {
		drafts, err := b.Small.Complete(ctx, a.Call(min(b.Draft, a.Left()-1)))
		if err != nil {
			return err
		}
		for i, t := range drafts {
			if t.Top.Confidence() < b.Fallback {
				drafts = drafts[:i]
				break
			}
		}
		at, next, err := b.Large.Verify(ctx, a.Call(1, drafts...), len(drafts))
		if err != nil {
			return err
		}
		for i, t := range drafts {
			if -at[i].Log(t.ID) > b.Rollback {
				p, q := at[i].At(a.Temperature), t.Top.At(a.Temperature)
				drafts, next = drafts[:i], b.Large.Written(p.Less(q, a.Draw(a.Len()+i, 2)))
				break
			}
		}
		a.Commit(append(drafts, next)...)
	}
	return nil
}
