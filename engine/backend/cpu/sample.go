package cpu

import (
	"cmp"
	"math"
	"slices"

	"github.com/trbench/trbench/engine/backend/cpu/kernel"
	"github.com/trbench/trbench/models/signal"
)

// Sampling says how the tokens of one request are chosen. The zero value takes the likeliest one (the lowest id among
// equals) and stops at the model's own end tokens.
type Sampling struct {
	// Temperature divides the logits; below minTemperature, the likeliest token is taken.
	Temperature float64
	// TopK leaves the K likeliest tokens; <= 0 leaves all.
	TopK int
	// TopP leaves the fewest of the likeliest tokens whose probability adds up to P, after TopK; <= 0 and >= 1 leave all.
	TopP float64
	// Seed keys the draws. A draw depends on it, the request, the position and the model, and on nothing else.
	Seed uint64
	// Stop are the tokens that end the output; nil: the model's own, empty: none.
	Stop []int32
}

// Purposes of draws, far from those that package signal gives out.
const (
	sampled   signal.Purpose = 0x80 + iota // the token of a position
	corrected                              // the token in the place of a draft that isn't kept
)

// minTemperature is below what float32 logits tell apart.
const minTemperature = 1e-5

func (s *Sampling) greedy() bool { return !(s.Temperature >= minTemperature) }

// distribution is what a token is sampled from.
type distribution struct {
	weight []float32 // by token, unscaled; as long as a row of logits
	total  float64   // their sum
	order  []int32   // scratch
	logits []float32 // scratch
}

// set makes d what s samples from at logits, whose padding is -Inf.
func (d *distribution) set(l kernel.Level, logits []float32, s *Sampling, vocab int) {
	d.weight = grow(d.weight, len(logits))
	top, inverse := l.Max(logits), float32(1/s.Temperature)
	for i, v := range logits {
		d.weight[i] = (v - top) * inverse
	}
	l.Exp(d.weight, 0)
	d.filter(s, vocab)
	d.total = sum(d.weight[:vocab])
}

// filter takes the weight from the tokens that TopK and TopP leave out.
func (d *distribution) filter(s *Sampling, vocab int) {
	few, nucleus := s.TopK > 0 && s.TopK < vocab, s.TopP > 0 && s.TopP < 1
	all, total := d.weight[:vocab], 0.
	switch {
	case few:
		d.order = likeliest(d.order, all, s.TopK)
		for _, i := range d.order {
			total += float64(all[i])
		}
	case nucleus:
		total = sum(all)
		// Tokens of less than (1-P)/V each have less than 1-P together: none of them is in the nucleus.
		least := (1 - s.TopP) * total / float64(vocab)
		d.order = d.order[:0]
		for i, w := range all {
			if float64(w) >= least {
				d.order = append(d.order, int32(i))
			}
		}
		slices.SortFunc(d.order, func(a, b int32) int { return likelier(all, a, b) })
	default:
		return
	}
	kept := d.order
	if nucleus {
		mass := 0.
		for n, i := range kept {
			if mass += float64(all[i]); mass >= s.TopP*total {
				kept = kept[:n+1]
				break
			}
		}
	}
	slices.Sort(kept)
	next := 0
	for i := range all {
		if next < len(kept) && int(kept[next]) == i {
			next++
			continue
		}
		all[i] = 0
	}
}

func sum(weight []float32) float64 {
	total := 0.
	for _, w := range weight {
		total += float64(w)
	}
	return total
}

// likelier orders tokens by falling weight, equal ones by id.
func likelier(weight []float32, a, b int32) int {
	if c := cmp.Compare(weight[b], weight[a]); c != 0 {
		return c
	}
	return cmp.Compare(a, b)
}

// likeliest returns the k tokens of the largest weight (all of them if there are fewer), in order, in the memory of
// ids.
func likeliest(ids []int32, weight []float32, k int) []int32 {
	ids = ids[:0]
	if k <= 0 {
		return ids
	}
	for i, w := range weight {
		if len(ids) == k {
			if w <= weight[ids[k-1]] {
				continue
			}
			ids = ids[:k-1]
		}
		at, _ := slices.BinarySearchFunc(ids, int32(i), func(a, b int32) int { return likelier(weight, a, b) })
		ids = slices.Insert(ids, at, int32(i))
	}
	return ids
}

// probability is token's.
func (d *distribution) probability(token int32) float64 { return float64(d.weight[token]) / d.total }

// pick is the token at draw u in [0, 1): the tokens lie along it by id.
func (d *distribution) pick(u float64) int32 { return pick(u*d.total, d.weight) }

// pick is the first token at which the running sum of weights exceeds x, or, should rounding keep it below, the last
// one that has any.
func pick(x float64, weight []float32) int32 {
	last, running := int32(0), 0.
	for i, w := range weight {
		if w == 0 {
			continue
		}
		last = int32(i)
		if running += float64(w); running > x {
			break
		}
	}
	return last
}

// argmax is the token of the largest logit, the lowest id among equals.
func argmax(l kernel.Level, logits []float32) int32 {
	top := l.Max(logits)
	for i, v := range logits {
		if v == top {
			return int32(i)
		}
	}
	return 0 // not a number; report has checked
}

// sample is row r's token from logits, for the sequence's position pos.
func (m *Model) sample(r *row, s *scratch, logits []float32, pos int32) int32 {
	if r.sampling.greedy() {
		return argmax(m.level, logits)
	}
	d := &s.dist[0]
	d.set(m.level, logits, &r.sampling, m.config.Vocab)
	return d.pick(signal.Float64(r.key, pos, m.plan.batch.Model, sampled))
}

// finite says whether all of logits are, their padding being 0.
func finite(l kernel.Level, logits []float32) bool { return l.SumSquares(logits) <= math.MaxFloat32 }
