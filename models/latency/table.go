package latency

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trbench/trbench/engine/step"
)

// Profile is measured step times, made ready for look-up. It is immutable: New gives each user an instance.
type Profile struct {
	name  string
	steps Steps

	batch, context axis
	step           []float64 // ns, by batch and then context; what was not measured is extrapolated
	rest           []float64 // ns by batch: a step less its attention
	measured       []int     // by batch: how many contexts are not extrapolated

	dense     curve   // ns by tokens fed: a step less its attention
	attention curve   // ns by n(n+2k): attention of a prefill
	launch    float64 // ns: the least attention of any prefill
	read      float64 // ns a token of cached context: reading KV when that is what bounds attention
}

// NewProfile prepares measured step times; name stands in warnings ("llama3-70b tp4 on a100"). It fails where s is not
// two proper grids.
func NewProfile(name string, s Steps) (*Profile, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	s = s.clone()
	p := &Profile{name: name, steps: s, batch: newAxis(s.Decode.Batch), context: newAxis(s.Decode.ContextTokens)}
	p.fillDecode()
	p.fillPrefill()
	return p, nil
}

// Name is what warnings call the profile.
func (p *Profile) Name() string { return p.name }

// Steps returns a copy of the measurements.
func (p *Profile) Steps() Steps { return p.steps.clone() }

// New returns a fresh instance.
func (p *Profile) New() *Table { return &Table{p: p} }

func (p *Profile) fillDecode() {
	d := p.steps.Decode
	for i := range p.batch.at {
		row := d.StepMS[min(i, len(d.StepMS)-1)] // the one batch of a one-row grid serves twice
		rest := row[0]
		if d.AttentionMS != nil {
			rest -= d.AttentionMS[min(i, len(d.StepMS)-1)][0]
		}
		p.rest = append(p.rest, rest*nsPerMS)
		measured, slope := len(row), 0.0
		if n := len(row); n > 1 {
			slope = max(0, (row[n-1]-row[n-2])/(p.context.at[n-1]-p.context.at[n-2]))
		} else {
			measured = len(p.context.at) // a grid of one context is flat
		}
		p.measured = append(p.measured, measured)
		for j, x := range p.context.at {
			ms := row[min(j, len(row)-1)]
			if j >= len(row) {
				ms += slope * (x - p.context.at[len(row)-1])
			}
			p.step = append(p.step, ms*nsPerMS)
		}
	}
	// The last row with two contexts has the largest batch: there, more context is more memory traffic and nothing else.
	attention := d.AttentionMS
	if attention == nil {
		attention = d.StepMS
	}
	for i, row := range attention {
		if n := len(row); n > 1 {
			tokens := float64(d.Batch[i]) * (p.context.at[n-1] - p.context.at[0])
			p.read = max(0, (row[n-1]-row[0])/tokens) * nsPerMS
		}
	}
}

func (p *Profile) fillPrefill() {
	g := p.steps.Prefill
	curvature := g.curvature()
	for i, b := range p.steps.Decode.Batch {
		if b < g.Tokens[0] {
			p.dense.add(float64(b), p.rest[i])
		}
	}
	for i, n := range g.Tokens {
		work := float64(n) * float64(n)
		attention := math.Min(curvature*work, g.StepMS[i])
		if g.AttentionMS != nil {
			attention = g.AttentionMS[i]
		}
		p.dense.add(float64(n), (g.StepMS[i]-attention)*nsPerMS)
		p.attention.add(work, attention*nsPerMS)
	}
	p.launch = slices.Min(p.attention.y)
}

// Table prices steps by a Profile: decodes bilinearly in batch and mean context, a prefill piecewise in its tokens,
// both exact at the grid's points. The parts add up like this, D and P being the decode and prefill tables, each split
// into attention and the rest (matrix products, norms, all-reduce):
//
//	decodes only   D(b, c)
//	extends only   rest(n) + A0 + a
//	both           D(b, c) + max(0, rest(b + n) - rest(b)) + a
//	a            = max(A(w) - A0, read * cached)
//
// and never less than D(rows, c) where some row has cached context: feeding several tokens of a request over its KV
// takes at least what feeding one does.
//
// for b decodes of mean context c, and extends that feed n = sum n_i tokens over sum k_i = cached ones, with
// w = sum n_i (n_i + 2 k_i). The rest depends only on how many tokens are fed, b + n of them: it is one curve, whose
// points below the shortest prefill are decode batches of so many rows. A is P's attention, linear between its points
// in w = N² (exact for a quadratic); A0, the least of it, is what launching it costs, which decodes in the same step
// have paid. Extends are bound by computing, A(w) - A0, or by reading their cached KV, whichever is more. So a prefill
// costs P, and extends never make a step cheaper. The last rule holds for short ones: by their own price, which has one
// prefill's launch for all rows, they would come out up to 5 % (llama3-8b) or 19 % (qwen3-0.6b, batch 16) below decodes
// of the same rows.
//
// Limits: contexts that differ within a batch count by their mean, which flatters uneven ones; the attention of several
// prompts is priced as that of one with the same w; decodes' and extends' attention don't overlap.
//
// Below the grid (a context under the first, a batch under the first) the first cell holds. Beyond it the last cell's
// slope is carried on, never downwards, and Extrapolated says so.
type Table struct {
	p *Profile

	batch, context, dense, work int // the cells last looked up

	beyond struct {
		batch         int     // largest batch
		context       float64 // longest mean context
		cornerBatch   int     // the batch of the most tokens within both axes but not measured
		cornerContext float64
		tokens        int64 // most tokens fed
		cached        float64
		work          float64
	}
}

// StepTime interpolates. Of a step without rows it gives the least that a step of extends costs.
func (t *Table) StepTime(s step.Shape) time.Duration {
	if s.Extends == 0 && s.Decodes > 0 {
		ns, _ := t.decode(s)
		return duration(ns)
	}
	p := t.p
	fed, work := float64(s.Decodes)+float64(s.ExtendTokens), float64(s.ExtendWork)
	t.dense = p.dense.cell(t.dense, fed)
	t.work = p.attention.cell(t.work, work)
	dense := p.dense.value(t.dense, fed)
	attention := max(p.attention.value(t.work, work)-p.launch, p.read*float64(s.ExtendContext-s.ExtendTokens))
	if fed > p.dense.last() || work > p.attention.last() ||
		float64(s.ExtendContext) > float64(s.Extends)*p.context.last {
		t.noteExtends(s)
	}
	ns := dense + p.launch
	if s.Decodes > 0 {
		d, rest := t.decode(s)
		ns = d + max(0, dense-rest)
	}
	ns += attention
	if s.Decodes > 0 || s.ExtendContext > s.ExtendTokens {
		rows := step.Shape{Decodes: s.Seqs(), DecodeContext: s.DecodeContext + s.ExtendContext}
		if least, _, beyond := t.at(rows); least > ns {
			if ns = least; beyond {
				t.noteDecodes(rows)
			}
		}
	}
	return duration(ns)
}

// decode is D(b, c), and the part of it that is not attention, ns.
func (t *Table) decode(s step.Shape) (ns, rest float64) {
	ns, rest, beyond := t.at(s)
	if beyond {
		t.noteDecodes(s)
	}
	return ns, rest
}

// at is decode, and whether the shape lies beyond what was measured.
func (t *Table) at(s step.Shape) (ns, rest float64, beyond bool) {
	p := t.p
	b := float64(s.Decodes)
	c := float64(s.DecodeContext) / b
	t.batch = p.batch.cell(t.batch, b)
	t.context = p.context.cell(t.context, c)
	i, j := t.batch, t.context
	u, v := p.batch.fraction(i, b), p.context.fraction(j, c)
	low, high := p.step[i*len(p.context.at)+j:], p.step[(i+1)*len(p.context.at)+j:]
	rest = p.rest[i] + u*(p.rest[i+1]-p.rest[i])
	ns = bilinear(low[0], low[1], high[0], high[1], u, v)
	if u > 1 || v > 1 {
		ns = max(ns, bilinear(low[0], low[1], high[0], high[1], min(u, 1), min(v, 1)))
		rest = max(rest, p.rest[i]+min(u, 1)*(p.rest[i+1]-p.rest[i]))
	}
	edge := j // the last column that weighs in
	if v > 0 {
		edge++
	}
	beyond = b > p.batch.last || c > p.context.last || edge >= p.measured[i] || u > 0 && edge >= p.measured[i+1]
	return ns, rest, beyond
}

// bilinear is the value at fractions u down and v along a cell.
func bilinear(a, b, c, d, u, v float64) float64 {
	low, high := a+v*(b-a), c+v*(d-c)
	return low + u*(high-low)
}

func (t *Table) noteDecodes(s step.Shape) {
	p, far := t.p, &t.beyond
	batch, context := s.Decodes, float64(s.DecodeContext)/float64(s.Decodes)
	if float64(batch) > p.batch.last {
		far.batch = max(far.batch, batch)
	}
	if context > p.context.last {
		far.context = max(far.context, context)
	}
	if float64(batch) <= p.batch.last && context <= p.context.last &&
		float64(batch)*context > float64(far.cornerBatch)*far.cornerContext {
		far.cornerBatch, far.cornerContext = batch, context
	}
}

func (t *Table) noteExtends(s step.Shape) {
	p, far := t.p, &t.beyond
	if fed := s.Tokens(); float64(fed) > p.dense.last() {
		far.tokens = max(far.tokens, fed)
	}
	if mean := float64(s.ExtendContext) / float64(max(1, s.Extends)); mean > p.context.last {
		far.cached = max(far.cached, mean)
	}
	if work := float64(s.ExtendWork); work > p.attention.last() {
		far.work = max(far.work, work)
	}
}

// Extrapolated lists what lay beyond the table, each with its furthest value.
func (t *Table) Extrapolated() []string {
	p, far := t.p, t.beyond
	var warnings []string
	warn := func(format string, values ...any) {
		warnings = append(warnings, p.name+": "+fmt.Sprintf(format, values...))
	}
	if far.batch > 0 {
		warn("batch %d beyond the table's %.0f", far.batch, p.batch.last)
	}
	if context := max(far.context, far.cached); context > 0 {
		warn("context %.0f beyond the table's %.0f", math.Ceil(context), p.context.last)
	}
	if far.cornerBatch > 0 {
		row := 0
		for p.batch.at[row] < float64(far.cornerBatch) {
			row++
		}
		warn("batch %d at context %.0f beyond the table, which at batch %.0f ends at context %.0f",
			far.cornerBatch, math.Ceil(far.cornerContext), p.batch.at[row], p.context.at[p.measured[row]-1])
	}
	if far.tokens > 0 {
		warn("%d tokens fed in one step beyond the table's %.0f", far.tokens, p.dense.last())
	}
	if far.work > 0 {
		warn("attention of extends worth a prefill of %.0f tokens beyond the table's %.0f",
			math.Ceil(math.Sqrt(far.work)), math.Sqrt(p.attention.last()))
	}
	return warnings
}
