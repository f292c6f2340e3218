package route

import (
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// Cascade is a cascade of any number of models at token level: each token starts on the smallest model, and goes to the
// next larger one as long as the one that wrote it is less confident than threshold. A draft that is passed on is
// dropped; the largest model's token is kept, whatever its confidence, and the next token starts on the smallest model
// again. Rule: Chow's, max p < threshold. Default .5: below, the token is likelier wrong than right, if the model is
// calibrated.
func Cascade(threshold float64) Program {
	return func(r *Request) error {
		for !r.Done() {
			for m := r.Small(); ; m++ {
				t, err := r.Decode(m)
				if err != nil {
					return err
				}
				if m == r.Large() || !(t.Confidence < threshold) {
					break
				}
				r.Drop(1)
			}
		}
		return nil
	}
}

func newCascade(o Options) (Router, error) {
	rule, err := withThreshold(signal.Rule{
		Name: "confidence", Score: signal.Confidence, Threshold: .5, Lo: 0, Hi: 1,
	}, o.Threshold)
	if err != nil {
		return nil, err
	}
	p := program(o, Cascade(rule.Threshold), below(o.Models, rule)...)
	p.spec.Chain = func(rates []float64) (p, c [][]float64) {
		p, c = square(len(rates)), square(len(rates))
		for i := range p {
			p[i][0], c[i][0] = 1, 1
			if i < len(p)-1 {
				p[i][0] = 1 - rates[i]
				p[i][i+1] += rates[i]
			}
		}
		return p, c
	}
	return p, nil
}

// below puts a rule on every model but the largest.
func below(models int, rule signal.Rule) []signal.Rule {
	rules := make([]signal.Rule, models)
	for m := range models - 1 {
		rules[m] = rule
	}
	return rules
}

// Frugal is a cascade at request level: the smallest model writes the whole answer, which is held back; if an external
// router scores it below threshold, all of it is dropped and the next larger model answers. The largest model's answer
// is streamed as it is written. Nothing of a rejected answer reaches the client, so the first token waits for a whole
// accepted one.
//
// Source: FrugalGPT, arXiv 2305.05176. It learns a threshold for each task and model; the default .96 is the first
// stage of its worked example. The score is read with the answer's last token.
func Frugal(threshold float64) Program {
	return cascadeAnswers(func(r *Request, m step.ModelID, last Token) (bool, error) { return last.Score < threshold, nil })
}

// AutoMix is Frugal with self-verification: a model scores its own answer, in one more step, as the share of
// verification samples that call it right (they share a prompt, and so a step). Default .5: the majority calls it
// wrong.
//
// Source: AutoMix, arXiv 2310.12963, with its threshold router; the price of the few-shot verification prompt is not in
// it.
func AutoMix(threshold float64) Program {
	return cascadeAnswers(func(r *Request, m step.ModelID, _ Token) (bool, error) {
		t, err := r.Extend(m)
		return t.Score < threshold, err
	})
}

// cascadeAnswers tries the models in order until one's answer isn't rejected.
func cascadeAnswers(rejects func(r *Request, m step.ModelID, last Token) (bool, error)) Program {
	return func(r *Request) error {
		for m := r.Small(); m < r.Large(); m++ {
			var last Token
			for !r.Done() {
				t, err := r.Draft(m)
				if err != nil {
					return err
				}
				last = t
			}
			rejected, err := rejects(r, m, last)
			if err != nil {
				return err
			}
			if !rejected {
				return nil
			}
			r.Drop(r.Held())
		}
		for !r.Done() {
			if _, err := r.DecodeWhile(r.Large(), Always); err != nil {
				return err
			}
		}
		return nil
	}
}

func newFrugalGPT(o Options) (Router, error) {
	rule, err := withThreshold(signal.Rule{Name: "answer score", Threshold: .96, Lo: 0, Hi: 1}, o.Threshold)
	if err != nil {
		return nil, err
	}
	return program(o, Frugal(rule.Threshold), below(o.Models, rule)...), nil
}

func newAutoMix(o Options) (Router, error) {
	rule, err := withThreshold(signal.Rule{Name: "self-verification score", Threshold: .5, Lo: 0, Hi: 1}, o.Threshold)
	if err != nil {
		return nil, err
	}
	return program(o, AutoMix(rule.Threshold), below(o.Models, rule)...), nil
}

// Query sends a request to one model for good: the large one if the external router predicts, from the prompt, that it
// beats the small one with at least probability threshold. Nothing is ever rolled back.
//
// Source: RouteLLM, arXiv 2406.18665; the default .1881 is its matrix-factorisation router's threshold that sends 20 %
// of Chatbot Arena's prompts to the large model.
func Query(threshold float64) Program {
	return func(r *Request) error {
		m := r.Small()
		if r.Query() > threshold {
			m = r.Large()
		}
		for !r.Done() {
			if _, err := r.DecodeWhile(m, Always); err != nil {
				return err
			}
		}
		return nil
	}
}

func newQuery(o Options) (Router, error) {
	rule, err := withThreshold(signal.Rule{
		Name: "win rate of the large model", Score: signal.Prompt, Threshold: .1881, Lo: 0, Hi: 1, Above: true,
	}, o.Threshold)
	if err != nil {
		return nil, err
	}
	return program(o, Query(rule.Threshold), rule), nil
}
