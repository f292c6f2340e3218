package signal

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/trbench/trbench/engine/step"
)

func about(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %v, want %v +- %v", what, got, want, tolerance)
	}
}

func TestMeasure(t *testing.T) {
	m := Measure([]float64{.5, .25, .125, .125})
	about(t, "entropy", m.Entropy, 1.75*math.Ln2, 1e-12)
	about(t, "normalised", m.Normalised, 1.75/2, 1e-12)
	about(t, "confidence", m.Confidence, .5, 0)
	about(t, "margin", m.Margin, .25, 0)
	if m := Measure([]float64{0, 1, 0}); m != (Measured{Confidence: 1, Margin: 1}) {
		t.Errorf("a sure one: %+v", m)
	}
}

func TestScoreDraft(t *testing.T) {
	p, q := []float64{.6, .3, .1}, []float64{.2, .3, .5}
	s := ScoreDraft(p, q, 2, .19, 0)
	want := step.DraftScore{Ratio: .2, Variation: .4, Gain: .1, Loss: -math.Log(.1), Kept: true, Instead: 0}
	for _, c := range []struct {
		what      string
		got, want float64
	}{{"ratio", s.Ratio, want.Ratio}, {"variation", s.Variation, want.Variation}, {"gain", s.Gain, want.Gain}, {"loss", s.Loss, want.Loss}} {
		about(t, c.what, c.got, c.want, 1e-12)
	}
	if s.Kept != want.Kept || s.Agrees || s.Instead != 0 {
		t.Errorf("%+v, want %+v", s, want)
	}
	if s := ScoreDraft(p, q, 2, .21, .9); s.Kept || s.Instead != 0 {
		t.Errorf("rejected: %+v: the residual has token 0 alone", s)
	}
	if s := ScoreDraft(p, q, 0, .999, 0); !s.Kept || !s.Agrees || s.Ratio != 1 {
		t.Errorf("likelier under p: %+v", s)
	}
}

// distribution draws a distribution over n tokens.
func distribution(rng *rand.Rand, n int) []float64 {
	p := make([]float64, n)
	sum := 0.
	for i := range p {
		p[i] = -math.Log(1 - rng.Float64())
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// Speculative sampling writes the large model's distribution: over all sequences of three tokens of a toy pair, whose
// distributions depend on the token before, chi-square at the 99.9 % level.
func TestSpeculativeSamplingIsExact(t *testing.T) {
	const vocabulary, drafts, length, n = 4, 2, 3, 200000
	rng := rand.New(rand.NewPCG(1, 2))
	var p, q [vocabulary][]float64
	for i := range p {
		p[i], q[i] = distribution(rng, vocabulary), distribution(rng, vocabulary)
	}
	seen := map[[length]int32]int{}
	rejected := 0
	for range n {
		text := []int32{0}
		for len(text) <= length {
			base := len(text)
			for range drafts {
				text = append(text, Sample(q[text[len(text)-1]], rng.Float64()))
			}
			kept := 0
			var instead int32
			for kept < drafts {
				before, token := text[base+kept-1], text[base+kept]
				s := ScoreDraft(p[before], q[before], token, rng.Float64(), rng.Float64())
				if !s.Kept {
					instead = s.Instead
					rejected++
					break
				}
				kept++
			}
			text = text[:base+kept]
			if kept == drafts {
				instead = Sample(p[text[len(text)-1]], rng.Float64())
			}
			text = append(text, instead)
		}
		seen[[length]int32(text[1:length+1])]++
	}
	chi, cells := 0., 0
	for a := range int32(vocabulary) {
		for b := range int32(vocabulary) {
			for c := range int32(vocabulary) {
				want := n * p[0][a] * p[a][b] * p[b][c]
				d := float64(seen[[length]int32{a, b, c}]) - want
				chi += d * d / want
				cells++
			}
		}
	}
	// Wilson and Hilferty's quantile of chi-square with cells - 1 degrees of freedom.
	df := float64(cells - 1)
	h := 2 / (9 * df)
	limit := df * math.Pow(1-h+3.0902*math.Sqrt(h), 3)
	if chi > limit {
		t.Errorf("chi-square %.1f with %v degrees of freedom, want at most %.1f", chi, df, limit)
	}
	if rejected < n/10 {
		t.Errorf("%d rejections: the pair is too much alike to test anything", rejected)
	}
	t.Logf("chi-square %.1f of at most %.1f, %d rejections", chi, limit, rejected)
}
