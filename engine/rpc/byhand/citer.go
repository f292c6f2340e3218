package byhand

import "context"

// CITER leaves a token to the large model where a trained router scores the small one's low.
type CITER struct {
	Small, Large *Server
	Router       *Scorer
	Threshold    float64 // of the router's score of a token
}

// Answer implements Algorithm.
func (c *CITER) Answer(ctx context.Context, a *Answer) error {
	for !a.Done() {
		t, err := c.Small.Next(ctx, a.Call(1))
		if err != nil {
			return err
		}
		score, err := c.Router.Score(ctx, a.Context(t))
		if err != nil {
			return err
		}
		if score < c.Threshold {
			if t, err = c.Large.Next(ctx, a.Call(1)); err != nil {
				return err
			}
		}
		a.Commit(t)
	}
	return nil
}
