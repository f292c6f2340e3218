package signal

import (
	"fmt"
	"math"

	"github.com/trbench/trbench/engine/step"
)

// Replay sets up a source that replays a trace.
type Replay struct {
	Seed  uint64
	Rules []Rule // by model, two of them: which scores are read; a recorded score fires on its own
	// Vocabulary is the models' size of vocabulary, which normalises entropies; 0 is one more than the trace's largest
	// token.
	Vocabulary int
}

// Source replays the trace: request i sees problem i modulo their number, and output position j the recorded token j,
// again from the first one beyond the last. A token's scores do not depend on what was written before it: both models
// were recorded on the texts' own tokens.
//
// A draft is kept with the recorded probability, accept_prob, by an independent draw; it agrees where s_top1 is l_top1.
// An external score is not in a trace: the probability that the large model would not keep the token, 1 - accept_prob,
// stands for a rule that fires above its threshold, accept_prob for one that fires below.
func (t *Trace) Source(c Replay) (Source, error) {
	if len(c.Rules) != 2 {
		return nil, fmt.Errorf("trace %s: of two models, the deployment has %d", t.name, len(c.Rules))
	}
	for m, r := range c.Rules {
		if err := t.holds(r, step.ModelID(m)); err != nil {
			return nil, err
		}
	}
	return &replayed{trace: t, seed: c.Seed, rules: c.Rules, logV: t.logVocabulary(c.Vocabulary)}, nil
}

// holds reports a rule on a score of model m that the trace does not have.
func (t *Trace) holds(r Rule, m step.ModelID) error {
	if !r.Used() || r.Uniform {
		return nil
	}
	column := ""
	switch r.Score {
	case Confidence:
		if m > 0 && !t.have["l_maxprob"] {
			column = "l_maxprob"
		}
	case Margin:
		if m > 0 {
			column = "l_margin"
		}
	case DraftGain, DraftGainRatio:
		if !t.have["l_maxprob"] {
			column = "l_maxprob"
		}
	case DraftLoss:
		if !t.have["kl_l_s"] {
			column = "kl_l_s"
		}
	}
	if column != "" {
		return fmt.Errorf("trace %s: %s of model %d needs column %s, which it does not have", t.name, r.Name, m, column)
	}
	return nil
}

// score is the recorded score that rule r reads at model m.
func (x *token) score(r Rule, m step.ModelID, logV float64) float64 {
	switch r.Score {
	case Entropy:
		if m > 0 {
			return x.lEntropy
		}
		return x.sEntropy
	case Normalised:
		if m > 0 {
			return x.lEntropy / logV
		}
		return x.sEntropy / logV
	case Confidence:
		if m > 0 {
			return x.lConfidence
		}
		return x.sConfidence
	case Margin:
		return x.sMargin
	case DraftGain:
		return x.lConfidence - x.sConfidence
	case DraftGainRatio:
		return (x.lConfidence - x.sConfidence) / (1 - x.accept)
	case DraftLoss:
		return x.loss
	}
	if r.Above {
		return 1 - x.accept
	}
	return x.accept
}

// replayed is a signal read from a trace.
type replayed struct {
	trace   *Trace
	seed    uint64
	rules   []Rule
	logV    float64
	prompts []int32 // by handle
}

// at is the recorded token at output position out of request id.
func (s *replayed) at(id step.RequestID, out int32) *token { return s.trace.at(id, out) }

func (t *Trace) at(id step.RequestID, out int32) *token {
	p := &t.problems[int(id)%len(t.problems)]
	return &t.tokens[p.first+out%p.output]
}

// Fill implements Source.
func (s *replayed) Fill(b *step.Batch, dst []float64) {
	r := s.rules[b.Model]
	if !r.Used() || r.Score != External {
		return
	}
	for i, id := range b.ID {
		dst[i] = s.external(r, b, i, id)
	}
}

func (s *replayed) external(r Rule, b *step.Batch, i int, id step.RequestID) float64 {
	if r.Uniform {
		return Float64(Key(s.seed, id), b.Pos[i], b.Model, Route)
	}
	return s.at(id, out(s.prompts, b.Handle[i], b.Pos[i])).score(r, b.Model, s.logV)
}

// Admit implements Admitter: the mean over the text of the probability that the large model would not keep a token
// stands for its prompt's score.
func (s *replayed) Admit(h step.Handle, id step.RequestID, prompt int32) float64 {
	s.prompts = admit(s.prompts, h, prompt)
	return s.trace.difficulty(int(id) % len(s.trace.problems))
}

// difficulty is the mean over text i of the probability that the large model would not keep a token.
func (t *Trace) difficulty(i int) float64 {
	p := &t.problems[i]
	sum := 0.
	for _, x := range t.tokens[p.first : p.first+p.output] {
		sum += 1 - x.accept
	}
	return sum / float64(p.output)
}

// Agrees implements Judge.
func (s *replayed) Agrees(id step.RequestID, out int32) bool { return s.at(id, out).agree() }

// NLL implements Grader.
func (s *replayed) NLL(id step.RequestID, out int32, large bool) float64 {
	return s.at(id, out).nll(large)
}

// Report implements Reporter. Scores that the trace does not hold are NaN: no rule fires on them.
func (s *replayed) Report(b *step.Batch, res *step.Result) {
	r := s.rules[b.Model]
	external := r.Used() && r.Score == External
	for i, id := range b.ID {
		if external {
			res.Signal[i] = s.external(r, b, i, id)
		}
		if b.Want&^step.Drafts == 0 {
			continue
		}
		x := s.at(id, out(s.prompts, b.Handle[i], b.Pos[i]))
		put := func(column []float64, is Score) {
			if column != nil {
				column[i] = x.score(Rule{Score: is}, b.Model, s.logV)
			}
		}
		put(res.Entropy, Entropy)
		put(res.Normalised, Normalised)
		put(res.Confidence, Confidence)
		if res.Margin != nil {
			res.Margin[i] = x.margin(b.Model)
		}
		if b.Want.Has(step.Top) {
			x.top(b.Model, res.Top[i*b.TopK:(i+1)*b.TopK])
		}
	}
	if b.Drafted() > 0 {
		s.drafts(b, res)
	}
}

// drafts fills in the fate of the drafts.
func (s *replayed) drafts(b *step.Batch, res *step.Result) {
	token := func(i int, pos int32) *token { return s.at(b.ID[i], out(s.prompts, b.Handle[i], pos)) }
	fates(b, s.seed, res.Accept, res.Drafts, func(i int, _, pos int32) float64 { return token(i, pos).accept })
	if res.Drafts == nil {
		return
	}
	at := 0
	for i, k := range b.Verify {
		for j := range k {
			x := token(i, b.Pos[i]-k+j)
			d := &res.Drafts[at]
			at++
			d.Agrees, d.Loss, d.Gain = x.agree(), x.loss, x.lConfidence-x.sConfidence
		}
	}
}

func (x *token) margin(m step.ModelID) float64 {
	if m > 0 {
		return math.NaN()
	}
	return x.sMargin
}

// top writes the candidates that were recorded: the likeliest token; the small model's second one is known by its
// probability alone.
func (x *token) top(m step.ModelID, c []step.Candidate) {
	clear(c)
	if len(c) == 0 {
		return
	}
	if m > 0 {
		c[0] = step.Candidate{Token: x.large, Probability: x.lConfidence}
		return
	}
	c[0] = step.Candidate{Token: x.small, Probability: x.sConfidence}
	if len(c) > 1 {
		c[1] = step.Candidate{Token: -1, Probability: x.sConfidence - x.sMargin}
	}
}
