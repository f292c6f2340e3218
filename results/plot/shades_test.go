package plot

import (
	"image/color"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// Oklab against the values of Ottosson's article, and sRGB's ends.
func TestOklab(t *testing.T) {
	for _, c := range []struct {
		in   oklab
		want color.Color
	}{
		{oklab{1, 0, 0}, rgb(255, 255, 255)}, {oklab{}, rgb(0, 0, 0)},
		{oklab{0.62796, 0.22486, 0.12585}, rgb(255, 0, 0)},
		{oklab{0.86644, -0.23389, 0.17950}, rgb(0, 255, 0)},
		{oklab{0.45201, -0.03246, -0.31153}, rgb(0, 0, 255)},
	} {
		if got := c.in.color(); got != c.want {
			t.Errorf("%v: %v, want %v", c.in, got, c.want)
		}
	}
}

func distance(a, b oklab) float64 { return math.Hypot(math.Hypot(a.l-b.l, a.a-b.a), a.b-b.b) }

// Equal steps of a map look equally large, lightness tells the order, and a screen shows all of it.
func TestMapsAreUniform(t *testing.T) {
	for _, c := range []struct {
		name     string
		of       func(float64) oklab
		from, to float64
	}{
		{"rising", rising, 0, 1}, {"diverging, worse", diverging, -1, 0}, {"diverging, better", diverging, 1, 0},
	} {
		const steps = 50
		at := func(i int) oklab { return c.of(c.from + float64(i)/steps*(c.to-c.from)) }
		first := distance(at(0), at(1))
		for i := range steps {
			if d := distance(at(i), at(i+1)); math.Abs(d/first-1) > 0.01 {
				t.Errorf("%s: step %d is %v, the first %v", c.name, i, d, first)
			}
			if at(i+1).l <= at(i).l {
				t.Errorf("%s: lightness falls at step %d", c.name, i)
			}
			for _, x := range at(i).linear() {
				if x < -1e-3 || x > 1+1e-3 {
					t.Errorf("%s: step %d is %v: no screen shows that", c.name, i, at(i).linear())
				}
			}
		}
	}
}

func TestShades(t *testing.T) {
	nan := math.NaN()
	s := shadesOf([]float64{nan, 10, 30}, false, false)
	if low, _ := s.of(10); low != rising(0) {
		t.Errorf("least: %v", low)
	}
	if mid, _ := s.of(20); distance(mid, rising(0.5)) > 1e-12 {
		t.Errorf("middle: %v", mid)
	}
	if _, ok := s.of(nan); ok {
		t.Error("NaN has a colour")
	}
	if s := shadesOf([]float64{1, 100}, false, false); s.scale != log10 {
		t.Error("a wide spread is not logarithmic")
	}
	s = shadesOf([]float64{-20, 10}, true, false)
	if zero, _ := s.of(0); zero != diverging(0) {
		t.Errorf("0: %v", zero)
	}
	if up, _ := s.of(10); distance(up, diverging(0.5)) > 1e-12 { // as far from 0 as -10 is
		t.Errorf("+10: %v", up)
	}
	if less, _ := shadesOf([]float64{-20, 10}, true, true).of(-20); less != diverging(1) {
		t.Errorf("less is better: %v", less)
	}
	for _, values := range [][]float64{nil, {nan}, {7, 7}, {0, 0}} {
		for _, signed := range []bool{true, false} {
			b := colorBar{shades: shadesOf(values, signed, false)}
			b.of(7)
			if len(b.ticks()) == 0 {
				t.Errorf("of %v: no ticks", values)
			}
		}
	}
}

// The ticks of a bar lie on it and ascend.
func TestColorBarTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 8).Draw(t, "values")
		b := colorBar{shades: shadesOf(values, rapid.Bool().Draw(t, "signed"), false)}
		ticks := b.ticks()
		if len(ticks) == 0 || len(ticks) > 8 {
			t.Fatalf("%d ticks", len(ticks))
		}
		for i, tick := range ticks {
			if tick.Value < b.least || tick.Value > b.most || i > 0 && tick.Value <= ticks[i-1].Value {
				t.Fatalf("ticks %v from %v to %v", ticks, b.least, b.most)
			}
		}
	})
}
