package cpu

import (
	"fmt"
	"math"

	"github.com/trbench/trbench/engine/backend/cpu/kernel"
	"github.com/trbench/trbench/engine/step"
)

// splitVocabulary is the logits from which the rows of a result are worked out on several cores.
const splitVocabulary = 16 << 10

// padded is the row of logits of output o, padding included.
func (m *Model) padded(o int) []float32 {
	n := m.head.Outputs()
	return m.buf.logits[o*n:][:n]
}

// logits are those of output o, one for each of the vocabulary.
func (m *Model) logits(o int) []float32 { return m.padded(o)[:m.config.Vocab] }

// report fills in the result of a step whose logits are there.
func (m *Model) report(b *step.Batch) error {
	p, res := &m.plan, &m.result
	n := len(p.rows)
	res.Signal = grow(res.Signal, n)
	res.Token, res.Accept = grow(res.Token, n), grow(res.Accept, n)
	res.Stop = grow(res.Stop, n)
	res.Reset(b.Want, n, b.TopK, p.drafts)
	clear(res.Signal)
	p.failed = grow(p.failed, n)
	clear(p.failed)
	if p.outputs*m.config.Vocab < splitVocabulary {
		for i := range p.rows {
			m.reportPart(0, i)
		}
	} else {
		m.opt.Pool.run(n, m.tasks.report)
	}
	for i, failed := range p.failed {
		if failed {
			return fmt.Errorf("row %d, request %d: %w", i, b.ID[i], ErrNumbers)
		}
	}
	if m.opt.Score != nil {
		m.opt.Score(b, res.Signal)
	}
	return nil
}

// reportPart fills in row i: its token, and what the batch wants of the distribution that it comes from.
func (m *Model) reportPart(worker, i int) {
	b, r, res, s := m.plan.batch, &m.plan.rows[i], &m.result, &m.buf.workers[worker]
	res.Token[i], res.Accept[i], res.Stop[i] = 0, 0, false
	if r.wanted == 0 {
		return
	}
	for o := range r.wanted {
		row := m.padded(r.outputs + o)
		if !finite(m.level, row) {
			m.plan.failed[i] = true
			return
		}
		for j := m.config.Vocab; j < len(row); j++ {
			row[j] = float32(math.Inf(-1))
		}
	}
	if r.drafted() > 0 {
		m.verify(i, s)
	} else {
		res.Token[i] = m.sample(r, s, m.padded(r.outputs), b.Pos[i])
		res.Stop[i] = m.stops(&r.sampling, res.Token[i])
		r.sampled = 0
		if b.Verify != nil {
			m.opt.Proposals.put(b.Handle[i], proposal{
				request: b.ID[i], model: b.Model, pos: b.Pos[i], token: res.Token[i],
			}, m.logits(r.outputs))
		}
	}
	if b.Want&^step.Drafts != 0 {
		m.columns(i, s)
	}
}

// columns fills in what the batch wants of the distribution that row i's token comes from: the model's own, before
// temperature and cuts, so that routers see the same whatever the sampling.
func (m *Model) columns(i int, s *scratch) {
	b, r, res := m.plan.batch, &m.plan.rows[i], &m.result
	logits := m.padded(r.outputs + r.sampled)
	best := argmax(m.level, logits)
	top := logits[best]
	sum, weighted := expSums(m.level, logits, top)
	entropy := max(0, math.Log(sum)-weighted/sum)
	if res.Entropy != nil {
		res.Entropy[i] = entropy
	}
	if res.Normalised != nil {
		res.Normalised[i] = 0
		if m.config.Vocab > 1 {
			res.Normalised[i] = min(1, entropy/math.Log(float64(m.config.Vocab)))
		}
	}
	if res.Confidence != nil {
		res.Confidence[i] = 1 / sum
	}
	if res.Margin != nil {
		logits[best] = float32(math.Inf(-1))
		second := m.level.Max(logits)
		logits[best] = top
		res.Margin[i] = (1 - math.Exp(float64(second-top))) / sum
	}
	if res.Top != nil {
		to := res.Top[i*b.TopK:][:b.TopK]
		d := &s.dist[0]
		d.order = likeliest(d.order, logits[:m.config.Vocab], b.TopK)
		clear(to)
		for k, id := range d.order {
			to[k] = step.Candidate{Token: id, Probability: math.Exp(float64(logits[id]-top)) / sum}
		}
	}
}

// expSums are the sums of e^z and z e^z over z = logit - top. Each stretch is summed in float32, the stretches in
// float64, so that the length of a vocabulary costs no precision.
func expSums(l kernel.Level, logits []float32, top float32) (sum, weighted float64) {
	const stretch = 1024
	for len(logits) > 0 {
		n := min(stretch, len(logits))
		s, w := l.ExpSums(logits[:n], top)
		sum += float64(s)
		weighted += float64(w)
		logits = logits[n:]
	}
	return sum, weighted
}
