package latency

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trbench/trbench/engine/step"
)

// decodes is a step of b decodes over contexts of c tokens each.
func decodes(b, c int) step.Shape {
	return step.Shape{Decodes: b, DecodeContext: int64(b) * int64(c), Longest: c}
}

// extend is a step of one row that feeds n tokens over k cached ones.
func extend(n, k int) step.Shape {
	return step.Shape{Extends: 1, ExtendTokens: int64(n), ExtendWork: int64(n) * int64(n+2*k),
		ExtendContext: int64(n + k), Longest: n + k}
}

func plus(a, b step.Shape) step.Shape {
	return step.Shape{
		Decodes: a.Decodes + b.Decodes, DecodeContext: a.DecodeContext + b.DecodeContext,
		Extends: a.Extends + b.Extends, ExtendTokens: a.ExtendTokens + b.ExtendTokens,
		ExtendWork: a.ExtendWork + b.ExtendWork, ExtendContext: a.ExtendContext + b.ExtendContext,
		Longest: max(a.Longest, b.Longest),
	}
}

// shapes draws steps: decodes, extends or both, well beyond any table.
func shapes(t *rapid.T, label string) step.Shape {
	var s step.Shape
	if b := rapid.IntRange(0, 600).Draw(t, label+" decodes"); b > 0 {
		s = decodes(b, rapid.IntRange(1, 20000).Draw(t, label+" context"))
	}
	for range rapid.IntRange(0, 3).Draw(t, label+" extends") {
		s = plus(s, extend(rapid.IntRange(1, 10000).Draw(t, label+" tokens"),
			rapid.IntRange(0, 20000).Draw(t, label+" cached")))
	}
	return s
}

func TestConstant(t *testing.T) {
	for _, s := range []step.Shape{{}, decodes(1, 1), decodes(256, 8192), extend(8192, 0)} {
		if got := Constant(12 * time.Millisecond).StepTime(s); got != 12*time.Millisecond {
			t.Errorf("%+v: %v", s, got)
		}
	}
	if got := Constant(0).StepTime(decodes(1, 1)); got != 1 {
		t.Errorf("a step of no time takes %v, want 1ns", got)
	}
}

func TestAffine(t *testing.T) {
	a := Affine{C0: 10, C1: .25, C2: .001, P0: 6, P1: .05, P2: 2e-6}
	high := Affine{C0: 10, C1: .25, C2: .001, P0: 16, P1: .05, P2: 2e-6}
	negative := Affine{C0: 17, C1: .06, C2: .00003, P0: 9.8, P1: .1, P2: -1e-5}
	for _, c := range []struct {
		name string
		a    Affine
		s    step.Shape
		want time.Duration
	}{
		{"decodes", a, decodes(4, 1000), 15 * time.Millisecond},                                     // 10 + 1 + 4
		{"a prefill", a, extend(1000, 0), 58 * time.Millisecond},                                    // 6 + 50 + 2
		{"a chunk over 500 cached", a, extend(1000, 500), 60 * time.Millisecond},                    // 6 + 50 + 4
		{"a short extend reads every weight", a, extend(20, 0), 10 * time.Millisecond},              // 6 + 1 + 0.0008 < 10
		{"both", a, plus(decodes(4, 1000), extend(1000, 0)), 67 * time.Millisecond},                 // 10 + 1 + 4 + 50 + 2
		{"both, p0 above c0", high, plus(decodes(4, 1000), extend(1000, 0)), 73 * time.Millisecond}, // 16 + ...
		{"nothing", a, step.Shape{}, 10 * time.Millisecond},
		{"negative p2", negative, extend(1000, 0), 99800 * time.Microsecond},            // 9.8 + 100 - 10
		{"negative p2 outweighs p1", negative, extend(20000, 0), 17 * time.Millisecond}, // the base
		{"the same with a decode", negative, plus(decodes(1, 1000), extend(20000, 0)), 17090 * time.Microsecond},
	} {
		if got := c.a.StepTime(c.s); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if got := (Affine{C0: 1e-9}).StepTime(decodes(1, 1)); got != 1 {
		t.Errorf("the least step takes %v, want 1ns", got)
	}
	if got := (Affine{C0: 1e300}).StepTime(decodes(1, 1)); got != longest {
		t.Errorf("the greatest step takes %v, want %v", got, longest)
	}
}

func TestAffineString(t *testing.T) {
	for a, want := range map[Affine]string{
		{C0: 10.5, C1: .25, C2: 1e-5, P0: 6, P1: .05, P2: -2e-6}: "decode 10.5 + 0.25 b + 1e-05 context, " +
			"prefill 6 + 0.05 n + -2e-06 n(n+2k) ms",
		{C0: 10}: "decode 10, prefill 0 ms",
	} {
		if got := a.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// No step is cheaper for one row more.
func TestAffineGrowsWithEachRow(t *testing.T) {
	ms := rapid.Float64Range(0, 100)
	rapid.Check(t, func(t *rapid.T) {
		a := Affine{C0: ms.Draw(t, "c0"), C1: ms.Draw(t, "c1"), C2: ms.Draw(t, "c2") / 1e3,
			P0: ms.Draw(t, "p0"), P1: ms.Draw(t, "p1") / 1e2, P2: ms.Draw(t, "p2") / 1e6}
		s := shapes(t, "s")
		one := a.StepTime(s)
		for _, more := range []step.Shape{decodes(1, 100), extend(50, 1000)} {
			if two := a.StepTime(plus(s, more)); two < one {
				t.Fatalf("%v of %+v falls to %v with %+v", one, s, two, more)
			}
		}
	})
}

func TestWithHost(t *testing.T) {
	m := WithHost(Constant(10*time.Millisecond), 3940*time.Microsecond)
	if got := m.StepTime(decodes(1, 1)); got != 13940*time.Microsecond {
		t.Errorf("%v, want 13.94ms", got)
	}
	if m := WithHost(Constant(5), 0); m != Model(Constant(5)) {
		t.Errorf("no overhead wraps the model: %v", m)
	}
	if got := WithHost(Constant(longest), longest).StepTime(step.Shape{}); got != longest {
		t.Errorf("%v, want %v", got, longest)
	}
	if Extrapolated(m) != nil {
		t.Error("a constant warns")
	}
}
