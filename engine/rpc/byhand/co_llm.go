package byhand

import "context"

// CoLLM leaves a token to the large model where a trained router says that it should be that model's.
type CoLLM struct {
	Small, Large *Server
	Router       *Scorer
	Threshold    float64 // of the deferral probability
}

// Answer implements Algorithm.
func (c *CoLLM) Answer(ctx context.Context, a *Answer) error {
	for !a.Done() {
		t, err := c.Small.Next(ctx, a.Call(1))
		if err != nil {
			return err
		}
		score, err := c.Router.Score(ctx, a.Context(t))
		if err != nil {
			return err
		}
		if score > c.Threshold {
			if t, err = c.Large.Next(ctx, a.Call(1)); err != nil {
				return err
			}
		}
		a.Commit(t)
	}
	return nil
}
