package cpu

import (
	"math"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// verify scores row i's drafts and samples the token after those that it keeps. A draft is kept by the rule of
// speculative sampling (Leviathan, Kalman, Matias 2023): with probability min(1, p/q), p being what this model samples
// from at its position and q what the draft was sampled from; in the place of the first one that isn't, the token is
// sampled from max(0, p-q). So the output has this model's distribution exactly. A greedy request keeps drafts that
// are this model's likeliest tokens.
func (m *Model) verify(i int, s *scratch) {
	b, r, res := m.plan.batch, &m.plan.rows[i], &m.result
	drafted := r.drafted()
	accept, end := drafted, false // end: the first one not kept ends the output
	instead := int32(0)
	for j := range drafted {
		score := m.judge(i, j, s)
		if accept == drafted {
			token := r.known[len(r.known)-drafted+j]
			switch {
			case !score.Kept:
				accept, instead = j, score.Instead
			case res.Drafts == nil && m.stops(&r.sampling, token):
				// What the drafter wrote after an end is no part of the output: the end is the last token, and is this
				// model's own. A router with a rule of its own knows where a draft ends the request.
				accept, instead, end = j, token, true
			}
		}
		if res.Drafts == nil {
			if accept < drafted {
				break
			}
			continue
		}
		res.Drafts[r.drafts+j] = score
	}
	res.Accept[i] = int32(accept)
	res.Stop[i] = end || accept < drafted && m.stops(&r.sampling, instead)
	r.sampled = accept
	if accept < drafted && res.Drafts == nil {
		res.Token[i] = instead
		return
	}
	r.sampled = drafted
	res.Token[i] = m.sample(r, s, m.padded(r.outputs+drafted), b.Pos[i])
	res.Stop[i] = m.stops(&r.sampling, res.Token[i]) // of the token in a draft's place, its score tells
}

// judge is what this model says of draft j of row i. Loss, Gain and Variation compare the models' own distributions,
// before temperature and cuts; Ratio, Kept and Instead those that tokens are sampled from.
func (m *Model) judge(i, j int, s *scratch) step.DraftScore {
	b, r := m.plan.batch, &m.plan.rows[i]
	pos := len(r.known) - r.drafted() + j
	draft := r.known[pos]
	logits := m.padded(r.outputs + j)
	best := argmax(m.level, logits)
	proposed := m.opt.Proposals.get(r.handle, proposal{request: b.ID[i], model: b.Model, pos: int32(pos), token: draft})
	if len(proposed) != m.config.Vocab {
		proposed = nil // no draft of a model with this vocabulary
	}
	score := step.DraftScore{Agrees: draft == best}
	p, q := &s.dist[0], &s.dist[1]
	if m.result.Drafts != nil {
		m.compare(&score, p, q, logits, proposed, draft)
	}
	if r.sampling.greedy() {
		score.Kept, score.Instead, score.Ends = score.Agrees, best, m.stops(&r.sampling, best)
		if score.Kept {
			score.Ratio = 1
		}
		return score
	}
	p.set(m.level, logits, &r.sampling, m.config.Vocab)
	m.proposal(q, proposed, draft, &r.sampling)
	if a := p.probability(draft); a > 0 {
		score.Ratio = min(1, a/q.probability(draft))
	}
	score.Kept = signal.Float64(r.key, int32(pos), b.Model, signal.Accepted) < score.Ratio
	if !score.Kept || m.result.Drafts != nil {
		score.Instead = p.less(q, signal.Float64(r.key, int32(pos), b.Model, corrected))
		score.Ends = m.stops(&r.sampling, score.Instead)
	}
	return score
}

// proposal makes q what a draft was sampled from: by the logits of its drafter, or, where they are not known, the draft
// alone.
func (m *Model) proposal(q *distribution, proposed []float32, draft int32, s *Sampling) {
	if proposed == nil {
		q.weight = grow(q.weight, m.head.Outputs())
		clear(q.weight)
		q.weight[draft], q.total = 1, 1
		return
	}
	q.logits = grow(q.logits, m.head.Outputs())
	for k := copy(q.logits, proposed); k < len(q.logits); k++ {
		q.logits[k] = float32(math.Inf(-1))
	}
	q.set(m.level, q.logits, s, m.config.Vocab)
}

// compare fills in the scores that compare the models' own distributions.
func (m *Model) compare(score *step.DraftScore, p, q *distribution, logits, proposed []float32, draft int32) {
	own := Sampling{Temperature: 1}
	p.set(m.level, logits, &own, m.config.Vocab)
	m.proposal(q, proposed, draft, &own)
	score.Loss = math.Log(p.total) - float64(logits[draft]-m.level.Max(logits))
	shared, most, mostProposed := 0., 0., 0.
	for k, w := range p.weight[:m.config.Vocab] {
		a, b := float64(w)/p.total, float64(q.weight[k])/q.total
		shared += min(a, b)
		most, mostProposed = max(most, a), max(mostProposed, b)
	}
	score.Variation = min(1, max(0, 1-shared))
	score.Gain = most - mostProposed
}

// less is the token at draw u of max(0, d-q), or of d where nothing is left. It takes d's weights.
func (d *distribution) less(q *distribution, u float64) int32 {
	left := 0.
	for i, w := range d.weight {
		rest := float32(max(0, float64(w)/d.total-float64(q.weight[i])/q.total))
		q.weight[i] = rest
		left += float64(rest)
	}
	if left == 0 {
		return d.pick(u)
	}
	return pick(u*left, q.weight)
}
