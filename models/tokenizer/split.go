package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// pattern is a rule that cuts text into words; no merge crosses a cut. The rules are regular expressions in
// tokenizer.json, with a lookahead that Go's regexp lacks; here they are written out, for those that the supported
// families use. The tests compare them with the expressions.
type pattern uint8

const (
	patternWhole  pattern = iota // no cut
	patternGPT2                  // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
	patternQwen                  // modern, below, with \p{N}
	patternLlama3                // modern, below, with \p{N}{1,3}
)

// The expressions as tokenizer.json spells them.
const (
	regexGPT2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	regexQwen = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}` +
		`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	regexLlama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` +
		`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// words calls word with each word of text, in order; together they are the text.
func (p pattern) words(text string, word func(string)) {
	for text != "" {
		n := len(text)
		switch p {
		case patternGPT2:
			n = wordGPT2(text)
		case patternQwen:
			n = wordModern(text, 1)
		case patternLlama3:
			n = wordModern(text, 3)
		}
		word(text[:n])
		text = text[n:]
	}
}

// class sorts characters as the expressions do.
type class uint8

const (
	other   class = iota // [^\s\p{L}\p{N}]; a byte that is no UTF-8, too
	letter               // \p{L}
	number               // \p{N}
	space                // \s but a line end
	lineEnd              // [\r\n]
)

// asciiClass answers for the characters that most texts are made of.
var asciiClass = func() (table [utf8.RuneSelf]class) {
	for c := range table {
		table[c] = unicodeClass(rune(c))
	}
	return table
}()

func unicodeClass(c rune) class {
	switch {
	case c == '\r' || c == '\n':
		return lineEnd
	case unicode.IsLetter(c):
		return letter
	case unicode.IsNumber(c):
		return number
	case unicode.IsSpace(c):
		return space
	}
	return other
}

// first is the class and the size, bytes, of the first character of a text that is not empty.
func first(text string) (class, int) {
	if c := text[0]; c < utf8.RuneSelf {
		return asciiClass[c], 1
	}
	c, size := utf8.DecodeRuneInString(text)
	if c == utf8.RuneError && size == 1 {
		return other, 1
	}
	return unicodeClass(c), size
}

// run is the end of the run of characters of class want that begins at from.
func run(text string, from int, want class) int {
	for from < len(text) {
		c, size := first(text[from:])
		if c != want {
			break
		}
		from += size
	}
	return from
}

// wordModern is the length of the first word of text by
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}
//	| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
func wordModern(text string, digits int) int {
	if n := contraction(text, true); n > 0 {
		return n
	}
	c, size := first(text)
	switch c {
	case letter:
		return run(text, size, letter)
	case number:
		end := size
		for count := 1; count < digits && end < len(text); count++ {
			c, size := first(text[end:])
			if c != number {
				break
			}
			end += size
		}
		return end
	}
	next := lineEnd // stands for the end of the text, too: nothing below continues there
	nextSize := 0
	if size < len(text) {
		next, nextSize = first(text[size:])
	}
	switch {
	case next == letter && c != lineEnd:
		return run(text, size+nextSize, letter)
	case c == other:
		return lineEnds(text, run(text, size, other))
	case text[0] == ' ' && next == other:
		return lineEnds(text, run(text, size+nextSize, other))
	}
	return blank(text, true)
}

// lineEnds is the end of [\r\n]* at from.
func lineEnds(text string, from int) int { return run(text, from, lineEnd) }

// wordGPT2 is the length of the first word of text by patternGPT2.
func wordGPT2(text string) int {
	if n := contraction(text, false); n > 0 {
		return n
	}
	c, size := first(text)
	if text[0] == ' ' && len(text) > 1 {
		if next, nextSize := first(text[1:]); next != space && next != lineEnd {
			c, size = next, 1+nextSize
		}
	}
	if c == space || c == lineEnd {
		return blank(text, false)
	}
	return run(text, size, c)
}

// blank is the length of the first word of a text that begins with whitespace. A run of it ends after its last line end
// (\s*[\r\n]+, where the expression has that), else before its last character, which belongs to the word behind
// (\s+(?!\S)), unless there is no such word or nothing would be left (\s+).
func blank(text string, cutLines bool) int {
	end, last, line := 0, 0, 0 // of the run, of all but its last character, of its last line end
	for end < len(text) {
		c, size := first(text[end:])
		if c != space && c != lineEnd {
			break
		}
		last = end
		end += size
		if c == lineEnd {
			line = end
		}
	}
	switch {
	case cutLines && line > 0:
		return line
	case end == len(text) || last == 0:
		return end
	}
	return last
}

// contraction is the length of 's, 't, 're, 've, 'm, 'll or 'd at the start of text; 0 where there is none. Folding
// case also takes the long s, as regular expressions do.
func contraction(text string, fold bool) int {
	if len(text) < 2 || text[0] != '\'' {
		return 0
	}
	const longS = "ſ"
	if fold && len(text) > len(longS) && text[1:1+len(longS)] == longS {
		return 1 + len(longS)
	}
	lower := func(i int) byte {
		if i >= len(text) {
			return 0
		}
		if c := text[i]; fold && 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return text[i]
	}
	switch c := lower(1); c {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if lower(2) == 'e' {
			return 3
		}
	case 'l':
		if lower(2) == 'l' {
			return 3
		}
	}
	return 0
}
