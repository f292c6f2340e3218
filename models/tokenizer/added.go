package tokenizer

import (
	"bytes"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// addedToken is an entry of added_tokens: a spelling that is one token wherever it stands.
type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"` // only where no word goes on before or behind it
	LStrip     bool   `json:"lstrip"`      // takes the whitespace before it
	RStrip     bool   `json:"rstrip"`      // and behind it
	Normalized bool   `json:"normalized"`  // is looked for after normalisation
	Special    bool   `json:"special"`
}

// addedTokens is a set of added tokens by where they are looked for.
type addedTokens struct {
	raw        matcher // in the text as given
	normalized matcher // in what lies between those, normalised
}

// matcher finds added tokens: the leftmost, and there the longest.
type matcher struct {
	tokens []addedToken // sorted by Content
	firsts []byte       // the bytes they begin with, sorted
}

func newMatcher(tokens []addedToken) matcher {
	m := matcher{tokens: slices.Clone(tokens)}
	slices.SortFunc(m.tokens, func(a, b addedToken) int { return strings.Compare(a.Content, b.Content) })
	for _, t := range m.tokens {
		if c := t.Content[0]; !bytes.Contains(m.firsts, []byte{c}) {
			m.firsts = append(m.firsts, c)
		}
	}
	return m
}

// cut calls token and part, in order, with the tokens found in text and what lies between them.
func (m *matcher) cut(text string, token func(id int32), part func(string)) {
	done := 0 // up to where text is dealt with
	for at := m.candidate(text, 0); at >= 0; {
		i := m.longest(text[at:])
		if i < 0 {
			at = m.candidate(text, at+1)
			continue
		}
		t := &m.tokens[i]
		start, end := at, at+len(t.Content)
		if !t.SingleWord || !wordBefore(text[:start]) && !wordBehind(text[end:]) {
			if t.LStrip {
				start = done + len(strings.TrimRightFunc(text[done:start], unicode.IsSpace))
			}
			if t.RStrip {
				end = len(text) - len(strings.TrimLeftFunc(text[end:], unicode.IsSpace))
			}
			if start > done {
				part(text[done:start])
			}
			token(t.ID)
			done = end
		}
		at = m.candidate(text, end)
	}
	if done < len(text) {
		part(text[done:])
	}
}

// candidate is the first place at or after from where a token may begin; -1 where there is none.
func (m *matcher) candidate(text string, from int) int {
	at := -1
	switch len(m.firsts) {
	case 0:
	case 1:
		at = strings.IndexByte(text[from:], m.firsts[0])
	default:
		for i := range len(text) - from {
			if bytes.IndexByte(m.firsts, text[from+i]) >= 0 {
				return from + i
			}
		}
	}
	if at < 0 {
		return -1
	}
	return from + at
}

// longest is the index of the longest token that text begins with; -1 where there is none.
func (m *matcher) longest(text string) int {
	best := -1
	low, high := 0, len(m.tokens) // those that share text[:n]
	for n := 0; low < high; n++ {
		if len(m.tokens[low].Content) == n {
			best = low
			low++
		}
		if n == len(text) {
			break
		}
		c := text[n]
		from := m.tokens[low:high]
		low, high = low+sort.Search(len(from), func(i int) bool { return from[i].Content[n] >= c }),
			low+sort.Search(len(from), func(i int) bool { return from[i].Content[n] > c })
	}
	return best
}

// exact is the id of the token that is spelt so.
func (m *matcher) exact(spelling string) (id int32, ok bool) {
	i := m.longest(spelling)
	if i < 0 || m.tokens[i].Content != spelling {
		return 0, false
	}
	return m.tokens[i].ID, true
}

// wordBefore says that text ends in a character of a word, wordBehind that it begins with one.
func wordBefore(text string) bool {
	c, size := utf8.DecodeLastRuneInString(text)
	return size > 0 && wordRune(c)
}

func wordBehind(text string) bool {
	c, size := utf8.DecodeRuneInString(text)
	return size > 0 && wordRune(c)
}

// wordRune is \w of a Unicode regular expression.
func wordRune(c rune) bool {
	return unicode.In(c, unicode.L, unicode.M, unicode.Nd, unicode.Pc)
}
