package signal

import (
	"fmt"
	"math"

	"github.com/trbench/trbench/engine/step"
)

// Source fills in what the router sees for each row of a step.
type Source interface {
	// Fill writes one score a row into dst, len(dst) >= b.Len(). It leaves dst alone where the model has no rule.
	Fill(b *step.Batch, dst []float64)
}

// Config describes a signal.
type Config struct {
	Seed  uint64
	Rules []Rule    // by model
	Rates []float64 // by model: the probability that its rule fires; in [0, 1]
	// Correlation of one token's firing with the next one's, in [0, 1): 0 is iid.
	Correlation float64
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
	return nil
}

// New returns a source: iid draws, or a two-state chain over the positions where Correlation > 0.
func New(c Config) (Source, error) {
	if err := c.valid(); err != nil {
		return nil, err
	}
	s := iid{seed: c.Seed, models: make([]modelScale, len(c.Rules))}
	for i, r := range c.Rules {
		s.models[i] = modelScale{used: r.Used(), chained: r.Used() && !r.Uniform, scale: newScale(r, c.Rates[i])}
	}
	if c.Correlation == 0 {
		return &s, nil
	}
	return &bursty{iid: s, correlation: c.Correlation}, nil
}

type modelScale struct {
	used    bool
	chained bool // fires by the chain when the signal is bursty; a uniform draw never does
	scale
}

// iid draws every score on its own: a rule fires with its rate, whatever happened before.
type iid struct {
	seed   uint64
	models []modelScale
}

func (s *iid) Fill(b *step.Batch, dst []float64) {
	m := &s.models[b.Model]
	if !m.used {
		return
	}
	id := b.ID
	pos, dst := b.Pos[:len(id)], dst[:len(id)]
	for i := range id {
		dst[i] = m.at(Float64(Key(s.seed, id[i]), pos[i], b.Model, Route))
	}
}

// bursty fires in runs: whether the rule fires at one position is a two-state Markov chain over the positions of a
// sequence, with the rate as its stationary probability and Correlation as its second eigenvalue:
// P(1->1) = r + c (1 - r), P(0->1) = r (1 - c). The chain belongs to the sequence: it does not depend on which system
// or model asks.
type bursty struct {
	iid
	correlation float64
	live        []chain // by handle
}

// chain is how far one sequence's chain has been drawn.
type chain struct {
	id    step.RequestID
	model step.ModelID
	valid bool
	fires bool
	pos   int32
}

func (s *bursty) Fill(b *step.Batch, dst []float64) {
	m := &s.models[b.Model]
	if !m.used {
		return
	}
	if !m.chained {
		s.iid.Fill(b, dst)
		return
	}
	for i, id := range b.ID {
		key := Key(s.seed, id)
		u := Float64(key, b.Pos[i], b.Model, Route)
		if s.fires(b.Handle[i], id, key, b.Pos[i], b.Model, m.rate) {
			u *= m.rate
		} else {
			u = math.Min(m.rate+u*(1-m.rate), math.Nextafter(1, 0))
		}
		dst[i] = m.at(u)
	}
}

// fires draws the chain on to pos. The chain restarts every renewal positions from its stationary law, so that a
// rollback or a late first look costs a bounded number of draws.
func (s *bursty) fires(h step.Handle, id step.RequestID, key uint64, pos int32, m step.ModelID, rate float64) bool {
	for int(h) >= len(s.live) {
		s.live = append(s.live, chain{})
	}
	c := &s.live[h]
	start := pos - pos%renewal
	if !c.valid || c.id != id || c.model != m || c.pos > pos || c.pos < start {
		*c = chain{id: id, model: m, valid: true, pos: start, fires: Float64(key, start, m, Burst) < rate}
	}
	for c.pos < pos {
		c.pos++
		p := rate * (1 - s.correlation)
		if c.fires {
			p += s.correlation
		}
		c.fires = Float64(key, c.pos, m, Burst) < p
	}
	return c.fires
}

const renewal = 4096 // positions; one break of the correlation in 4,096 tokens
