package byhand

import (
	"context"
	"fmt"
)

// Scorer is an external router: a small trained model that scores a sequence, behind a pooling endpoint.
type Scorer struct {
	Endpoint
	Model string
}

// Score is the router's score of a sequence.
func (s *Scorer) Score(ctx context.Context, tokens []int32) (float64, error) {
	in := struct {
		Model string  `json:"model"`
		Input []int32 `json:"input"`
	}{s.Model, tokens}
	var out struct {
		Data []struct {
			Data []float64 `json:"data"`
		} `json:"data"`
	}
	if err := s.post(ctx, "/pooling", in, &out); err != nil {
		return 0, err
	}
	if len(out.Data) != 1 || len(out.Data[0].Data) != 1 {
		return 0, fmt.Errorf("%s: %d sequences scored, want 1 with one score", s.URL, len(out.Data))
	}
	return out.Data[0].Data[0], nil
}
