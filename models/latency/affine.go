package latency

import (
	"fmt"
	"time"

	"github.com/trbench/trbench/engine/step"
)

// Affine prices a step by a base and what each row adds. Its terms are those of a fit of decode steps,
// c0 + c1 batch + c2 context, and of a fit of prefills, p0 + p1 N + p2 N², in milliseconds; N² is written
// n (n + 2k), which counts an extend of n tokens over k cached ones and is N² for a prefill.
//
//	decodes only   c0 + c1 b + c2 context
//	extends only   max(c0, p0 + p1 n + p2 w)
//	both           max(c0, p0) + c1 b + c2 context + p1 n + p2 w
//
// with b decodes over context tokens of KV in all, and extends of n = sum n_i tokens, w = sum n_i (n_i + 2 k_i). A step
// of extends alone never falls below c0, since it reads every weight just as a decode does: a fit of prefills holds for
// long ones, and its p0 is below that floor. What the decodes add and what the extends add is each at least 0: fits
// with a negative p2 exist (A100, TP 8).
//
// Limits: n tokens that ride along with decodes cost p1 n even where the step is bound by memory and they would be
// free; extends pay no memory traffic for their cached context. A Table does both better.
type Affine struct {
	C0 float64 `yaml:"c0_ms"`                   // a decode step's base
	C1 float64 `yaml:"c1_ms_per_seq"`           // a decode
	C2 float64 `yaml:"c2_ms_per_context_token"` // a token of the decodes' context
	P0 float64 `yaml:"p0_ms"`                   // a prefill step's base
	P1 float64 `yaml:"p1_ms_per_token"`         // a token of the extends
	P2 float64 `yaml:"p2_ms_per_token2"`        // a unit of n (n + 2k)
}

// StepTime evaluates the formula.
func (a Affine) StepTime(s step.Shape) time.Duration {
	decodes := max(0, a.C1*float64(s.Decodes)+a.C2*float64(s.DecodeContext))
	extends := max(0, a.P1*float64(s.ExtendTokens)+a.P2*float64(s.ExtendWork))
	switch {
	case s.Extends == 0:
		return duration(nsPerMS * (a.C0 + decodes))
	case s.Decodes == 0:
		return duration(nsPerMS * max(a.C0, a.P0+extends))
	default:
		return duration(nsPerMS * (max(a.C0, a.P0) + decodes + extends))
	}
}

// check reports a coefficient that is out of range, by its name in files.
func (a Affine) check() error {
	for _, c := range []struct {
		name  string
		value float64
		least float64
	}{
		{"c0_ms", a.C0, 0}, {"c1_ms_per_seq", a.C1, 0}, {"c2_ms_per_context_token", a.C2, 0},
		{"p0_ms", a.P0, 0}, {"p1_ms_per_token", a.P1, 0}, {"p2_ms_per_token2", a.P2, -maxMS},
	} {
		if !(c.value >= c.least && c.value <= maxMS) {
			return fieldErrorf(c.name, "is %g, wanted a number from %g to %g", c.value, c.least, float64(maxMS))
		}
	}
	if a.C0 == 0 && a.P0 == 0 {
		return fieldErrorf("c0_ms", "is 0, and so is p0_ms: a step of no rows would cost nothing")
	}
	return nil
}

// String is the formula with its numbers, without the terms that are 0.
func (a Affine) String() string {
	text := fmt.Sprintf("decode %g", a.C0)
	for _, t := range []struct {
		lead, unit string
		value      float64
	}{
		{" + ", " b", a.C1}, {" + ", " context", a.C2}, {", prefill ", "", a.P0}, {" + ", " n", a.P1},
		{" + ", " n(n+2k)", a.P2},
	} {
		if t.value != 0 || t.lead == ", prefill " {
			text += fmt.Sprintf("%s%g%s", t.lead, t.value, t.unit)
		}
	}
	return text + " ms"
}
