package byhand

import (
	"context"
	"math"
)

// AutoMix keeps the answer of the smallest model that calls its own answer right.
type AutoMix struct {
	Models    []*Server // smallest first
	Question  []int32   // put to a model behind its answer: is this right?
	Yes       int32     // the token that says so
	Threshold float64   // of the probability of Yes
}

// Answer implements Algorithm.
func (x *AutoMix) Answer(ctx context.Context, a *Answer) error {
	last := len(x.Models) - 1
	for _, m := range x.Models[:last] {
		draft, err := m.Complete(ctx, a.Call(a.Left()))
		if err != nil {
			return err
		}
		asked := a.Call(1, draft...)
		asked.Prompt = append(asked.Prompt, x.Question...)
		verdict, err := m.Next(ctx, asked)
		if err != nil {
			return err
		}
		if math.Exp(verdict.Top.Log(x.Yes)) >= x.Threshold {
			a.Commit(draft...)
			return nil
		}
	}
	return x.Models[last].Stream(ctx, a.Call(a.Left()), a.Take)
}
