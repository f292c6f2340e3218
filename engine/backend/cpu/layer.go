package cpu

import (
	"context"
	"math"

	"github.com/trbench/trbench/engine/backend/cpu/kernel"
)

const (
	// splitProduct is the multiplications from which a product is shared among cores. Below, bringing another core's inputs
	// and results over costs more than its help is worth: measured, 36 thousand lose, 61 thousand gain.
	splitProduct = 48 << 10
	// splitValues is the values from which element-wise work is.
	splitValues = 8 << 10
	// splitRows is the rows from which a part of a product is rows, for all outputs, and not outputs, for all rows. A
	// core then reads all weights, but its rows stay in its cache from stage to stage.
	splitRows = 24
	// spareProduct is the multiplications from which a product has more parts than workers, so that a core that is
	// disturbed holds up less.
	spareProduct = 4 << 20
)

// buffers is the memory between layers, for the tokens of a chunk; each has a row for a token. Rows are padded with
// zeros to whole vectors.
type buffers struct {
	chunk int // tokens that there is room for

	x      []float32 // residual stream
	normed []float32
	qkv    []float32
	mixed  []float32 // attention's result, by query head
	add    []float32 // what the residual stream gets next
	gateUp []float32

	final   []float32 // by output: normed, the head's input
	logits  []float32 // by output
	workers []scratch // by worker
}

// grow returns a buffer of n values; it keeps nothing of the old one's.
func grow[T any](b []T, n int) []T {
	if n <= cap(b) {
		return b[:n]
	}
	return make([]T, n)
}

// widths are the rows' lengths.
type widths struct{ hidden, qkv, mixed, add, gate, gateUp, vocab int }

func (m *Model) widths() widths {
	l := &m.layers[0]
	return widths{
		hidden: kernel.Pad(m.config.Hidden, kernel.Lanes),
		qkv:    l.qkv.Outputs(),
		mixed:  m.config.Heads * m.cache.wide,
		add:    l.out.Outputs(),
		gate:   kernel.Pad(m.config.Intermediate, kernel.Lanes),
		gateUp: l.gateUp.Outputs(),
		vocab:  m.head.Outputs(),
	}
}

// current is the state of the stage that runs, which its parts read.
type current struct {
	layer  *layer
	number int     // of the layer
	tokens []token // of the chunk
	w      widths

	// of a product
	y, x         []float32
	yStep, xStep int
	weights      *kernel.Matrix
	rows, parts  int

	// of element-wise work over tokens
	norm    []float32
	pending bool // add has not been added to x yet
	each    int  // tokens a part
}

// tasks are the parts of each stage, as the pool wants them: method values, made once.
type tasks struct{ embed, join, spread, attend, gate, product, rows, report func(worker, part int) }

func (m *Model) newTasks() tasks {
	return tasks{
		embed: m.embedPart, join: m.joinPart, spread: m.spreadPart, attend: m.attendPart, gate: m.gatePart,
		product: m.productPart, rows: m.rowsPart, report: m.reportPart,
	}
}

// forward computes the logits that the plan wants.
func (m *Model) forward(ctx context.Context) error {
	p, w := &m.plan, m.widths()
	m.cur.w = w
	chunk := min(chunkTokens, len(p.tokens))
	if chunk > m.buf.chunk {
		m.buf.chunk = chunk
		m.buf.x = make([]float32, chunk*w.hidden) // the padding stays 0
		m.buf.normed = make([]float32, chunk*w.hidden)
		m.buf.qkv = make([]float32, chunk*w.qkv)
		m.buf.mixed = make([]float32, chunk*w.mixed)
		m.buf.add = make([]float32, chunk*w.add)
		m.buf.gateUp = make([]float32, chunk*w.gateUp)
	}
	m.buf.final = grow(m.buf.final, p.outputs*w.hidden)
	m.buf.logits = grow(m.buf.logits, p.outputs*w.vocab)
	m.rope.reach(p.longest)
	m.reachScores()
	for lo := 0; lo < len(p.tokens); lo += chunkTokens {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m.chunk(lo, min(lo+chunkTokens, len(p.tokens)))
	}
	m.product(m.buf.logits, w.vocab, m.head, m.buf.final, w.hidden, p.outputs)
	return nil
}

// chunk takes the tokens lo to hi through all layers.
func (m *Model) chunk(lo, hi int) {
	c, b, w, t := &m.cur, &m.buf, &m.cur.w, &m.tasks
	c.tokens = m.plan.tokens[lo:hi]
	n := hi - lo
	m.plan.cut(lo, hi, m.tileTokens())
	m.forTokens(t.embed, w.hidden)
	c.pending = false
	for i := range m.layers {
		l := &m.layers[i]
		c.layer, c.number = l, i

		c.norm = l.attnNorm
		m.forTokens(t.join, w.hidden)
		m.product(b.qkv, w.qkv, l.qkv, b.normed, w.hidden, n)
		m.forTokens(t.spread, w.qkv)
		m.attend()
		m.product(b.add, w.add, l.out, b.mixed, w.mixed, n)

		c.norm, c.pending = l.mlpNorm, true
		m.forTokens(t.join, w.hidden)
		m.product(b.gateUp, w.gateUp, l.gateUp, b.normed, w.hidden, n)
		m.forTokens(t.gate, 2*w.gate)
		m.product(b.add, w.add, l.down, b.gateUp, w.gateUp, n)
	}
	c.norm = m.norm
	m.forTokens(t.join, w.hidden)
	for i, t := range c.tokens {
		if t.output >= 0 {
			copy(b.final[int(t.output)*w.hidden:][:w.hidden], b.normed[i*w.hidden:])
		}
	}
}

// forTokens runs element-wise work on the chunk's tokens, values of them each.
func (m *Model) forTokens(task func(worker, part int), values int) {
	n := len(m.cur.tokens)
	m.cur.each = n
	if workers := m.opt.Pool.Workers(); workers > 1 && n*values >= splitValues {
		m.cur.each = share(n, workers)
	}
	m.opt.Pool.run((n+m.cur.each-1)/m.cur.each, task)
}

// share is the tokens of a part where there are n: two parts a worker, so that a core that is disturbed holds up less.
func share(n, workers int) int { return max(1, (n+2*workers-1)/(2*workers)) }

// part is the range of the chunk's tokens that a part of element-wise work has.
func (c *current) part(part int) (lo, hi int) {
	return part * c.each, min((part+1)*c.each, len(c.tokens))
}

func (m *Model) embedPart(_, part int) {
	lo, hi := m.cur.part(part)
	for i := lo; i < hi; i++ {
		m.embedding.row(m.buf.x[i*m.cur.w.hidden:], int(m.cur.tokens[i].id))
	}
}

// joinPart adds what the last product made to the residual stream, and norms the stream for the next one.
func (m *Model) joinPart(_, part int) {
	lo, hi := m.cur.part(part)
	w := &m.cur.w
	for i := lo; i < hi; i++ {
		x := m.buf.x[i*w.hidden:][:w.hidden]
		if m.cur.pending {
			m.level.Add(x, m.buf.add[i*w.add:])
		}
		m.rms(m.buf.normed[i*w.hidden:][:w.hidden], x, m.cur.norm, m.config.Hidden)
	}
}

// rms stores x over its root mean square, times weights, in to; x has n values and zeros after them.
func (m *Model) rms(to, x, weights []float32, n int) {
	mean := float64(m.level.SumSquares(x)) / float64(n)
	m.level.Mul(to, x, weights, float32(1/math.Sqrt(mean+m.config.NormEps)))
}

// spreadPart finishes queries, keys and values: bias, norm of heads, rotation; it scales queries for the softmax, and
// stores keys and values in the cache.
func (m *Model) spreadPart(_, part int) {
	lo, hi := m.cur.part(part)
	c, l := &m.config, m.cur.layer
	wide := m.cache.wide
	scale := float32(1 / math.Sqrt(float64(c.HeadDim)))
	for i := lo; i < hi; i++ {
		t := &m.cur.tokens[i]
		all := m.buf.qkv[i*m.cur.w.qkv:][:m.cur.w.qkv]
		if l.bias != nil {
			m.level.Add(all, l.bias)
		}
		for h := range c.Heads + c.KVHeads {
			head, norm, factor := all[h*wide:][:wide], l.qNorm, scale
			if h >= c.Heads {
				norm, factor = l.kNorm, 1
			}
			if norm != nil {
				m.rms(head, head, norm, c.HeadDim)
			}
			m.rope.turn(head, int(t.pos), factor)
		}
		block, slot := int(t.pos)/m.cache.tokens, int(t.pos)%m.cache.tokens
		cached := m.cache.layer(m.plan.rows[t.row].blocks[block], m.cur.number)
		for h := range c.KVHeads {
			keys := m.cache.keys(cached, h)
			for d, v := range all[(c.Heads+h)*wide:][:c.HeadDim] {
				keys[d*m.cache.columns+slot] = v
			}
			copy(m.cache.values(cached, h)[slot*wide:][:wide], all[(c.Heads+c.KVHeads+h)*wide:])
		}
	}
}

// gatePart is the activation of the feed-forward part, SiLU(gate) * up, in gate's place.
func (m *Model) gatePart(_, part int) {
	lo, hi := m.cur.part(part)
	w := &m.cur.w
	for i := lo; i < hi; i++ {
		row := m.buf.gateUp[i*w.gateUp:]
		m.level.SiLU(row[:w.gate], row[w.gate:][:w.gate])
	}
}

// product computes y = weights x for some rows, on as many cores as it is worth.
func (m *Model) product(y []float32, yStep int, weights *kernel.Matrix, x []float32, xStep, rows int) {
	work := rows * weights.Outputs() * weights.Inputs()
	parts := 1
	if workers := m.opt.Pool.Workers(); workers > 1 && work >= splitProduct {
		if each := share(rows, workers); each >= splitRows {
			c := &m.cur
			c.y, c.yStep, c.weights, c.x, c.xStep, c.rows, c.each = y, yStep, weights, x, xStep, rows, each
			m.opt.Pool.run((rows+each-1)/each, m.tasks.rows)
			return
		}
		parts = workers
		if work >= spareProduct {
			parts = 4 * workers
		}
		parts = min(parts, weights.Outputs()/kernel.Unit)
	}
	if parts == 1 {
		m.level.Product(y, yStep, weights, x, xStep, rows, 0, weights.Outputs())
		return
	}
	c := &m.cur
	c.y, c.yStep, c.weights, c.x, c.xStep, c.rows, c.parts = y, yStep, weights, x, xStep, rows, parts
	m.opt.Pool.run(parts, m.tasks.product)
}

func (m *Model) productPart(_, part int) {
	c := &m.cur
	units := c.weights.Outputs() / kernel.Unit
	lo, hi := part*units/c.parts*kernel.Unit, (part+1)*units/c.parts*kernel.Unit
	m.level.Product(c.y, c.yStep, c.weights, c.x, c.xStep, c.rows, lo, hi)
}

func (m *Model) rowsPart(_, part int) {
	c := &m.cur
	lo, hi := part*c.each, min((part+1)*c.each, c.rows)
	m.level.Product(c.y[lo*c.yStep:], c.yStep, c.weights, c.x[lo*c.xStep:], c.xStep, hi-lo, 0, c.weights.Outputs())
}
