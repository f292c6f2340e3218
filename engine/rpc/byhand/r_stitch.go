package byhand

import (
	"context"
	"math"
)

// RStitch changes to the large model where the normalised entropy rises above a threshold, and back where it falls.
type RStitch struct {
	Small, Large *Server
	Threshold    float64 // of entropy over ln Vocabulary
	Vocabulary   int
}

// Answer implements Algorithm.
func (r *RStitch) Answer(ctx context.Context, a *Answer) error {
	writer := r.Small
	for !a.Done() {
		t, err := writer.Next(ctx, a.Call(1))
		if err != nil {
			return err
		}
		unsure := t.Top.Entropy()/math.Log(float64(r.Vocabulary)) > r.Threshold
		if unsure && writer == r.Small {
			writer = r.Large
			continue
		}
		a.Commit(t)
		if !unsure {
			writer = r.Small
		}
	}
	return nil
}
