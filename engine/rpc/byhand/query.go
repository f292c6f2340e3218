package byhand

import "context"

// Query sends each request to one model for good: the large one where a trained router predicts that it wins.
type Query struct {
	Small, Large *Server
	Router       *Scorer
	Threshold    float64 // of the large model's win rate
}

// Answer implements Algorithm.
func (q *Query) Answer(ctx context.Context, a *Answer) error {
	win, err := q.Router.Score(ctx, a.Context())
	if err != nil {
		return err
	}
	m := q.Small
	if win > q.Threshold {
		m = q.Large
	}
	return m.Stream(ctx, a.Call(a.Left()), a.Take)
}
