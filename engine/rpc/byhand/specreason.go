package byhand

import "context"

// SpecReason lets the small model draft reasoning steps; the large one scores each, and writes those again that are of
// little use.
type SpecReason struct {
	Small, Large *Server
	Question     []int32 // put to the large model behind a step: how useful is it, from 0 to 9?
	Digits       []int32 // the tokens that say 0 to 9
	Threshold    int     // of the score, below which a step is written again
	Step         int     // tokens of a step, at most
	Delimiter    int32   // the token that ends one earlier; 0: none
}

// Answer implements Algorithm.
func (s *SpecReason) Answer(ctx context.Context, a *Answer) error {
	for !a.Done() {
		call := a.Call(min(s.Step, a.Left()))
		call.Until = s.Delimiter
		step, err := s.Small.Complete(ctx, call)
		if err != nil {
			return err
		}
		asked := a.Call(1, step...)
		asked.Prompt = append(asked.Prompt, s.Question...)
		said, err := s.Large.Next(ctx, asked)
		if err != nil {
			return err
		}
		score := 0
		for d, id := range s.Digits {
			if said.Top.Log(id) > said.Top.Log(s.Digits[score]) {
				score = d
			}
		}
		if score >= s.Threshold {
			a.Commit(step...)
			continue
		}
		if err := s.Large.Stream(ctx, call, a.Take); err != nil {
			return err
		}
	}
	return nil
}
