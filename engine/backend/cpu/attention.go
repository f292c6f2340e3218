package cpu

import (
	"math"

	"github.com/trbench/trbench/engine/backend/cpu/kernel"
)

const (
	// splitAttention is the multiplications from which a layer's attention is shared among cores, for the same reason as
	// splitProduct: measured, 61 thousand lose, 92 thousand gain.
	splitAttention = 80 << 10
	// attentionParts is the parts that a worker has of it: later tokens take longer than earlier ones.
	attentionParts = 8
)

// scratch is a worker's own memory.
type scratch struct {
	queries []float32 // of a tile: by token and query head, [dim]
	scores  []float32 // likewise, a row of positions; then weights
	mixed   []float32 // likewise, [wide]
	scales  []float32 // likewise: what makes the weights add up to 1
	dist    [2]distribution
}

// group is the number of query heads that share a key head.
func (m *Model) group() int { return m.config.Heads / m.config.KVHeads }

// tileTokens is the most tokens of a tile.
func (m *Model) tileTokens() int { return max(1, queryRows/m.group()) }

// scoreStep is the room for the scores of a query that sees n positions: whole blocks are scored, then whole vectors
// read.
func (m *Model) scoreStep(n int) int {
	blocks := (n + m.cache.tokens - 1) / m.cache.tokens
	return kernel.Pad(max(n, (blocks-1)*m.cache.tokens+m.cache.columns), kernel.Lanes)
}

// reachScores makes the scratch memory cover the plan's longest context.
func (m *Model) reachScores() {
	rows := m.tileTokens() * m.group()
	for i := range m.buf.workers {
		s := &m.buf.workers[i]
		s.scores = grow(s.scores, rows*m.scoreStep(m.plan.longest))
		s.queries = grow(s.queries, rows*m.cache.wide)
		s.mixed = grow(s.mixed, rows*m.cache.wide)
	}
}

// attend is attention over the cache for all of the chunk's tokens, whose own keys and values are in it.
func (m *Model) attend() {
	work := 0
	for _, t := range m.cur.tokens {
		work += int(t.pos) + 1
	}
	work *= 2 * m.config.Heads * m.config.HeadDim
	units := len(m.plan.tiles) * m.config.KVHeads
	m.cur.parts = 1
	if work >= splitAttention {
		m.cur.parts = min(units, attentionParts*m.opt.Pool.Workers())
	}
	m.opt.Pool.run(m.cur.parts, m.tasks.attend)
}

// attendPart does its share of the chunk's tiles, in the order of their tokens.
func (m *Model) attendPart(worker, part int) {
	heads, parts := m.config.KVHeads, m.cur.parts
	units := len(m.plan.tiles) * heads
	for u := part * units / parts; u < (part+1)*units/parts; u++ {
		m.attendTile(worker, &m.plan.tiles[u/heads], u%heads)
	}
}

// attendTile does one key head of one tile: the scores of its queries for all positions, a softmax, and the values by
// those weights. Each sum goes over positions in sequence, so it doesn't matter where blocks or tiles end.
func (m *Model) attendTile(worker int, t *tile, head int) {
	c, s, w, group := m.cache, &m.buf.workers[worker], &m.cur.w, m.group()
	first, n := int(t.token), int(t.n)
	seen := int(m.cur.tokens[first].pos) + 1 // positions that the tile's first query sees; the next one sees one more
	blocks := m.plan.rows[t.row].blocks
	rows, step := n*group, m.scoreStep(seen+n-1)

	// A single token's queries, and its result, lie in order where they are.
	queries, queryStep := m.buf.qkv[first*w.qkv+head*group*c.wide:], c.wide
	mixed := m.buf.mixed[first*w.mixed+head*group*c.wide:]
	if n > 1 {
		queries, mixed = s.queries, s.mixed
		for i := range n {
			from := m.buf.qkv[(first+i)*w.qkv+head*group*c.wide:]
			copy(queries[i*group*c.wide:][:group*c.wide], from)
		}
	}

	for at := 0; at < seen+n-1; at += c.tokens {
		keys := c.keys(c.layer(blocks[at/c.tokens], m.cur.number), head)
		m.level.Outer(s.scores[at:], step, keys, c.columns, queries, queryStep, c.dim, rows, false)
	}
	s.scales = s.scales[:0]
	for r := range rows {
		sees := seen + r/group
		all := s.scores[r*step:]
		scores := all[:kernel.Pad(sees, kernel.Lanes)]
		for i := sees; i < len(scores); i++ {
			scores[i] = float32(math.Inf(-1))
		}
		s.scales = append(s.scales, 1/m.level.Exp(scores, m.level.Max(scores)))
		if len(scores) < seen+n-1 {
			clear(all[len(scores) : seen+n-1])
		}
	}
	for at := 0; at < seen+n-1; at += c.tokens {
		values := c.values(c.layer(blocks[at/c.tokens], m.cur.number), head)
		m.level.Outer(mixed, c.wide, values, c.wide, s.scores[at:], step, min(c.tokens, seen+n-1-at), rows, at > 0)
	}
	for r := range rows {
		to := m.buf.mixed[(first+r/group)*w.mixed+(head*group+r%group)*c.wide:][:c.wide]
		m.level.Mul(to, mixed[r*c.wide:], m.ones, s.scales[r])
	}
}
