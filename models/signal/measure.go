package signal

import (
	"math"

	"github.com/trbench/trbench/engine/step"
)

// Measured are the scores of one distribution over the vocabulary.
type Measured struct {
	Entropy    float64 // nats
	Normalised float64 // entropy over ln V
	Confidence float64 // largest probability
	Margin     float64 // largest less second largest probability
}

// Measure is what a distribution p over the vocabulary says of its own sureness. p sums to 1.
func Measure(p []float64) Measured {
	var m Measured
	second := 0.
	for _, x := range p {
		if x > 0 {
			m.Entropy -= x * math.Log(x)
		}
		if x > m.Confidence {
			m.Confidence, second = x, m.Confidence
		} else {
			second = max(second, x)
		}
	}
	m.Margin = m.Confidence - second
	if len(p) > 1 {
		m.Normalised = m.Entropy / math.Log(float64(len(p)))
	}
	return m
}

// Sample is the token of a distribution p that the uniform draw u in [0, 1) falls to.
func Sample(p []float64, u float64) int32 {
	last := 0
	for i, x := range p {
		if x <= 0 {
			continue
		}
		if last = i; u < x {
			return int32(i)
		}
		u -= x
	}
	return int32(last) // rounding
}

// ScoreDraft applies the rule of speculative sampling to a token drafted from q, with p the verifying model's
// distribution at its position: it is kept if the uniform draw u is below p/q; otherwise Instead is drawn by v from the
// residual max(0, p - q), renormalised. What is written this way has the distribution p (arXiv 2211.17192, appendix
// A.1).
func ScoreDraft(p, q []float64, token int32, u, v float64) step.DraftScore {
	s := step.DraftScore{Ratio: 1, Instead: -1}
	var common, maxP, maxQ float64
	top := 0
	for i := range p {
		common += math.Min(p[i], q[i])
		if p[i] > maxP {
			maxP, top = p[i], i
		}
		maxQ = math.Max(maxQ, q[i])
	}
	s.Variation, s.Gain = max(0, 1-common), maxP-maxQ
	s.Loss, s.Agrees = -math.Log(p[token]), int32(top) == token
	if p[token] < q[token] {
		s.Ratio = p[token] / q[token]
	}
	s.Kept = u < s.Ratio
	s.Instead = residual(p, q, v)
	return s
}

// residual draws from max(0, p - q), renormalised, without making it; from p if the two are equal.
func residual(p, q []float64, v float64) int32 {
	sum := 0.
	for i := range p {
		sum += math.Max(0, p[i]-q[i])
	}
	if sum <= 0 {
		return Sample(p, v)
	}
	last, u := 0, v*sum
	for i := range p {
		x := p[i] - q[i]
		if x <= 0 {
			continue
		}
		if last = i; u < x {
			return int32(i)
		}
		u -= x
	}
	return int32(last)
}
