package route

import (
	"fmt"

	"github.com/trbench/trbench/engine/step"
)

// SpecDec is how SpecDecode drafts and what it keeps.
type SpecDec struct {
	Draft    int  // tokens drafted before a verification
	Adaptive bool // Draft is the first number; it changes after each verification
	Greedy   bool // keep what the large model would have written itself, not what the sampling rule accepts
}

// SpecDecode is speculative decoding: the small model drafts up to k tokens, the large one scores them in one pass and
// keeps each with probability min(1, p/q) until the first rejection; a rejected token is drawn again from the residual
// max(0, p - q), and after k accepted ones the pass gives one more. Rejected drafts are dropped; nothing is committed,
// and nothing streamed, before it is verified. The output has the large model's distribution exactly; with Greedy it is
// the large model's greedy output.
//
// With acceptance a and a draft's cost c (of a large step) a pass yields (1 - a^(k+1)) / (1 - a) tokens and the
// speed-up is that over k c + 1 (arXiv 2211.17192, equations 1 and theorem 3.8). Default k = 4: arXiv 2302.01318.
// Adaptive k: +2 after a pass that kept all drafts, -1 otherwise, at least 1 (the heuristic of Hugging Face's assisted
// generation).
func SpecDecode(s SpecDec) Program {
	return func(r *Request) error {
		k := s.Draft
		for !r.Done() {
			for i := 0; i < k && r.Left() > 1; i++ { // the pass itself yields the last token
				if _, err := r.Draft(r.Small()); err != nil {
					return err
				}
			}
			v, err := r.Verify(r.Large())
			if err != nil {
				return err
			}
			accepted := v.Accepted
			if s.Greedy {
				accepted = 0
				for accepted < v.Drafted && v.Drafts[accepted].Agrees {
					accepted++
				}
				r.Accept(accepted)
			}
			if !s.Adaptive {
				continue
			}
			if accepted == v.Drafted {
				k = min(k+2, MaxDraft)
			} else {
				k = max(k-1, 1)
			}
		}
		return nil
	}
}

// defaultDraft is K of arXiv 2302.01318.
const defaultDraft = 4

func newSpecDec(o Options) (Router, error) {
	if o.Threshold != 0 {
		return nil, fmt.Errorf("threshold %g: it has none", o.Threshold)
	}
	k, err := within("draft", o.Draft, defaultDraft, MaxDraft)
	if err != nil {
		return nil, err
	}
	p := program(o, SpecDecode(SpecDec{Draft: k, Adaptive: o.Adaptive, Greedy: o.Greedy}))
	if o.Greedy {
		p.reading(step.Drafts)
	}
	return p, nil
}
