package cpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/trbench/trbench/engine/backend"
	"github.com/trbench/trbench/engine/backend/cpu/kernel"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/weights"
)

var (
	// ErrBatch is the kind of a batch that doesn't fit what the backend holds: a driver's mistake.
	ErrBatch = errors.New("batch does not fit the backend's state")
	// ErrNumbers is what a step gets whose logits are not finite: the weights are broken, or overflow float32.
	ErrNumbers = errors.New("logits are not finite")
)

// SIMDVariable names the environment variable that sets the SIMD level where Options.SIMD is empty: generic, avx2 or
// avx512.
const SIMDVariable = "TRBENCH_SIMD"

// DefaultBlockTokens is the size of a KV block: larger blocks make longer runs for the kernels, and waste half a block a
// sequence.
const DefaultBlockTokens = 64

// Options sets up a Model.
type Options struct {
	// Tokens returns the tokens that the engine knows of a request: prompt, committed tokens and drafts. For every row of
	// a batch it must return at least Batch.Pos[i] of them; they are read until Forward returns. Required. Forward calls
	// this and the next two functions on its own goroutine, under no lock.
	Tokens func(h step.Handle) []int32
	// Sampling says how a request's tokens are chosen; nil is the zero Sampling for all.
	Sampling func(h step.Handle) Sampling
	// Score, if not nil, fills in Result.Signal, the score of a router beside the models; else it is 0.
	Score func(b *step.Batch, signal []float64)
	// Proposals is where the models of an engine keep the distributions that drafts were sampled from. nil: a verifying
	// model takes a draft as its drafter's only choice, which is exact too but keeps fewer of them.
	Proposals *Proposals
	// Pool shares the work among cores; nil is the calling goroutine alone.
	Pool *Pool
	// SIMD is the kernels' level: generic, avx2 or avx512; empty is what SIMDVariable says, or the machine's best.
	SIMD string
	// BlockTokens is the size of a KV block; <= 0 is DefaultBlockTokens.
	BlockTokens int
}

// Model runs one model: a backend.Backend. One goroutine calls Forward and reads what it returned; Release may be
// called by others.
type Model struct {
	config weights.Config
	opt    Options
	level  kernel.Level

	embedding embedding
	layers    []layer
	norm      []float32
	head      *kernel.Matrix
	ones      []float32 // as long as a head

	mu    sync.Mutex // guards cache, but for the blocks' contents
	cache *cache

	plan   plan
	rope   rope
	buf    buffers
	cur    current
	tasks  tasks
	result step.Result
}

var _ backend.Backend = (*Model)(nil)

// New packs the weights of w for the kernels' use, in the type they are stored in (float16 as float32). It keeps
// nothing of w, which may be closed.
func New(w *weights.Model, o Options) (*Model, error) {
	if o.Tokens == nil {
		return nil, errors.New("backend cpu: Options.Tokens is nil: want the engine's table of tokens")
	}
	if o.BlockTokens <= 0 {
		o.BlockTokens = DefaultBlockTokens
	}
	name, from := o.SIMD, "Options.SIMD"
	if name == "" {
		name, from = os.Getenv(SIMDVariable), SIMDVariable
	}
	level, err := kernel.Parse(name)
	if err != nil {
		return nil, fmt.Errorf("backend cpu: %s: %w", from, err)
	}
	c := w.Config
	m := &Model{
		config: c, opt: o, level: level,
		cache: newCache(c.Layers, c.KVHeads, c.HeadDim, o.BlockTokens),
		rope:  newRope(c),
	}
	m.load(w)
	m.buf.workers = make([]scratch, o.Pool.Workers())
	m.tasks = m.newTasks()
	return m, nil
}

// Config is the model's architecture.
func (m *Model) Config() weights.Config { return m.config }

// SIMD is the level of the kernels in use.
func (m *Model) SIMD() string { return m.level.String() }

// WeightBytes is the memory that a decode step reads.
func (m *Model) WeightBytes() int64 {
	n := int64(m.head.Bytes())
	for i := range m.layers {
		l := &m.layers[i]
		n += int64(l.qkv.Bytes() + l.out.Bytes() + l.gateUp.Bytes() + l.down.Bytes())
	}
	return n
}

// MemoryBytes is the memory that the weights take: WeightBytes, and an embedding that is not the head.
func (m *Model) MemoryBytes() int64 {
	return m.WeightBytes() + 4*int64(len(m.embedding.f32)) + 2*int64(len(m.embedding.bf16))
}

// KVBytesPerToken is the memory that a token's keys and values take in a full block, which KV is given out in.
func (m *Model) KVBytesPerToken() int64 {
	return (4*int64(m.cache.blockFloats) + int64(m.cache.tokens) - 1) / int64(m.cache.tokens)
}

// BlockTokens is the size of a KV block: what the scheduler must account in, for its sum to be the memory's.
func (m *Model) BlockTokens() int { return m.cache.tokens }

// Release lets go of all that is kept for a request that has ended. Its handle may then be used for another one.
func (m *Model) Release(h step.Handle) {
	m.mu.Lock()
	if int(h) < len(m.cache.seqs) {
		m.cache.truncate(&m.cache.seqs[h], 0)
	}
	m.mu.Unlock()
	m.opt.Proposals.release(h)
}

// KVTokens is the number of tokens that the blocks in use have room for.
func (m *Model) KVTokens() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cache.held() * m.cache.tokens
}

// Forward runs one step. Row i has KV for the tokens before Pos[i]-Feed[i], which an earlier step has made; KV beyond
// is dropped, and the tokens up to Pos[i] are fed. Where Sample is set, the result has the next token and the columns
// that the batch wants. The result is valid until the next Forward.
//
// A batch that doesn't fit is an error of kind ErrBatch. After an error, and when ctx has ended, the KV of the batch's
// rows is what it was before the tokens were fed.
func (m *Model) Forward(ctx context.Context, b *step.Batch) (*step.Result, error) {
	if err := m.prepare(b); err != nil {
		return nil, fmt.Errorf("backend cpu: %w", err)
	}
	if err := m.forward(ctx); err != nil {
		return nil, fmt.Errorf("backend cpu: %w", err)
	}
	if err := m.report(b); err != nil {
		return nil, fmt.Errorf("backend cpu: %w", err)
	}
	m.mu.Lock()
	for i := range m.plan.rows {
		r := &m.plan.rows[i]
		m.cache.seqs[r.handle].tokens = r.first + r.feed
	}
	m.mu.Unlock()
	return &m.result, nil
}

// Logits are those that row's token was sampled from, one for each of the vocabulary; nil where the row sampled none.
// They are valid until the next Forward.
func (m *Model) Logits(row int) []float32 {
	r := &m.plan.rows[row]
	if r.wanted == 0 {
		return nil
	}
	return m.logits(r.outputs + r.sampled)
}

// stops says whether token ends the output of a request.
func (m *Model) stops(s *Sampling, token int32) bool {
	if s.Stop == nil {
		return slices.Contains(m.config.EOS, token)
	}
	return slices.Contains(s.Stop, token)
}
