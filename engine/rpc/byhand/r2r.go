package byhand

import "context"

// R2R leaves a token to the large model where a trained router predicts that the small one's makes the texts diverge.
type R2R struct {
	Small, Large *Server
	Router       *Scorer
	Threshold    float64 // of the divergence probability
}

// Answer implements Algorithm.
func (r *R2R) Answer(ctx context.Context, a *Answer) error {
	for !a.Done() {
		t, err := r.Small.Next(ctx, a.Call(1))
		if err != nil {
			return err
		}
		score, err := r.Router.Score(ctx, a.Context(t))
		if err != nil {
			return err
		}
		if score > r.Threshold {
			if t, err = r.Large.Next(ctx, a.Call(1)); err != nil {
				return err
			}
		}
		a.Commit(t)
	}
	return nil
}
