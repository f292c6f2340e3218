package byhand

import "context"

// GlimpRouter lets the small model write the first token of each reasoning step; where that leaves it unsure, the large
// one writes the step.
type GlimpRouter struct {
	Small, Large *Server
	Threshold    float64 // of the first token's entropy, nats
	Step         int     // tokens of a step, at most
	Delimiter    int32   // the token that ends one earlier; 0: none
}

// Answer implements Algorithm.
func (g *GlimpRouter) Answer(ctx context.Context, a *Answer) error {
	for !a.Done() {
		n := min(g.Step, a.Left())
		t, err := g.Small.Next(ctx, a.Call(1))
		if err != nil {
			return err
		}
		m := g.Large
		if t.Top.Entropy() <= g.Threshold {
			a.Commit(t)
			if n--; n == 0 || a.Done() || g.Delimiter != 0 && t.ID == g.Delimiter {
				continue
			}
			m = g.Small
		}
		call := a.Call(n)
		call.Until = g.Delimiter
		if err := m.Stream(ctx, call, a.Take); err != nil {
			return err
		}
	}
	return nil
}
