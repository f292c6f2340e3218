package signal

import (
	"fmt"
	"math"

	"github.com/trbench/trbench/engine/step"
)

// Source fills in what the router sees for each row of a step.
type Source interface {
	// Fill writes one score a row into dst, len(dst) >= b.Len(). It leaves dst alone where the model has no rule on an
	// external score.
	Fill(b *step.Batch, dst []float64)
}

// Reporter is a source that knows more than one score a row. The sources of this package are reporters.
type Reporter interface {
	Source
	// Report fills in res.Signal, len(res.Signal) >= b.Len(), res.Accept of rows that verify, likewise long, and the
	// columns that b.Want asks for.
	Report(b *step.Batch, res *step.Result)
}

// Admitter is a source that needs to hear of a request before its first step. The sources of this package do where
// they depend on how far a request is.
type Admitter interface {
	// Admit takes a request and its prompt's length, and returns the external router's score of the prompt.
	Admit(h step.Handle, id step.RequestID, prompt int32) float64
}

// Ender is a source that ends requests before their limit: it fills in res.Stop, len(res.Stop) >= b.Len(), and res.Token.
type Ender interface{ Ends() bool }

// Judge is a source that knows when two models agree.
type Judge interface {
	// Agrees says whether the smallest model's likeliest token at output position out is the largest model's too.
	Agrees(id step.RequestID, out int32) bool
}

// Grader is a source that knows how likely two models find a reference text.
type Grader interface {
	// NLL is -ln p of the reference's token at output position out, nats, under the largest model or under the smallest;
	// NaN where nobody knows.
	NLL(id step.RequestID, out int32, large bool) float64
}

// Results makes a step's result of what a source says, for a backend that computes nothing. It reuses its memory: a
// result holds until the next one.
type Results struct {
	source   Source
	reporter Reporter
	signal   []float64
	accept   []int32
	stop     []bool // nil unless the source ends requests
	token    []int32
	result   step.Result
}

// NewResults returns the results of a source, nil for none, for batches of at most rows.
func NewResults(s Source, rows int) *Results {
	r := &Results{source: s, signal: make([]float64, rows), accept: make([]int32, rows)}
	r.reporter, _ = s.(Reporter)
	if e, ok := s.(Ender); ok && e.Ends() {
		r.stop, r.token = make([]bool, rows), make([]int32, rows)
	}
	return r
}

// Of is the result of a step.
func (r *Results) Of(b *step.Batch) *step.Result {
	if r.source == nil {
		return &r.result
	}
	r.result.Signal, r.result.Stop, r.result.Token = r.signal, r.stop, r.token
	drafted := b.Drafted()
	switch {
	case b.Want == 0 && drafted == 0 && r.stop == nil:
		r.source.Fill(b, r.signal)
	case r.reporter != nil:
		r.result.Accept = r.accept
		r.result.Reset(b.Want, b.Len(), b.TopK, drafted)
		r.reporter.Report(b, &r.result)
	}
	return &r.result
}

// Config describes a signal.
type Config struct {
	Seed  uint64
	Rules []Rule    // by model
	Rates []float64 // by model: the probability that its rule fires; in [0, 1]
	// Correlation of one token's firing with the next one's, in [0, 1): 0 is iid.
	Correlation float64
	// Phases vary the rates over the output; nil is constant.
	Phases []Phase
	// Acceptance says what becomes of drafts; the zero value is the recorded pair's.
	Acceptance Acceptance
}

// RecordedCorrelation is the correlation of neighbouring tokens in a recorded R2R trace (2,571 tokens of one AIME
// problem, R2R project page): P(1->1) - P(0->1) = .108 - .0232.
const RecordedCorrelation = .0848

func (c *Config) valid() error {
	if len(c.Rules) != len(c.Rates) {
		return fmt.Errorf("signal: %d rules and %d rates", len(c.Rules), len(c.Rates))
	}
	for i, p := range c.Rates {
		if !(p >= 0 && p <= 1) {
			return fmt.Errorf("signal: model %d: rate %g is not a probability", i, p)
		}
		if err := c.Rules[i].valid(); err != nil {
			return err
		}
	}
	if !(c.Correlation >= 0 && c.Correlation < 1) {
		return fmt.Errorf("signal: correlation %g is not in [0, 1)", c.Correlation)
	}
	if err := validPhases(c.Phases); err != nil {
		return fmt.Errorf("signal: %w", err)
	}
	return c.Acceptance.valid()
}

// New returns a source: iid draws, or a two-state chain over the positions where Correlation > 0, at rates that follow
// Phases.
func New(c Config) (Source, error) {
	if err := c.valid(); err != nil {
		return nil, err
	}
	d := &drawn{seed: c.Seed, models: make([]model, len(c.Rules)), phases: c.Phases, correlation: c.Correlation}
	for i, r := range c.Rules {
		m := &d.models[i]
		m.rule, m.used = r, r.Used()
		m.chained = m.used && !r.Uniform && c.Correlation > 0
		for _, f := range factors(c.Phases) {
			m.scales = append(m.scales, newScale(r, min(1, c.Rates[i]*f)))
		}
		m.scale = m.scales[0]
		m.external = m.used && r.Score == External
	}
	d.accept = newAcceptor(c.Acceptance, c.Seed)
	d.iid = c.Correlation == 0 && len(c.Phases) == 0
	return d, nil
}

// drawn is a signal made of random draws.
type drawn struct {
	seed        uint64
	models      []model
	phases      []Phase
	correlation float64
	iid         bool // every score on its own: a rule fires with its rate, whatever happened before, wherever it is
	accept      acceptor
	prompts     []int32 // by handle
	chains      []chain // by handle
}

// model is how one model's score is drawn.
type model struct {
	rule     Rule
	used     bool
	external bool // the rule is on the score that Fill writes
	chained  bool // fires by the chain; a uniform draw never does
	scale
	scales []scale // by phase
}

// Fill implements Source.
func (d *drawn) Fill(b *step.Batch, dst []float64) {
	m := &d.models[b.Model]
	if !m.external {
		return
	}
	id := b.ID
	pos, dst := b.Pos[:len(id)], dst[:len(id)]
	if d.iid {
		for i := range id {
			dst[i] = m.at(Float64(Key(d.seed, id[i]), pos[i], b.Model, Route))
		}
		return
	}
	for i := range id {
		u, s := d.draw(m, b.Handle[i], id[i], pos[i], b.Model)
		dst[i] = s.at(u)
	}
}

// Admit implements Admitter.
func (d *drawn) Admit(h step.Handle, id step.RequestID, prompt int32) float64 {
	d.prompts = admit(d.prompts, h, prompt)
	u := Float64(Key(d.seed, id), prompt, 0, Asked)
	for i := range d.models {
		if m := &d.models[i]; m.used && m.rule.Score == Prompt {
			return m.at(u)
		}
	}
	return u
}

// admit notes a prompt's length under its handle.
func admit(prompts []int32, h step.Handle, prompt int32) []int32 {
	for int(h) >= len(prompts) {
		prompts = append(prompts, 0)
	}
	prompts[h] = prompt
	return prompts
}

// out is the output position of a token at pos of the sequence.
func out(prompts []int32, h step.Handle, pos int32) int32 {
	if int(h) >= len(prompts) {
		return pos
	}
	return max(0, pos-prompts[h])
}

// draw is the uniform draw behind a score, low where the rule fires, and the scale that makes a score of it.
func (d *drawn) draw(m *model, h step.Handle, id step.RequestID, pos int32, at step.ModelID) (float64, *scale) {
	key := Key(d.seed, id)
	u := Float64(key, pos, at, Route)
	s := &m.scale
	if len(d.phases) > 0 {
		s = &m.scales[phase(d.phases, out(d.prompts, h, pos))]
	}
	if !m.chained {
		return u, s
	}
	if d.fires(m, h, id, key, pos, at) {
		return u * s.rate, s
	}
	return math.Min(s.rate+u*(1-s.rate), math.Nextafter(1, 0)), s
}

// chain is how far one sequence's chain has been drawn. A bursty signal fires in runs: whether the rule fires at one
// position is a two-state Markov chain over the positions of a sequence, with the rate as its stationary probability
// and Correlation as its second eigenvalue: P(1->1) = r + c (1 - r), P(0->1) = r (1 - c). The chain belongs to the
// sequence: it does not depend on which system or model asks.
type chain struct {
	id    step.RequestID
	model step.ModelID
	valid bool
	fires bool
	pos   int32
}

// fires draws the chain on to pos. The chain restarts every renewal positions from its stationary law, so that a
// rollback or a late first look costs a bounded number of draws.
func (d *drawn) fires(m *model, h step.Handle, id step.RequestID, key uint64, pos int32, at step.ModelID) bool {
	for int(h) >= len(d.chains) {
		d.chains = append(d.chains, chain{})
	}
	rate := func(pos int32) float64 {
		if len(d.phases) == 0 {
			return m.rate
		}
		return m.scales[phase(d.phases, out(d.prompts, h, pos))].rate
	}
	c := &d.chains[h]
	start := pos - pos%renewal
	if !c.valid || c.id != id || c.model != at || c.pos > pos || c.pos < start {
		*c = chain{id: id, model: at, valid: true, pos: start, fires: Float64(key, start, at, Burst) < rate(start)}
	}
	for c.pos < pos {
		c.pos++
		p := rate(c.pos) * (1 - d.correlation)
		if c.fires {
			p += d.correlation
		}
		c.fires = Float64(key, c.pos, at, Burst) < p
	}
	return c.fires
}

const renewal = 4096 // positions; one break of the correlation in 4,096 tokens
