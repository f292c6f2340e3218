package byhand

import "context"

// Cascade asks larger and larger models for each token until one is confident.
type Cascade struct {
	Models    []*Server // smallest first
	Threshold float64   // of the confidence
}

// Answer implements Algorithm.
func (c *Cascade) Answer(ctx context.Context, a *Answer) error {
	for !a.Done() {
		var t Token
		for _, m := range c.Models {
			var err error
			if t, err = m.Next(ctx, a.Call(1)); err != nil {
				return err
			}
			if t.Top.Confidence() >= c.Threshold {
				break
			}
		}
		a.Commit(t)
	}
	return nil
}
