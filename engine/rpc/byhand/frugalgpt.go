package byhand

import "context"

// FrugalGPT keeps the answer of the smallest model whose answer a trained router scores well.
type FrugalGPT struct {
	Models    []*Server // smallest first
	Router    *Scorer
	Threshold float64 // of the router's score of an answer
}

// Answer implements Algorithm.
func (f *FrugalGPT) Answer(ctx context.Context, a *Answer) error {
	last := len(f.Models) - 1
	for _, m := range f.Models[:last] {
		draft, err := m.Complete(ctx, a.Call(a.Left()))
		if err != nil {
			return err
		}
		score, err := f.Router.Score(ctx, a.Context(draft...))
		if err != nil {
			return err
		}
		if score >= f.Threshold {
			a.Commit(draft...)
			return nil
		}
	}
	return f.Models[last].Stream(ctx, a.Call(a.Left()), a.Take)
}
