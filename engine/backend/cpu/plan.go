package cpu

import (
	"fmt"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

const (
	// chunkTokens is the most tokens that go through the layers together. It bounds the memory between layers, and is
	// enough for products to run at the speed of arithmetic.
	chunkTokens = 256
	// queryRows is about how many rows, tokens times query heads, share a pass over keys and values.
	queryRows = 24
)

// plan is what a batch asks for: its rows, and the tokens that they feed, one after the other.
type plan struct {
	batch   *step.Batch
	rows    []row
	tokens  []token
	outputs int    // positions whose logits are wanted
	longest int    // context after the step, tokens
	drafts  int    // to be scored
	tiles   []tile // of the chunk that is in the layers
	failed  []bool // rows whose logits are not finite
}

// row is one request of the batch.
type row struct {
	handle   step.Handle
	blocks   []int32 // of the sequence
	known    []int32 // the sequence's tokens up to Pos
	first    int     // position of the first token fed
	feed     int
	at       int // of its first token in plan.tokens
	wanted   int // its last positions whose logits are wanted: 0, or 1 and one for each draft
	outputs  int // number of the first of these among all
	drafts   int // number of its first draft among all
	sampled  int // which of its outputs the sampled token comes from
	sampling Sampling
	key      uint64 // of the request's draws
}

// drafted is the number of drafts that the row verifies.
func (r *row) drafted() int { return max(0, r.wanted-1) }

// token is one fed token.
type token struct {
	id, row int32
	pos     int32
	output  int32 // number of its logits among all; -1 where none are wanted
}

// tile is some neighbouring tokens of one row, whose queries go over the keys together.
type tile struct {
	row   int32
	token int32 // the first one, from the start of the chunk
	n     int32
}

// prepare makes the plan of b, and gives its sequences their blocks.
func (m *Model) prepare(b *step.Batch) error {
	p := &m.plan
	*p = plan{batch: b, rows: p.rows[:0], tokens: p.tokens[:0], tiles: p.tiles[:0], failed: p.failed[:0]}
	for i := range b.Handle {
		if err := m.prepareRow(b, i); err != nil {
			return fmt.Errorf("row %d, request %d: %w", i, b.ID[i], err)
		}
	}
	m.mu.Lock() // not before: the engine's functions take its own lock, under which it may call Release
	defer m.mu.Unlock()
	for i := range p.rows {
		r := &p.rows[i]
		s := m.cache.at(r.handle)
		if s.tokens < r.first {
			return fmt.Errorf("row %d, request %d: %w: it counts on KV of %d tokens, there are %d", i, b.ID[i], ErrBatch,
				r.first, s.tokens)
		}
		m.cache.truncate(s, r.first)
		m.cache.reserve(s, r.first+r.feed)
		r.blocks = s.blocks
	}
	return nil
}

func (m *Model) prepareRow(b *step.Batch, i int) error {
	p := &m.plan
	r := row{
		handle: b.Handle[i], first: int(b.Pos[i] - b.Feed[i]), feed: int(b.Feed[i]), at: len(p.tokens),
		outputs: p.outputs, drafts: p.drafts,
	}
	drafts := 0
	if b.Verify != nil {
		drafts = int(b.Verify[i])
	}
	if b.Sample[i] {
		r.wanted = 1 + drafts
	}
	if r.feed < max(1, r.wanted) || r.first < 0 || drafts > 0 && !b.Sample[i] {
		return fmt.Errorf("%w: it feeds %d tokens up to position %d and verifies %d", ErrBatch, b.Feed[i], b.Pos[i], drafts)
	}
	known := m.opt.Tokens(r.handle)
	if len(known) < int(b.Pos[i]) {
		return fmt.Errorf("%w: it feeds tokens up to position %d, the engine knows %d", ErrBatch, b.Pos[i], len(known))
	}
	r.known = known[:b.Pos[i]]
	if m.opt.Sampling != nil && b.Sample[i] {
		r.sampling = m.opt.Sampling(r.handle)
	}
	r.key = signal.Key(r.sampling.Seed, b.ID[i])

	for k, id := range r.known[r.first:] {
		if id < 0 || int(id) >= m.config.Vocab {
			return fmt.Errorf("%w: token %d at position %d, want 0 to %d", ErrBatch, id, r.first+k, m.config.Vocab-1)
		}
		t := token{id: id, row: int32(len(p.rows)), pos: int32(r.first + k), output: -1}
		if from := r.feed - r.wanted; k >= from {
			t.output = int32(p.outputs + k - from)
		}
		p.tokens = append(p.tokens, t)
	}
	p.outputs += r.wanted
	p.drafts += drafts
	p.longest = max(p.longest, int(b.Pos[i]))
	p.rows = append(p.rows, r)
	return nil
}

// cut makes the tiles of the tokens lo to hi, at most most tokens each.
func (p *plan) cut(lo, hi, most int) {
	p.tiles = p.tiles[:0]
	for i := lo; i < hi; {
		r := p.tokens[i].row
		end := min(hi, p.rows[r].at+p.rows[r].feed, i+most)
		p.tiles = append(p.tiles, tile{row: r, token: int32(i - lo), n: int32(end - i)})
		i = end
	}
}
