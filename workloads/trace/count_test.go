package trace

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestEstimator(t *testing.T) {
	for _, c := range []struct {
		text          string
		llama31, qwen int
	}{
		{"", 0, 0},
		{" ", 1, 1},
		{"a", 1, 1},
		{"The cat sat.", 4, 4},             // three words and a full stop
		{"12345", 2, 6},                    // two groups of digits; five digits at 1.123
		{"a\n\nb", 2, 2},                   // 1.016 + .406 + 1.016
		{"    return", 2, 2},               // indentation and a word
		{"Wir hören täglich Möwen.", 5, 5}, // letters outside ASCII are part of their word
		{"天气很好", 3, 3},                     // four ideographs at .7
		{"날씨", 2, 2},
		{"погода", 2, 2},
		{"“quoted”", 3, 3},
	} {
		if got := NewEstimator(Llama31).Count(c.text); got != c.llama31 {
			t.Errorf("llama31 %q: %d, want %d", c.text, got, c.llama31)
		}
		if got := NewEstimator(Qwen25).Count(c.text); got != c.qwen {
			t.Errorf("qwen25 %q: %d, want %d", c.text, got, c.qwen)
		}
	}
}

// Lines cost the same together as apart, to the rounding; nothing is negative or beyond two tokens a byte.
func TestEstimatorAdds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := NewEstimator(rapid.SampledFrom(Tokenizers()).Draw(t, "tokenizer"))
		line := rapid.OneOf(rapid.StringMatching(`[a-z ,.0-9]{0,40}x`), rapid.String().Filter(func(s string) bool {
			return !strings.ContainsAny(s, "\r\n")
		}))
		a, b := line.Draw(t, "a"), line.Draw(t, "b")
		whole, parts := e.Count(a+"\n"+b), e.Count(a)+e.Count("\n")+e.Count(b)
		if d := whole - parts; d < -2 || d > 2 {
			t.Fatalf("%q and %q: %d together, %d apart", a, b, whole, parts)
		}
		if n := e.Count(a); n < 0 || n > 2*len(a) {
			t.Fatalf("%q: %d tokens", a, n)
		}
	})
}

func BenchmarkEstimator(b *testing.B) {
	text := strings.Repeat("If 3 trains leave at 12:30, how long, in minutes, until the fourth one arrives?\n", 100)
	e := NewEstimator(Llama31)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		e.Count(text)
	}
}
