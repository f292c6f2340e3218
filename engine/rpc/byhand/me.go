package byhand

import "context"

// ME draws the model of each token by weight; the smallest writes the first one.
type ME struct {
	Models  []*Server // smallest first
	Weights []float64 // of the models; their sum is 1
}

// Answer implements Algorithm.
func (e *ME) Answer(ctx context.Context, a *Answer) error {
	m := 0
	for !a.Done() {
		t, err := e.Models[m].Next(ctx, a.Call(1))
		if err != nil {
			return err
		}
		u := a.Draw(a.Len(), 0)
		a.Commit(t)
		for m = 0; m < len(e.Weights)-1 && u >= e.Weights[m]; m++ {
			u -= e.Weights[m]
		}
	}
	return nil
}
