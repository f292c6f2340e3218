package cpu

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/trbench/trbench/models/weights"
)

// llama15M is the shape of a Llama of 15 million weights (TinyStories 15M).
var llama15M = weights.Config{
	Architecture: weights.Llama, Layers: 6, Hidden: 288, Heads: 6, KVHeads: 6, HeadDim: 48, Intermediate: 768,
	Vocab: 32000, MaxPositions: 1024,
	RopeTheta: 10_000, RopeScaling: weights.RopeScaling{Kind: weights.RopePlain, Factor: 1},
	NormEps: 1e-5, Tied: true, BOS: 1, EOS: []int32{2},
}

// randomModel is a model of shape c with random weights of type d, small enough that values stay about unit size.
func randomModel(c weights.Config, d weights.DType, seed uint64) *weights.Model {
	r := rand.New(rand.NewPCG(seed, 3))
	tensor := func(mean, deviation float64, shape ...int) weights.Tensor {
		n := 1
		for _, k := range shape {
			n *= k
		}
		data := make([]byte, 0, n*d.Size())
		for range n {
			v := float32(mean + deviation*r.NormFloat64())
			switch bits := math.Float32bits(v); d {
			case weights.F32:
				data = binary.LittleEndian.AppendUint32(data, bits)
			case weights.BF16:
				data = binary.LittleEndian.AppendUint16(data, uint16(bits>>16))
			case weights.F16: // normal numbers only, the fraction cut
				half := bits>>16&0x8000 | (bits>>23&0xff-127+15)<<10&0x7c00 | bits>>13&0x3ff
				if math.Abs(float64(v)) < 0x1p-14 {
					half = 0
				}
				data = binary.LittleEndian.AppendUint16(data, uint16(half))
			}
		}
		return weights.Tensor{Name: "random", DType: d, Shape: shape, Data: data}
	}
	matrix := func(out, in int) weights.Tensor { return tensor(0, 1/math.Sqrt(float64(in)), out, in) }
	queries, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	m := &weights.Model{Config: c, Embedding: tensor(0, 1, c.Vocab, c.Hidden), Norm: tensor(1, .1, c.Hidden)}
	for range c.Layers {
		l := weights.Layer{
			AttnNorm: tensor(1, .1, c.Hidden), MLPNorm: tensor(1, .1, c.Hidden),
			Wq: matrix(queries, c.Hidden), Wk: matrix(kv, c.Hidden), Wv: matrix(kv, c.Hidden), Wo: matrix(c.Hidden, queries),
			Gate: matrix(c.Intermediate, c.Hidden), Up: matrix(c.Intermediate, c.Hidden),
			Down: matrix(c.Hidden, c.Intermediate),
		}
		if c.QKVBias {
			l.Bq, l.Bk, l.Bv = tensor(0, .3, queries), tensor(0, .3, kv), tensor(0, .3, kv)
		}
		if c.QKNorm {
			l.QNorm, l.KNorm = tensor(1, .1, c.HeadDim), tensor(1, .1, c.HeadDim)
		}
		m.Layers = append(m.Layers, l)
	}
	m.Head = m.Embedding
	if !c.Tied {
		m.Head = matrix(c.Vocab, c.Hidden)
	}
	return m
}
