package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/trbench/trbench/engine/backend/cpu/kernel"
	"github.com/trbench/trbench/models/weights"
	"pgregory.net/rapid"
)

// reference is the forward pass in float64, written down from the architecture: no cache, no batch, no tricks. It
// returns the logits at every position.
func reference(m *weights.Model, ids []int32) [][]float64 {
	c := m.Config
	half, group := c.HeadDim/2, c.Heads/c.KVHeads
	freq := c.InvFreq()
	multiply := func(w *weights.Tensor, x []float64, bias *weights.Tensor) []float64 {
		y, v := make([]float64, w.Rows()), w.Float32()
		for o := range y {
			if bias.Present() {
				y[o] = float64(bias.Float32()[o])
			}
			for i, a := range x {
				y[o] += a * float64(v[o*len(x)+i])
			}
		}
		return y
	}
	norm := func(x []float64, w *weights.Tensor) []float64 {
		y, v, mean := make([]float64, len(x)), w.Float32(), 0.
		for _, a := range x {
			mean += a * a / float64(len(x))
		}
		for i, a := range x {
			y[i] = a / math.Sqrt(mean+c.NormEps) * float64(v[i])
		}
		return y
	}
	head := func(x []float64, h, pos int, w *weights.Tensor) []float64 {
		x = x[h*c.HeadDim:][:c.HeadDim]
		if w.Present() {
			x = norm(x, w)
		}
		y := make([]float64, c.HeadDim)
		for i, f := range freq {
			s, cos := math.Sincos(f * float64(pos))
			y[i], y[half+i] = x[i]*cos-x[half+i]*s, x[half+i]*cos+x[i]*s
		}
		return y
	}
	var none weights.Tensor
	keys, values := make([][][]float64, c.Layers), make([][][]float64, c.Layers)
	var logits [][]float64
	for pos, id := range ids {
		x := make([]float64, c.Hidden)
		for i, v := range m.Embedding.Row(make([]float32, c.Hidden), int(id)) {
			x[i] = float64(v)
		}
		for n := range m.Layers {
			l := &m.Layers[n]
			in := norm(x, &l.AttnNorm)
			q, k := multiply(&l.Wq, in, &l.Bq), multiply(&l.Wk, in, &l.Bk)
			for h := range c.KVHeads {
				copy(k[h*c.HeadDim:], head(k, h, pos, &l.KNorm))
			}
			keys[n], values[n] = append(keys[n], k), append(values[n], multiply(&l.Wv, in, &l.Bv))
			mixed := make([]float64, c.Heads*c.HeadDim)
			for h := range c.Heads {
				query, at := head(q, h, pos, &l.QNorm), h/group*c.HeadDim
				weight, sum := make([]float64, pos+1), 0.
				for p := range weight {
					for i, a := range query {
						weight[p] += a * keys[n][p][at+i] / math.Sqrt(float64(c.HeadDim))
					}
					weight[p] = math.Exp(weight[p])
					sum += weight[p]
				}
				for p, a := range weight {
					for i := range c.HeadDim {
						mixed[h*c.HeadDim+i] += a / sum * values[n][p][at+i]
					}
				}
			}
			for i, v := range multiply(&l.Wo, mixed, &none) {
				x[i] += v
			}
			in = norm(x, &l.MLPNorm)
			gate := multiply(&l.Gate, in, &none)
			for i, v := range multiply(&l.Up, in, &none) {
				gate[i] *= v / (1 + math.Exp(-gate[i]))
			}
			for i, v := range multiply(&l.Down, gate, &none) {
				x[i] += v
			}
		}
		logits = append(logits, multiply(&m.Head, norm(x, &m.Norm), &none))
	}
	return logits
}

// Shapes that no reference file has: Qwen 3's norms of heads, widths that are no multiple of a vector, heads wider than
// the residual stream, one key head for all, float16 weights, linear scaling.
func TestOddShapesAgreeWithFloat64(t *testing.T) {
	plain := weights.RopeScaling{Kind: weights.RopePlain, Factor: 1}
	shapes := []weights.Config{
		{Architecture: weights.Qwen3, QKNorm: true, Layers: 2, Hidden: 40, Heads: 6, KVHeads: 2, HeadDim: 12,
			Intermediate: 52, Vocab: 77, RopeTheta: 1e6, RopeScaling: plain, NormEps: 1e-6, Tied: true},
		{Architecture: weights.Llama, Layers: 2, Hidden: 50, Heads: 30, KVHeads: 1, HeadDim: 10, Intermediate: 33, Vocab: 35,
			RopeTheta: 1e4, RopeScaling: weights.RopeScaling{Kind: weights.RopeLinear, Factor: 4}, NormEps: 1e-5},
		{Architecture: weights.Qwen2, QKVBias: true, Layers: 1, Hidden: 300, Heads: 4, KVHeads: 4, HeadDim: 80,
			Intermediate: 290, Vocab: 64, RopeTheta: 1e4, RopeScaling: plain, NormEps: 1e-5, Tied: true},
	}
	for _, c := range shapes {
		for _, d := range []weights.DType{weights.F32, weights.F16, weights.BF16} {
			w := randomModel(c, d, 5)
			ids := randomTokens(6, 24, c.Vocab)
			want := reference(w, ids)
			for _, l := range kernel.Levels() {
				t.Run(fmt.Sprintf("%s/%s/%s", c.Architecture, d, l), func(t *testing.T) {
					b := newRig(t, w, Options{SIMD: l.String(), BlockTokens: 11}, 1)
					b.tokens[0] = ids
					for pos, logits := range b.all(0) {
						bound := 2e-6 * slices.Max(want[pos])
						for id, got := range logits {
							if diff := math.Abs(float64(got) - want[pos][id]); !(diff <= bound) {
								t.Fatalf("position %d: logit %d is %g, want %g", pos, id, got, want[pos][id])
							}
						}
					}
				})
			}
		}
	}
}

// Any shape, any mixture of the families' features, at every level: within the rounding of float32 of the float64 pass.
func TestAnyShapeAgreesWithFloat64(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		between := func(lo, hi int, what string) int { return rapid.IntRange(lo, hi).Draw(t, what) }
		kv := between(1, 3, "kv heads")
		c := weights.Config{
			Architecture: weights.Qwen3, QKNorm: rapid.Bool().Draw(t, "qk norm"), QKVBias: rapid.Bool().Draw(t, "qkv bias"),
			Layers: between(1, 2, "layers"), Hidden: between(8, 70, "hidden"),
			Heads: kv * between(1, 4, "group"), KVHeads: kv, HeadDim: 2 * between(1, 20, "half of a head"),
			Intermediate: between(8, 90, "intermediate"), Vocab: between(3, 90, "vocabulary"),
			RopeTheta: 1e4, RopeScaling: weights.RopeScaling{Kind: weights.RopePlain, Factor: 1}, NormEps: 1e-5,
			Tied: rapid.Bool().Draw(t, "tied"),
		}
		d := rapid.SampledFrom([]weights.DType{weights.F32, weights.F16, weights.BF16}).Draw(t, "dtype")
		w := randomModel(c, d, rapid.Uint64().Draw(t, "seed"))
		ids := randomTokens(7, between(1, 20, "tokens"), c.Vocab)
		want := reference(w, ids)
		for _, l := range kernel.Levels() {
			b := newRig(t, w, Options{SIMD: l.String(), BlockTokens: between(1, 30, "block")}, 1)
			b.tokens[0] = ids
			for pos, logits := range b.all(0) {
				size := 1.
				for _, v := range want[pos] {
					size = max(size, math.Abs(v))
				}
				for id, got := range logits {
					if diff := math.Abs(float64(got) - want[pos][id]); !(diff <= 1e-5*size) {
						t.Fatalf("%s, position %d: logit %d is %g, want %g", l, pos, id, got, want[pos][id])
					}
				}
			}
		}
	})
}
