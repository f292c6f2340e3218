package signal

import (
	"github.com/trbench/trbench/engine/step"
)

// Report implements Reporter. A score that the model's rule is on is drawn so that the rule fires at its rate. The
// others come from the same draw and have the distribution that a recorded pair has, so that all scores of a token
// agree on how sure the model is.
func (d *drawn) Report(b *step.Batch, res *step.Result) {
	m := &d.models[b.Model]
	for i, id := range b.ID {
		u, s := d.draw(m, b.Handle[i], id, b.Pos[i], b.Model)
		res.Signal[i] = u
		if m.external {
			res.Signal[i] = s.at(u)
		}
		if b.Want&^step.Drafts != 0 {
			d.columns(b, res, i, m, u, s)
		}
	}
	if b.Drafted() > 0 {
		d.drafts(b, res)
	}
}

// columns fills in row i's scores of the sampling model from the draw u.
func (d *drawn) columns(b *step.Batch, res *step.Result, i int, m *model, u float64, s *scale) {
	put := func(column []float64, is Score, recorded *quantiles, rank float64) {
		if column == nil {
			return
		}
		if m.used && m.rule.Score == is {
			column[i] = s.at(u)
			return
		}
		column[i] = recorded.at(rank)
	}
	put(res.Entropy, Entropy, &recordedEntropy, 1-u)
	put(res.Normalised, Normalised, &recordedNormalised, 1-u)
	put(res.Confidence, Confidence, &recordedConfidence, u)
	put(res.Margin, Margin, &recordedMargin, u)
	if b.Want.Has(step.Top) {
		top := res.Top[i*b.TopK : (i+1)*b.TopK]
		clear(top)
		if len(top) > 0 {
			top[0].Probability = recordedConfidence.at(u)
		}
		if len(top) > 1 {
			top[1].Probability = max(0, top[0].Probability-recordedMargin.at(u))
		}
	}
}

// drafts fills in the fate of the drafts.
func (d *drawn) drafts(b *step.Batch, res *step.Result) {
	fates(b, d.seed, res.Accept, res.Drafts, func(i int, j, pos int32) float64 {
		return d.accept.alpha(j, out(d.prompts, b.Handle[i], pos))
	})
	if res.Drafts == nil {
		return
	}
	m := &d.models[b.Model]
	at := 0
	for i, k := range b.Verify {
		for j := range k {
			pos := b.Pos[i] - k + j
			s := &res.Drafts[at]
			at++
			s.Agrees = Float64(Key(d.seed, b.ID[i]), pos, b.Model, Agreed) < d.accept.Agreement
			u, scale := d.draw(m, b.Handle[i], b.ID[i], pos, b.Model)
			s.Loss = recordedLoss.at(1 - u)
			if !m.used {
				continue
			}
			switch m.rule.Score {
			case DraftGain:
				s.Gain = scale.at(u)
			case DraftGainRatio:
				s.Gain = scale.at(u) * s.Variation
			case DraftLoss:
				s.Loss = scale.at(u)
			}
		}
	}
}

// quantiles is a distribution: its value at rank 0, .05, ..., 1.
type quantiles [21]float64

// at is the value at rank r in [0, 1], by linear interpolation.
func (q *quantiles) at(r float64) float64 {
	x := r * float64(len(q)-1)
	i := min(int(x), len(q)-2)
	f := x - float64(i)
	return q[i]*(1-f) + q[i+1]*f
}

// What the small model of a recorded pair says of a token. measured: GSM8K answers, demo pair, 43,106 tokens.
var (
	recordedEntropy = quantiles{
		.0006, .0127, .0222, .0412, .0799, .1529, .272, .4361, .6534, .8791, 1.1284, 1.3786, 1.61, 1.8334, 2.0582, 2.3278, 2.6802,
		3.0196, 3.3843, 3.871, 4.9973,
	}
	recordedNormalised = recordedEntropy.over(recordedLogVocabulary)
	recordedConfidence = quantiles{
		.0334, .1523, .2125, .2663, .3201, .3785, .4402, .5043, .5762, .6546, .7328, .8099, .8757, .924, .9576, .9784, .99, .9953,
		.9977, .9988, 1,
	}
	recordedMargin = quantiles{
		0, .0201, .0482, .0819, .1259, .1803, .2486, .3272, .4203, .5249, .6346, .7379, .8277, .8946, .9411, .9701, .9858, .9935,
		.9969, .9984, 1,
	}
	// recordedLoss is the large model's -ln p of the token, nats.
	recordedLoss = quantiles{
		0, .0001, .0003, .0007, .0017, .0043, .0101, .0209, .0421, .0807, .1505, .2607, .4261, .6792, 1.0097, 1.4391, 1.9705, 2.6822,
		3.681, 5.4064, 19.5854,
	}
)

const recordedLogVocabulary = 6.931471805599453 // ln 1024

func (q quantiles) over(x float64) quantiles {
	for i := range q {
		q[i] /= x
	}
	return q
}
