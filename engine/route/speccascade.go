package route

import (
	"fmt"
	"strings"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// SpecCascade is a speculative cascade: the small model drafts k tokens, and the large one verifies them against the
// distribution that a token-level cascade of both would sample from. Where the cascade would not defer, that is the
// small model's own, and the draft is kept; where it would, it is the large model's, and the draft is kept with
// probability min(1, p/q). The first draft that isn't kept and all after it are dropped, and the pass writes one token
// itself, as in speculative decoding.
//
// Deferral rules, with q the small and p the large model's distribution (arXiv 2405.19261, section 4): chow: max q < 1
// - alpha, which needs the small model alone; diff: max p - max q > alpha; opt: max p - max q > alpha D_TV(p, q), the
// plug-in of the optimal rule. threshold is 1 - alpha for chow and alpha for the others. Defaults (the paper sweeps
// them): chow .5, diff .1, opt .5; k = 4.
func SpecCascade(rule signal.Rule, k int) Program {
	return func(r *Request) error {
		var sure [MaxDraft]bool // the small model was, of each draft
		for !r.Done() {
			for i := 0; i < k && r.Left() > 1; i++ {
				t, err := r.Draft(r.Small())
				if err != nil {
					return err
				}
				sure[i] = rule.Score == signal.Confidence && !rule.Fires(t.Confidence)
			}
			v, err := r.Verify(r.Large())
			if err != nil {
				return err
			}
			kept := 0
			for kept < v.Drafted && (sure[kept] || !defers(rule, &v.Drafts[kept]) || v.Drafts[kept].Kept) {
				kept++
			}
			r.Accept(kept)
		}
		return nil
	}
}

// defers says that a cascade by rule would take this token from the large model, as far as the verification tells.
func defers(rule signal.Rule, d *step.DraftScore) bool {
	switch rule.Score {
	case signal.DraftGain:
		return rule.Fires(d.Gain)
	case signal.DraftGainRatio:
		return d.Gain > rule.Threshold*d.Variation
	}
	return true
}

// deferRules are the deferral rules by name; diff and opt are decided by the verifying model.
var deferRules = []struct {
	name string
	signal.Rule
}{
	{"chow", signal.Rule{Name: "confidence of the draft", Score: signal.Confidence, Threshold: .5, Lo: 0, Hi: 1}},
	{"diff", signal.Rule{Name: "gain in confidence", Score: signal.DraftGain, Threshold: .1, Lo: -1, Hi: 1, Above: true}},
	{"opt", signal.Rule{
		Name: "gain in confidence over total variation", Score: signal.DraftGainRatio, Threshold: .5, Lo: -2, Hi: 2, Above: true,
	}},
}

func newSpecCascade(o Options) (Router, error) {
	k, err := within("draft", o.Draft, defaultDraft, MaxDraft)
	if err != nil {
		return nil, err
	}
	for _, d := range deferRules {
		if !strings.EqualFold(o.Defer, d.name) && !(o.Defer == "" && d.name == "chow") {
			continue
		}
		rule, err := withThreshold(d.Rule, o.Threshold)
		if err != nil {
			return nil, err
		}
		rules := make([]signal.Rule, o.Models)
		if rule.Score == signal.Confidence {
			rules[0] = rule
		} else {
			rules[o.Models-1] = rule
		}
		return program(o, SpecCascade(rule, k), rules...).reading(step.Drafts), nil
	}
	return nil, fmt.Errorf("deferral rule %q: want chow, diff or opt", o.Defer)
}
