// Package kernels prices a step of a single-model server from measured times of its kernels, layer by layer: dense
// layers by the tokens that the step feeds, attention by prefill and decode together, with a correction where the
// decodes' contexts differ, output layer and sampler by sequences, and the collectives of tensor parallelism.
//
// It composes what was measured and fits nothing: a time between two measured ones is interpolated, one beyond them is
// extrapolated with a warning. Host time is not in the tables, and so not in a step.
//
// Read kernels.go (what a step is made of), then curve.go (one dimension), attention.go and skew.go (four, and the
// correction), load.go and csv.go (the files).
package kernels

import (
	"fmt"
	"math"
	"time"

	"github.com/trbench/trbench/engine/step"
)

// Shape is what the kernels' times depend on. A latency model that knows step.Shape alone prices its decodes as if all
// had the same context.
type Shape struct {
	step.Shape
	// DecodeLongest is the longest context of a decode after the step, tokens; 0 if there is none, or all are alike.
	DecodeLongest int
	// DecodeSquares is the sum over the decodes of the squared context; read only where DecodeLongest is set.
	DecodeSquares float64
}

// Model prices steps. It is immutable but for the bounds that Extrapolated reports, so an instance belongs to one
// goroutine.
type Model struct {
	arch    Arch
	without Mechanisms

	layer     curve // us by tokens: the dense kernels of one layer that multiply by weights
	small     curve // us by tokens: the elementwise kernels of one layer
	embedding curve // us by tokens
	norm      curve // us by tokens: the norm before the output layer
	head      curve // us by sequences: output layer
	sampler   curve // us by sequences
	reduce    curve // us by elements: all-reduce of bf16 among the GPUs; empty where there is none
	attention attention
	skew      skew

	most bounds
}

// Arch is what the tables don't say of the model and how it is split.
type Arch struct {
	Layers int
	Hidden int // width of the residual stream
	Vocab  int
	QKNorm bool // queries and keys are normed, which dense.csv then has as qk_norm
	TP     int  // GPUs that share each layer; the tables hold one GPU's part
}

// Mechanisms is a set of parts of a step, to be left out in order to see what they are worth.
type Mechanisms uint8

const (
	// Elementwise kernels: norms, rotary embedding, activation, embedding, sampler.
	Elementwise Mechanisms = 1 << iota
	// Skew is the correction for contexts that differ.
	Skew
	// Collectives of tensor parallelism.
	Collectives
)

// bounds are the furthest arguments so far.
type bounds struct{ tokens, seqs, chunk, decodes, context float64 }

// Without returns a copy of m that leaves parts out.
func (m *Model) Without(parts Mechanisms) *Model {
	c := *m
	c.without |= parts
	c.most = bounds{}
	return &c
}

// HasCollectives says that the steps of a tensor-parallel model hold its collectives.
func (m *Model) HasCollectives() bool { return !m.reduce.empty() }

// HasSkew says that there is a table of contexts that differ.
func (m *Model) HasSkew() bool { return !m.skew.empty() }

// StepTime implements latency.Model: the time of a step whose decodes have like contexts.
func (m *Model) StepTime(s step.Shape) time.Duration { return m.Time(Shape{Shape: s}) }

// Time is how long a step's kernels take on the GPU, at least 1 ns. All sequences of the step pass the output layer and
// the sampler, those whose prompt goes on in the next step too, as vLLM has it.
func (m *Model) Time(s Shape) time.Duration {
	tokens, seqs := float64(s.Tokens()), float64(s.Seqs())
	if tokens == 0 {
		return 1
	}
	m.most.tokens, m.most.seqs = max(m.most.tokens, tokens), max(m.most.seqs, seqs)
	layer := m.layer.at(tokens) + m.attend(&s)
	us := m.head.at(seqs)
	if m.without&Elementwise == 0 {
		layer += m.small.at(tokens)
		us += m.embedding.at(tokens) + m.norm.at(tokens) + m.sampler.at(seqs)
	}
	us += float64(m.arch.Layers) * layer
	if m.without&Collectives == 0 && m.HasCollectives() {
		us += m.collectives(tokens, seqs)
	}
	ns := us * 1000
	if !(ns >= 1) { // a NaN too
		return 1
	}
	return time.Duration(min(ns, math.MaxInt64/4) + .5)
}

// collectives is the time of a tensor-parallel step's collectives: an all-reduce of the residual stream behind the
// attention and the feed-forward part of each layer, and behind the embedding, whose rows are split as well; and the
// gathering of the logits. A ring's all-gather of n elements moves what its all-reduce of n / 2 moves.
func (m *Model) collectives(tokens, seqs float64) float64 {
	stream := m.reduce.at(tokens * float64(m.arch.Hidden))
	logits := m.reduce.at(seqs * float64(m.arch.Vocab) / 2)
	return float64(2*m.arch.Layers+1)*stream + logits
}

// attend is the attention of one layer, us.
func (m *Model) attend(s *Shape) float64 {
	chunk, cached := chunkOf(&s.Shape)
	if s.Decodes == 0 {
		if chunk == 0 {
			return 0
		}
		m.most.chunk = max(m.most.chunk, chunk)
		return m.attention.at(chunk, cached, 0, 0)
	}
	n := float64(s.Decodes)
	mean := float64(s.DecodeContext)/n - 1 // the tables count what was in KV before the step
	longest := mean
	if s.DecodeLongest > 0 {
		longest = float64(s.DecodeLongest) - 1
	}
	m.most.chunk, m.most.decodes = max(m.most.chunk, chunk), max(m.most.decodes, n)
	m.most.context = max(m.most.context, longest)
	even := m.attention.at(chunk, cached, n, mean)
	if longest <= mean || m.without&Skew != 0 || !m.HasSkew() {
		return even
	}
	// Two contexts, one of them the longest, with the mean and the variance of the batch's.
	variance := max(0, s.DecodeSquares/n-(mean+1)*(mean+1))
	small := max(0, mean-variance/(longest-mean))
	share := (mean - small) / (longest - small)
	alpha := m.skew.alpha(chunk, cached, n, share, small)
	return max(0, even+alpha*(m.attention.at(chunk, cached, n, longest)-even))
}

// chunkOf is the one prefill that stands for all those of a step: as many tokens over so much cached context that it
// attends to as many pairs; or, where several short prompts attend to fewer, a shorter one without context.
func chunkOf(s *step.Shape) (tokens, cached float64) {
	if s.Extends == 0 {
		return 0, 0
	}
	n := float64(s.ExtendTokens)
	work := float64(s.ExtendWork)
	if cached = (work/n - n) / 2; cached < 0 {
		return math.Sqrt(work), 0
	}
	return n, cached
}

// Extrapolated implements latency.Extrapolator: what lay beyond the tables so far.
func (m *Model) Extrapolated() []string {
	var found []string
	say := func(what string, most, last float64) {
		if last > 0 && most > last {
			found = append(found, fmt.Sprintf("%s up to %.0f, the tables end at %.0f: extrapolated", what, most, last))
		}
	}
	say("steps of tokens", m.most.tokens, m.layer.last())
	say("steps of sequences", m.most.seqs, m.head.last())
	say("prefills of tokens", m.most.chunk, m.attention.prefills.last())
	say("steps of decodes", m.most.decodes, m.attention.decodes.last())
	say("contexts of tokens", m.most.context, m.attention.longest())
	return found
}
