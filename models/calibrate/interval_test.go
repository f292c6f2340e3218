package calibrate

import (
	"math"
	"testing"
)

// Wilson's interval as Newcombe (1998) tabulates it, table I.
func TestWilson(t *testing.T) {
	for _, c := range []struct{ k, n, low, high float64 }{
		{81, 263, .2553, .3662}, {15, 148, .0624, .1605}, {0, 20, 0, .1611}, {1, 29, .0061, .1718},
	} {
		e := wilson(c.k, c.n, c.n)
		if math.Abs(e.Low.Or(-1)-c.low) > 5e-5 || math.Abs(e.High.Or(-1)-c.high) > 5e-5 || e.Value != c.k/c.n {
			t.Errorf("%g of %g: %+v, want %g to %g", c.k, c.n, e, c.low, c.high)
		}
	}
	if e := wilson(0, 0, 0); !e.Low.IsNull() {
		t.Errorf("of nothing: %+v", e)
	}
	few, many := wilson(50, 100, 25), wilson(50, 100, 100)
	if !(few.High.Or(0)-few.Low.Or(0) > 1.8*(many.High.Or(0)-many.Low.Or(0))) {
		t.Errorf("an effective quarter: %+v, all %+v", few, many)
	}
}

// The exact bound: (1 - p)^n = .025 there.
func TestAtMost(t *testing.T) {
	for _, n := range []float64{1, 10, 1000} {
		if p := atMost(n); math.Abs(math.Pow(1-p, n)-.025) > 1e-12 {
			t.Errorf("of %g: %g", n, p)
		}
	}
	if atMost(0) != 1 {
		t.Error("no trial bounds nothing")
	}
}
