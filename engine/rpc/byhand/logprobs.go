package byhand

import (
	"cmp"
	"math"
	"slices"
)

// Logprob is a token and the logarithm of its probability, nats.
type Logprob struct {
	ID  int32
	Log float64
}

// Logprobs are the likeliest tokens of a distribution, by id: all that a server tells of it. Scores of the whole
// distribution are taken over these, so they are exact only for a small vocabulary.
type Logprobs []Logprob

func (l Logprobs) sort() {
	slices.SortFunc(l, func(a, b Logprob) int { return cmp.Compare(a.ID, b.ID) })
}

// Log is the logarithm of a token's probability; minus infinity where it wasn't reported.
func (l Logprobs) Log(id int32) float64 {
	for _, x := range l {
		if x.ID == id {
			return x.Log
		}
	}
	return math.Inf(-1)
}

// Likeliest is the likeliest token.
func (l Logprobs) Likeliest() Logprob {
	best := Logprob{Log: math.Inf(-1)}
	for _, x := range l {
		if x.Log > best.Log {
			best = x
		}
	}
	return best
}

// Confidence is the largest probability.
func (l Logprobs) Confidence() float64 { return math.Exp(l.Likeliest().Log) }

// Entropy is in nats.
func (l Logprobs) Entropy() float64 {
	h := 0.
	for _, x := range l {
		h -= math.Exp(x.Log) * x.Log
	}
	return h
}

// At is the distribution that a temperature makes of this one: what tokens are sampled from.
func (l Logprobs) At(temperature float64) Logprobs {
	best := l.Likeliest()
	if temperature == 0 {
		return Logprobs{{best.ID, 0}}
	}
	sum := 0.
	for _, x := range l {
		sum += math.Exp((x.Log - best.Log) / temperature)
	}
	out := slices.Clone(l)
	for i := range out {
		out[i].Log = (out[i].Log-best.Log)/temperature - math.Log(sum)
	}
	return out
}

// Less draws a token from max(0, l - q), renormalised: the token in the place of a rejected draft. u is in [0, 1).
func (l Logprobs) Less(q Logprobs, u float64) int32 {
	rest, sum := make([]float64, len(l)), 0.
	for i, x := range l {
		rest[i] = max(0, math.Exp(x.Log)-math.Exp(q.Log(x.ID)))
		sum += rest[i]
	}
	if sum == 0 {
		return l.Likeliest().ID
	}
	u *= sum
	last := 0
	for i, w := range rest {
		if w == 0 {
			continue
		}
		if last = i; u < w {
			break
		}
		u -= w
	}
	return l[last].ID
}

// Shared is the sum of min(l, q) over the tokens: 1 less their total variation.
func (l Logprobs) Shared(q Logprobs) float64 {
	sum := 0.
	for _, x := range l {
		sum += min(math.Exp(x.Log), math.Exp(q.Log(x.ID)))
	}
	return sum
}
