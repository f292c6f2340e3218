package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// cuts spells what a matcher makes of a text: [id] for a token, "part" for what lies between.
func cuts(m *matcher, text string) string {
	var out strings.Builder
	m.cut(text, func(id int32) { fmt.Fprintf(&out, "[%d]", id) }, func(part string) { fmt.Fprintf(&out, "%q", part) })
	return out.String()
}

func TestAddedTokens(t *testing.T) {
	plain := []addedToken{{ID: 1, Content: "<a>"}, {ID: 2, Content: "<a><b>"}, {ID: 3, Content: "b>"},
		{ID: 4, Content: "<"}}
	for _, c := range []struct {
		tokens []addedToken
		text   string
		want   string
	}{
		{nil, "x<a>", `"x<a>"`},
		{plain, "", ``},
		{plain, "x<a>y", `"x"[1]"y"`},
		{plain, "<a><b>", `[2]`},      // the longest
		{plain, "<a><b", `[1][4]"b"`}, // which the text breaks off
		{plain, "<a<a>b>b>", `[4]"a"[1][3][3]`},
		{plain, "a>bb", `"a>bb"`},
		{[]addedToken{{ID: 1, Content: "M", LStrip: true}}, "x \t M y", `"x"[1]" y"`},
		{[]addedToken{{ID: 1, Content: "M", LStrip: true}}, "  M", `[1]`},
		{[]addedToken{{ID: 1, Content: "M", RStrip: true}}, "x M \n\u3000y", `"x "[1]"y"`},
		{[]addedToken{{ID: 1, Content: "M", LStrip: true, RStrip: true}}, "M  M", `[1][1]`}, // the space belongs to the first
		{[]addedToken{{ID: 1, Content: "is", SingleWord: true}}, "this is_ is, isé is", `"this is_ "[1]", isé "[1]`},
	} {
		m := newMatcher(c.tokens)
		if got := cuts(&m, c.text); got != c.want {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}

// TestLongestToken compares the search with a look at every token.
func TestLongestToken(t *testing.T) {
	word := rapid.StringOfN(rapid.SampledFrom([]rune("ab<")), 1, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		var tokens []addedToken
		for i, content := range rapid.SliceOfNDistinct(word, 0, 12, rapid.ID).Draw(t, "tokens") {
			tokens = append(tokens, addedToken{ID: int32(i), Content: content})
		}
		m := newMatcher(tokens)
		text := rapid.StringOfN(rapid.SampledFrom([]rune("ab<c")), 0, 8, -1).Draw(t, "text")
		want := ""
		for _, a := range tokens {
			if strings.HasPrefix(text, a.Content) && len(a.Content) > len(want) {
				want = a.Content
			}
		}
		got := ""
		if i := m.longest(text); i >= 0 {
			got = m.tokens[i].Content
		}
		if got != want {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	})
}

// TestNormalized: an added token may be looked for in the normalised text, or in the text as it is.
func TestNormalized(t *testing.T) {
	const composed, decomposed = "\u00e9", "e\u0301"
	tok := toy{nfc: true, added: []addedToken{
		{ID: 300, Content: "<" + decomposed + ">", Normalized: true},
		{ID: 301, Content: "[" + decomposed + "]"},
	}}.open(t)
	for text, want := range map[string][]int32{
		"<" + composed + ">":   {300},
		"<" + decomposed + ">": {300},
		"[" + decomposed + "]": {301},
		"[" + composed + "]":   {'[', 0xc3, 0xa9, ']'},
		"[" + composed:         {'[', 0xc3, 0xa9},
		decomposed:             {0xc3, 0xa9},
	} {
		if got := tok.Encode(text, false); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
