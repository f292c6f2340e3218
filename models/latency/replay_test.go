package latency

import (
	"testing"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
)

// decodeOf is a step of b decodes.
func decodeOf(b int) step.Shape {
	return step.Shape{Decodes: b, DecodeContext: int64(100 * b), Longest: 100}
}

// A replay goes along the log by the clock: a step takes what the one of its kind took that began nearest to its own
// start and was not taken yet, so that a slow spell stays where it was; what is only like it is scaled.
func TestReplay(t *testing.T) {
	const ms = time.Millisecond
	law := Affine{C0: 1, C1: .1, P0: 1, P1: .1}
	extend := step.Shape{Extends: 1, ExtendTokens: 50, ExtendWork: 2500, ExtendContext: 50, Longest: 50}
	at := func(d time.Duration) clock.Instant { return clock.Instant(0).Add(d) }
	var steps []Timed // a step each 2 ms; those of the second 10 ms take ten times as long
	for i := range 15 {
		s := Timed{at(time.Duration(2*i) * ms), decodeOf(1), ms + time.Duration(i)*time.Microsecond}
		if i >= 5 && i < 10 {
			s.Time *= 10
		}
		if i == 7 {
			s.Shape = extend
		}
		steps = append(steps, s)
	}
	l, err := NewLog(law, steps)
	if err != nil {
		t.Fatal(err)
	}
	r := l.New()
	for _, c := range []struct {
		name  string
		at    time.Duration
		shape step.Shape
		want  time.Duration
	}{
		{"the step that began then", 4 * ms, decodeOf(1), steps[2].Time},
		{"the nearest one left, the later of two", 4 * ms, decodeOf(1), steps[3].Time},
		{"the earlier one", 4 * ms, decodeOf(1), steps[1].Time},
		{"in the slow spell", 13 * ms, decodeOf(1), steps[6].Time},
		{"no extend", 14 * ms, decodeOf(1), steps[8].Time},
		{"the extend, from far away", 1 * ms, extend, steps[7].Time},
		{"the extend again: it is the only one of its kind", 1 * ms, extend, steps[7].Time},
		{"8 decodes, which the law says take 1.8 ms to 1.1", 28 * ms, decodeOf(8), steps[14].Time * 18 / 11},
		{"after the log's end", l.span + 4*ms, decodeOf(1), steps[4].Time},
	} {
		if got := r.StepTimeAt(at(c.at), c.shape); got-c.want > 1 || c.want-got > 1 {
			t.Errorf("%s: %v at %v, want %v", c.name, got, c.at, c.want)
		}
	}
	for range 100 { // of 15 steps: none is too often to be had again
		if d := r.StepTimeAt(at(2*ms), decodeOf(1)); d < ms || d > 11*ms {
			t.Errorf("a decode took %v", d)
		}
	}
	if got := l.New().StepTimeAt(at(4*ms), decodeOf(1)); got != steps[2].Time {
		t.Errorf("a fresh replay: %v, want %v", got, steps[2].Time)
	}
	for _, wrong := range [][]Timed{nil, {steps[1], steps[0]}} {
		if _, err := NewLog(law, wrong); err == nil {
			t.Errorf("a log of %d steps out of order was taken", len(wrong))
		}
	}
}
