package latency

import (
	"math"
	"slices"
)

const (
	// maxMS bounds a step time in a file, ms: some eleven days.
	maxMS = 1e9
	// maxAxis bounds the points along one axis of a grid, and maxCount what such a point may be.
	maxAxis  = 4096
	maxCount = 1 << 30
)

// Steps is measured step times on two grids: what a Profile is made of. Attention is the part of a step spent in
// attention kernels; where it isn't known apart, leave it out (nil) and the Profile estimates what it needs.
type Steps struct {
	Decode  DecodeGrid  `yaml:"decode"`
	Prefill PrefillGrid `yaml:"prefill"`
}

// DecodeGrid is the time of steps in which Batch sequences decode one token each over a context of ContextTokens each,
// this one included: StepMS[i][j] is for Batch[i] and ContextTokens[j]. A row may be shorter than ContextTokens: what
// is missing was not measured (it would not have fitted), and is extrapolated with a warning.
type DecodeGrid struct {
	Batch         []int       `yaml:"batch,flow"`
	ContextTokens []int       `yaml:"context_tokens,flow"`
	StepMS        [][]float64 `yaml:"step_ms"`
	AttentionMS   [][]float64 `yaml:"attention_ms,omitempty"`
}

// PrefillGrid is the time of steps that prefill one prompt of Tokens from position 0.
type PrefillGrid struct {
	Tokens      []int     `yaml:"tokens,flow"`
	StepMS      []float64 `yaml:"step_ms,flow"`
	AttentionMS []float64 `yaml:"attention_ms,flow,omitempty"`
}

// clone copies s, so that a Profile can't be changed through the slices that it was made of.
func (s Steps) clone() Steps {
	rows := func(in [][]float64) [][]float64 {
		out := slices.Clone(in)
		for i := range out {
			out[i] = slices.Clone(out[i])
		}
		return out
	}
	d, p := s.Decode, s.Prefill
	return Steps{
		DecodeGrid{slices.Clone(d.Batch), slices.Clone(d.ContextTokens), rows(d.StepMS), rows(d.AttentionMS)},
		PrefillGrid{slices.Clone(p.Tokens), slices.Clone(p.StepMS), slices.Clone(p.AttentionMS)},
	}
}

// check reports the first thing that is wrong with s, by its path in files.
func (s Steps) check() error {
	if err := s.Decode.check(); err != nil {
		return within("decode", err)
	}
	return within("prefill", s.Prefill.check())
}

func (d DecodeGrid) check() error {
	if err := checkAxis("batch", d.Batch, 1); err != nil {
		return err
	}
	if err := checkAxis("context_tokens", d.ContextTokens, 1); err != nil {
		return err
	}
	if len(d.StepMS) != len(d.Batch) {
		return fieldErrorf("step_ms", "has %d rows, wanted %d, one for each batch", len(d.StepMS), len(d.Batch))
	}
	if d.AttentionMS != nil && len(d.AttentionMS) != len(d.Batch) {
		return fieldErrorf("attention_ms", "has %d rows, wanted %d, one for each batch", len(d.AttentionMS), len(d.Batch))
	}
	contexts := len(d.ContextTokens)
	for i, row := range d.StepMS {
		if len(row) > contexts || len(row) < min(contexts, 2) {
			return fieldErrorf(index("step_ms", i), "has %d values, wanted %d to %d: one for each context, "+
				"the longest left out where not measured", len(row), min(contexts, 2), contexts)
		}
		var attention []float64
		if d.AttentionMS != nil {
			attention = d.AttentionMS[i]
			if len(attention) != len(row) {
				return fieldErrorf(index("attention_ms", i), "has %d values, wanted %d, as in step_ms[%d]",
					len(attention), len(row), i)
			}
		}
		if err := checkTimes(index("step_ms", i), row, index("attention_ms", i), attention); err != nil {
			return err
		}
	}
	return nil
}

func (p PrefillGrid) check() error {
	if err := checkAxis("tokens", p.Tokens, 2); err != nil {
		return err
	}
	if len(p.StepMS) != len(p.Tokens) {
		return fieldErrorf("step_ms", "has %d values, wanted %d, one for each of tokens", len(p.StepMS), len(p.Tokens))
	}
	if p.AttentionMS != nil && len(p.AttentionMS) != len(p.Tokens) {
		return fieldErrorf("attention_ms", "has %d values, wanted %d, one for each of tokens",
			len(p.AttentionMS), len(p.Tokens))
	}
	return checkTimes("step_ms", p.StepMS, "attention_ms", p.AttentionMS)
}

// checkAxis wants at least so many counts, increasing.
func checkAxis(name string, axis []int, least int) error {
	if len(axis) < least || len(axis) > maxAxis {
		return fieldErrorf(name, "has %d values, wanted %d to %d", len(axis), least, maxAxis)
	}
	previous := 0
	for i, x := range axis {
		if x <= previous || x > maxCount {
			return fieldErrorf(index(name, i), "is %d, wanted %d to %d: counts increase", x, previous+1, maxCount)
		}
		previous = x
	}
	return nil
}

// checkTimes wants positive step times, each with an attention part below it, where there is one.
func checkTimes(stepName string, steps []float64, attentionName string, attention []float64) error {
	for i, ms := range steps {
		if !(ms > 0 && ms <= maxMS) {
			return fieldErrorf(index(stepName, i), "is %g ms, wanted above 0 and at most %g", ms, float64(maxMS))
		}
		if attention != nil && !(attention[i] >= 0 && attention[i] < ms) {
			return fieldErrorf(index(attentionName, i), "is %g ms, wanted 0 or more and less than the step's %g",
				attention[i], ms)
		}
	}
	return nil
}

// curvature is the coefficient of N² over the three longest prefills, at least 0, by divided differences: exact for a
// quadratic. It stands in for attention that was not measured apart; ms.
func (p PrefillGrid) curvature() float64 {
	n := len(p.Tokens)
	if n < 3 {
		return 0
	}
	slope := func(i int) float64 {
		return (p.StepMS[i+1] - p.StepMS[i]) / float64(p.Tokens[i+1]-p.Tokens[i])
	}
	return math.Max(0, (slope(n-2)-slope(n-3))/float64(p.Tokens[n-1]-p.Tokens[n-3]))
}
