package route

import (
	"fmt"

	"github.com/trbench/trbench/models/signal"
)

// BiLD is the big little decoder: the small model drafts until its confidence falls below fallback, that draft is
// dropped, or until it has drafted k tokens. The large model then scores the drafts in one pass and rolls back to the
// first one whose loss, -ln p, is above rollback: that draft and all after it are dropped, several tokens at once, and
// the large model's own token stands there instead. If there is none, its token stands at the position that was too
// hard. Drafts are committed only when they have passed.
//
// Source: arXiv 2302.07863, equations 2 and 3. Defaults: its published code: fallback .6, rollback 5 nats, k = 10.
func BiLD(fallback, rollback float64, k int) Program {
	return func(r *Request) error {
		for !r.Done() {
			for i := 0; i < k && r.Left() > 1; i++ {
				t, err := r.Draft(r.Small())
				if err != nil {
					return err
				}
				if t.Confidence < fallback {
					r.Drop(1)
					break
				}
			}
			v, err := r.Verify(r.Large())
			if err != nil {
				return err
			}
			kept := 0
			for kept < v.Drafted && !(v.Drafts[kept].Loss > rollback) {
				kept++
			}
			r.Accept(kept)
		}
		return nil
	}
}

func newBiLD(o Options) (Router, error) {
	fallback, err := withThreshold(signal.Rule{
		Name: "confidence", Score: signal.Confidence, Threshold: .6, Lo: 0, Hi: 1,
	}, o.Threshold)
	if err != nil {
		return nil, err
	}
	rollback, err := withThreshold(signal.Rule{
		Name: "loss of the draft, nats", Score: signal.DraftLoss, Threshold: 5, Lo: 0, Hi: 20, Above: true,
	}, o.Rollback)
	if err != nil {
		return nil, fmt.Errorf("rollback: %w", err)
	}
	k, err := within("draft", o.Draft, 10, MaxDraft)
	if err != nil {
		return nil, err
	}
	rules := make([]signal.Rule, o.Models)
	rules[0], rules[o.Models-1] = fallback, rollback
	return program(o, BiLD(fallback.Threshold, rollback.Threshold, k), rules...), nil
}
