package byhand

import "context"

// Entropy is entropy-based token switching: the large model writes each token at which the small one is unsure.
type Entropy struct {
	Small, Large *Server
	Threshold    float64 // nats
}

// Answer implements Algorithm.
func (e *Entropy) Answer(ctx context.Context, a *Answer) error {
	for !a.Done() {
		t, err := e.Small.Next(ctx, a.Call(1))
		if err != nil {
			return err
		}
		if t.Top.Entropy() > e.Threshold {
			if t, err = e.Large.Next(ctx, a.Call(1)); err != nil {
				return err
			}
		}
		a.Commit(t)
	}
	return nil
}
