package suggest

import (
	"testing"

	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	known := []string{"llama3-8b", "llama3-70b", "qwen2.5-7b", "a100", "h100", "h200", "markov"}
	for _, c := range []struct {
		name, want string
		ok         bool
	}{
		{"lama3-8b", "llama3-8b", true},
		{"llama3-7b", "llama3-8b", true}, // one edit from both 8b and 70b: the first wins
		{"LLAMA3-8B", "llama3-8b", true},
		{"qwen25-7b", "qwen2.5-7b", true},
		{"a10", "a100", true},
		{"h020", "h200", true}, // a swap is one edit, a replacement plus another are two
		{"makrov", "markov", true},
		{"h300", "h100", true},
		{"gpt-4-turbo", "", false},
		{"", "", false},
		{"b", "", false},
	} {
		if got, ok := Nearest(c.name, known); got != c.want || ok != c.ok {
			t.Errorf("Nearest(%q) = %q, %v, want %q, %v", c.name, got, ok, c.want, c.ok)
		}
	}
	if got, ok := Nearest("a100", nil); ok {
		t.Errorf("Nearest among nothing = %q", got)
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"ca", "abc", 3}, {"größe", "grösse", 2},
	} {
		if got := distance([]rune(c.a), []rune(c.b)); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestDistanceIsSymmetricAndBounded(t *testing.T) {
	word := rapid.SliceOfN(rapid.SampledFrom([]rune("abc-3")), 0, 8)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		d := distance(a, b)
		if d != distance(b, a) {
			t.Fatalf("distance is not symmetric")
		}
		if low, high := max(len(a), len(b))-min(len(a), len(b)), max(len(a), len(b)); d < low || d > high {
			t.Fatalf("distance %d outside [%d, %d]", d, low, high)
		}
		if (d == 0) != (string(a) == string(b)) {
			t.Fatalf("distance %d between %q and %q", d, string(a), string(b))
		}
	})
}
