package route

import (
	"github.com/trbench/trbench/models/signal"
)

// ReasoningStep is where a reasoning step ends: at token Delimiter, if it isn't 0, and after Tokens tokens at the
// latest.
type ReasoningStep struct {
	Tokens    int
	Delimiter int32
}

// goesOn says that a step that began at position from goes on after t.
func (s ReasoningStep) goesOn(from int) func(Token) bool {
	return func(t Token) bool {
		return int(t.Pos) < from+s.Tokens-1 && !(s.Delimiter != 0 && t.ID == s.Delimiter)
	}
}

// SpecReason is speculation by reasoning steps: the small model drafts a step; the large one reads it in one pass and
// says how useful it is, on a scale of 0 to 9. A step that scores below threshold is dropped whole, and the large model
// writes it itself; otherwise it is kept. The token that carries the score is dropped in either case. A step reaches
// the client when it is kept, or as the large model writes it.
//
// Source: arXiv 2504.07891; threshold 7: its published code. Steps of 32 tokens where no delimiter is given: ours. The
// price of the scoring prompt is not in it.
func SpecReason(threshold float64, s ReasoningStep) Program {
	return func(r *Request) error {
		for !r.Done() {
			goesOn := s.goesOn(r.Len())
			for more := true; more && !r.Done(); {
				t, err := r.Draft(r.Small())
				if err != nil {
					return err
				}
				more = goesOn(t)
			}
			v, err := r.Verify(r.Large())
			if err != nil {
				return err
			}
			useful := v.Score >= threshold
			if useful {
				r.Accept(v.Drafted)
			} else {
				r.Accept(0)
			}
			r.Drop(1)
			if useful {
				continue
			}
			if _, err := r.DecodeWhile(r.Large(), goesOn); err != nil {
				return err
			}
		}
		return nil
	}
}

// GlimpRouter routes by a glimpse: the small model writes the first token of each reasoning step; if its entropy, in
// nats, is above threshold, the token is dropped and the large model writes the whole step, otherwise the small one
// goes on. Nothing else is rolled back.
//
// Source: arXiv 2601.05110, which sets the threshold for each model and data set; the default is measured: it sends 20
// % of a recorded pair's tokens (GSM8K answers, a vocabulary of 1024). Steps of 32 tokens where no delimiter is given:
// ours.
func GlimpRouter(threshold float64, s ReasoningStep) Program {
	return func(r *Request) error {
		for !r.Done() {
			goesOn := s.goesOn(r.Len())
			t, err := r.Decode(r.Small())
			if err != nil {
				return err
			}
			m := r.Small()
			if t.Entropy > threshold {
				r.Drop(1)
				m = r.Large()
			} else if r.Done() || !goesOn(t) {
				continue
			}
			if _, err := r.DecodeWhile(m, goesOn); err != nil {
				return err
			}
		}
		return nil
	}
}

const (
	defaultStep = 32      // tokens
	longestStep = 1 << 20 // tokens
)

func newSpecReason(o Options) (Router, error) {
	rule, err := withThreshold(signal.Rule{Name: "utility score of a step", Threshold: 7, Lo: -1, Hi: 10}, o.Threshold)
	if err != nil {
		return nil, err
	}
	n, err := within("step", o.Step, defaultStep, longestStep)
	if err != nil {
		return nil, err
	}
	rules := make([]signal.Rule, o.Models)
	rules[o.Models-1] = rule
	return program(o, SpecReason(rule.Threshold, ReasoningStep{n, o.Delimiter}), rules...), nil
}

func newGlimpRouter(o Options) (Router, error) {
	rule, err := withThreshold(signal.Rule{
		Name: "entropy of a step's first token, nats", Score: signal.Entropy, Threshold: 2.6802, Lo: 0, Hi: 12, Above: true,
	}, o.Threshold)
	if err != nil {
		return nil, err
	}
	n, err := within("step", o.Step, defaultStep, longestStep)
	if err != nil {
		return nil, err
	}
	return program(o, GlimpRouter(rule.Threshold, ReasoningStep{n, o.Delimiter}), rule), nil
}
