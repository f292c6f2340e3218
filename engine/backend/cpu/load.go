package cpu

import (
	"slices"

	"github.com/trbench/trbench/engine/backend/cpu/kernel"
	"github.com/trbench/trbench/models/weights"
)

// layer is one transformer block as the kernels want it. Norms and biases are padded with zeros to whole vectors.
type layer struct {
	attnNorm []float32
	qkv      *kernel.Matrix // outputs: query heads, key heads, value heads, each padded to whole vectors
	bias     []float32      // of qkv; nil if there is none
	qNorm    []float32      // nil if there is none
	kNorm    []float32
	out      *kernel.Matrix // inputs: query heads, padded likewise
	mlpNorm  []float32
	gateUp   *kernel.Matrix // outputs: gate, padded to whole vectors, then up
	down     *kernel.Matrix
}

// load packs the weights. A matrix is bfloat16 if all that goes into it is, else float32.
func (m *Model) load(w *weights.Model) {
	c := &m.config
	dim, wide := c.HeadDim, m.cache.wide
	m.layers = make([]layer, c.Layers)
	for i := range m.layers {
		from, to := &w.Layers[i], &m.layers[i]
		to.attnNorm, to.mlpNorm = vector(&from.AttnNorm), vector(&from.MLPNorm)

		heads := []struct {
			n       int
			w, bias *weights.Tensor
		}{{c.Heads, &from.Wq, &from.Bq}, {c.KVHeads, &from.Wk, &from.Bk}, {c.KVHeads, &from.Wv, &from.Bv}}
		all := (c.Heads + 2*c.KVHeads) * wide
		to.qkv = kernel.NewMatrix(all, c.Hidden, stored(&from.Wq, &from.Wk, &from.Wv))
		if c.QKVBias {
			to.bias = make([]float32, to.qkv.Outputs())
		}
		at := 0
		for _, part := range heads {
			for h := range part.n {
				set(to.qkv, at, part.w, h*dim, dim)
				if c.QKVBias {
					copy(to.bias[at:], part.bias.Float32()[h*dim:][:dim])
				}
				at += wide
			}
		}
		if c.QKNorm {
			to.qNorm, to.kNorm = vector(&from.QNorm), vector(&from.KNorm)
		}

		to.out = kernel.NewMatrix(c.Hidden, c.Heads*wide, stored(&from.Wo))
		if to.out.DType() == kernel.BF16 {
			to.out.SetBF16(0, spread(from.Wo.Halves(), dim, wide))
		} else {
			to.out.SetF32(0, spread(from.Wo.Float32(), dim, wide))
		}

		gate := kernel.Pad(c.Intermediate, kernel.Lanes)
		to.gateUp = kernel.NewMatrix(2*gate, c.Hidden, stored(&from.Gate, &from.Up))
		set(to.gateUp, 0, &from.Gate, 0, c.Intermediate)
		set(to.gateUp, gate, &from.Up, 0, c.Intermediate)
		to.down = kernel.NewMatrix(c.Hidden, c.Intermediate, stored(&from.Down))
		set(to.down, 0, &from.Down, 0, c.Hidden)
	}
	m.norm = vector(&w.Norm)
	m.head = kernel.NewMatrix(c.Vocab, c.Hidden, stored(&w.Head))
	set(m.head, 0, &w.Head, 0, c.Vocab)
	m.embedding = newEmbedding(w, m.head)
	m.ones = slices.Repeat([]float32{1}, wide)
}

// stored is the type of a matrix that holds all of ts.
func stored(ts ...*weights.Tensor) kernel.DType {
	for _, t := range ts {
		if t.DType != weights.BF16 {
			return kernel.F32
		}
	}
	return kernel.BF16
}

// set stores n rows of t, from row lo on, as outputs first and following of to.
func set(to *kernel.Matrix, first int, t *weights.Tensor, lo, n int) {
	cols := t.Cols()
	if to.DType() == kernel.BF16 {
		to.SetBF16(first, t.Halves()[lo*cols:][:n*cols])
		return
	}
	if t.DType == weights.F32 {
		to.SetF32(first, t.F32()[lo*cols:][:n*cols])
		return
	}
	buf := make([]float32, kernel.Lanes*cols) // widened some rows at a time: a whole embedding may be gigabytes
	for i := 0; i < n; i += kernel.Lanes {
		rows := buf[:min(kernel.Lanes, n-i)*cols]
		for r := range len(rows) / cols {
			t.Row(rows[r*cols:], lo+i+r)
		}
		to.SetF32(first+i, rows)
	}
}

// vector is t padded with zeros to whole vectors.
func vector(t *weights.Tensor) []float32 {
	v := make([]float32, kernel.Pad(t.Len(), kernel.Lanes))
	copy(v, t.Float32())
	return v
}

// spread puts zeros after every dim values, to make them wide.
func spread[T float32 | uint16](from []T, dim, wide int) []T {
	if dim == wide {
		return from
	}
	to := make([]T, len(from)/dim*wide)
	for i := range len(from) / dim {
		copy(to[i*wide:], from[i*dim:][:dim])
	}
	return to
}

// embedding has a row for each token: the outputs of the head that it is tied to, or rows of its own.
type embedding struct {
	tied   *kernel.Matrix
	f32    []float32
	bf16   []uint16
	hidden int
}

func newEmbedding(w *weights.Model, head *kernel.Matrix) embedding {
	e := embedding{hidden: w.Config.Hidden}
	switch t := &w.Embedding; {
	case w.Config.Tied:
		e.tied = head
	case t.DType == weights.BF16:
		e.bf16 = slices.Clone(t.Halves())
	default:
		e.f32 = slices.Clone(t.Float32())
	}
	return e
}

// row stores the embedding of token id in to.
func (e *embedding) row(to []float32, id int) {
	to = to[:e.hidden]
	switch {
	case e.tied != nil:
		e.tied.Row(to, id)
	case e.bf16 != nil:
		for i, v := range e.bf16[id*e.hidden:][:e.hidden] {
			to[i] = weights.BF16ToFloat32(v)
		}
	default:
		copy(to, e.f32[id*e.hidden:])
	}
}
