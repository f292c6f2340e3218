package latency

import (
	"testing"
	"time"

	"github.com/trbench/trbench/engine/step"
)

// decodeOf is a step of b decodes.
func decodeOf(b int) step.Shape {
	return step.Shape{Decodes: b, DecodeContext: int64(100 * b), Longest: 100}
}

// A replay goes along the log: it takes steps of the kind asked for in the log's order, stalls where they stood, and
// scales what is only like it.
func TestReplay(t *testing.T) {
	law := Affine{C0: 1, C1: .1, P0: 1, P1: .1}
	extend := step.Shape{Extends: 1, ExtendTokens: 50, ExtendWork: 2500, ExtendContext: 50, Longest: 50}
	var steps []Timed
	for i := range 30 {
		steps = append(steps, Timed{decodeOf(1), time.Duration(1100+i) * time.Microsecond})
		if i%10 == 9 {
			steps = append(steps, Timed{extend, 7 * time.Millisecond})
		}
	}
	l, err := NewLog(law, steps)
	if err != nil {
		t.Fatal(err)
	}
	r := l.New(1, 0)
	last, wraps := time.Duration(0), 0
	for range 60 {
		d := r.StepTime(decodeOf(1))
		if d <= last {
			wraps++
		} else if last > 0 && d != last+time.Microsecond {
			t.Fatalf("%v after %v: not the log's next", d, last)
		}
		last = d
	}
	if wraps != 2 && wraps != 1 {
		t.Errorf("60 steps over a log of 30 went back to its beginning %d times", wraps)
	}
	if d := r.StepTime(extend); d != 7*time.Millisecond {
		t.Errorf("an extend took %v", d)
	}
	// Nothing of 8 decodes in the log: the law says 1.8 ms to 1.1.
	if d := r.StepTime(decodeOf(8)); d < 1800*time.Microsecond || d > 1900*time.Microsecond {
		t.Errorf("8 decodes took %v, want a logged step times 1.8 / 1.1", d)
	}
	a, b, c := l.New(1, 0), l.New(1, 0), l.New(2, 0)
	same, other := true, false
	for range 20 {
		x, y, z := a.StepTime(decodeOf(1)), b.StepTime(decodeOf(1)), c.StepTime(decodeOf(1))
		same, other = same && x == y, other || x != z
	}
	if !same || !other {
		t.Errorf("one seed twice gives the same: %v; another seed another: %v", same, other)
	}
	if _, err := NewLog(law, nil); err == nil {
		t.Error("a log without steps was taken")
	}
}
