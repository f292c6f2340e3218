package cpu

import (
	"math"
	"slices"
	"testing"

	"github.com/trbench/trbench/engine/backend/cpu/kernel"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/weights"
	"pgregory.net/rapid"
)

// weightsOf draws some weights, many of them equal.
func weightsOf(t *rapid.T) []float32 {
	return rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 20), func(i int) float32 { return float32(i) / 8 }), 1, 60).
		Draw(t, "weights")
}

func TestLikeliestIsTheHeadOfASort(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := weightsOf(t)
		k := rapid.IntRange(0, len(w)+2).Draw(t, "k")
		var all []int32
		for i := range w {
			all = append(all, int32(i))
		}
		slices.SortStableFunc(all, func(a, b int32) int { return likelier(w, a, b) })
		if got, want := likeliest(nil, w, k), all[:min(k, len(all))]; !slices.Equal(got, want) {
			t.Fatalf("likeliest %d of %v: %v, want %v", k, w, got, want)
		}
	})
}

// The oracle sorts everything.
func TestFilterLeavesTheNucleus(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := weightsOf(t)
		w[rapid.IntRange(0, len(w)-1).Draw(t, "not all are 0")] = 1
		k, p := rapid.IntRange(0, len(w)+1).Draw(t, "k"), float64(rapid.IntRange(0, 20).Draw(t, "20 p"))/20
		s := Sampling{TopK: k, TopP: p}

		var kept []int32
		for i := range w {
			kept = append(kept, int32(i))
		}
		slices.SortStableFunc(kept, func(a, b int32) int { return likelier(w, a, b) })
		if s.TopK > 0 {
			kept = kept[:min(s.TopK, len(kept))]
		}
		if s.TopP > 0 && s.TopP < 1 {
			total, mass := 0., 0.
			for _, i := range kept {
				total += float64(w[i])
			}
			for n, i := range kept {
				if mass += float64(w[i]); mass >= s.TopP*total {
					kept = kept[:n+1]
					break
				}
			}
		}
		want := make([]float32, len(w))
		for _, i := range kept {
			want[i] = w[i]
		}
		d := distribution{weight: slices.Clone(w)}
		if d.filter(&s, len(w)); !slices.Equal(d.weight, want) {
			t.Fatalf("top-k %d, top-p %g of %v: %v, want %v", s.TopK, s.TopP, w, d.weight, want)
		}
	})
}

// Evenly spaced draws hit each token as often as its weight says.
func TestPickFollowsTheWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := weightsOf(t)
		w[0]++
		d := distribution{weight: w, total: sum(w)}
		const draws = 2000
		hits := make([]float64, len(w))
		for i := range draws {
			hits[d.pick((float64(i)+.5)/draws)]++
		}
		for i, n := range hits {
			if want := d.probability(int32(i)) * draws; math.Abs(n-want) > 1 {
				t.Fatalf("token %d of weights %v: %g of %d draws, want %g", i, w, n, draws, want)
			}
		}
	})
}

func TestArgmaxTakesTheLowestOfEquals(t *testing.T) {
	forLevels(t, func(t *testing.T, simd string) {
		l, err := kernel.Parse(simd)
		if err != nil {
			t.Fatal(err)
		}
		logits := make([]float32, 64)
		logits[50], logits[13], logits[33] = 2, 2, 2
		if got := argmax(l, logits); got != 13 {
			t.Errorf("got %d, want 13", got)
		}
	})
}

// tiny is a model small enough to run thousands of times.
func tiny(seed uint64) *weights.Model {
	return randomModel(weights.Config{
		Architecture: weights.Llama, Layers: 1, Hidden: 16, Heads: 2, KVHeads: 1, HeadDim: 8, Intermediate: 16, Vocab: 12,
		RopeTheta: 1e4, RopeScaling: weights.RopeScaling{Kind: weights.RopePlain, Factor: 1}, NormEps: 1e-5, EOS: []int32{11},
	}, weights.F32, seed)
}

// chances are the probabilities of logits at temperature 1, in float64.
func chances(logits []float32) []float64 {
	p, total := make([]float64, len(logits)), 0.
	for i, v := range logits {
		p[i] = math.Exp(float64(v))
		total += p[i]
	}
	for i := range p {
		p[i] /= total
	}
	return p
}

// agree fails if counts of n draws can't well come from p: each within five standard deviations.
func agree(t *testing.T, what string, counts []int, p []float64) {
	t.Helper()
	n := 0
	for _, c := range counts {
		n += c
	}
	for i, c := range counts {
		want := p[i] * float64(n)
		if deviation := math.Sqrt(want * (1 - p[i])); math.Abs(float64(c)-want) > 5*deviation+1 {
			t.Errorf("%s: token %d came %d times of %d, want %.0f", what, i, c, n, want)
		}
	}
}

func TestSampledTokensFollowTheDistribution(t *testing.T) {
	const requests = 3000
	b := newRig(t, tiny(1), Options{}, requests)
	var rows []feed
	for h := range requests {
		b.tokens[h] = []int32{3, 1, 4}
		b.sampling[h] = Sampling{Temperature: 1, Seed: 7}
		rows = append(rows, feed{handle: step.Handle(h), upto: 3, sample: true})
	}
	first := slices.Clone(b.run(rows...).Token)
	counts := make([]int, b.config.Vocab)
	for _, id := range first {
		counts[id]++
	}
	agree(t, "temperature 1", counts, chances(b.Logits(0)))

	// The same draws again, in another batch and another order; other draws under another seed.
	slices.Reverse(rows)
	for i := range rows {
		rows[i].from = 2
	}
	again := slices.Clone(b.run(rows...).Token)
	slices.Reverse(again)
	if !slices.Equal(first, again) {
		t.Error("the same requests and positions drew other tokens")
	}
	for h := range requests {
		b.sampling[h].Seed = 8
	}
	other := slices.Clone(b.run(rows...).Token)
	slices.Reverse(other)
	if slices.Equal(first, other) {
		t.Error("another seed drew the same tokens")
	}
}

func TestStopTokens(t *testing.T) {
	b := newRig(t, tiny(1), Options{}, 1)
	b.tokens[0] = []int32{3, 1, 4}
	row := feed{handle: 0, upto: 3, sample: true}
	token := b.run(row).Token[0]
	for _, c := range []struct {
		name string
		eos  []int32
		stop []int32
		want bool
	}{
		{"the model's own", []int32{token}, nil, true},
		{"not the model's own", []int32{token + 1}, nil, false},
		{"none", []int32{token}, []int32{}, false},
		{"the request's", nil, []int32{99, token}, true},
	} {
		b.config.EOS, b.sampling[0].Stop = c.eos, c.stop
		if got := b.run(row).Stop[0]; got != c.want {
			t.Errorf("%s: stop is %v, want %v", c.name, got, c.want)
		}
	}
}
