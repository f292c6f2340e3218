package tokenizer

import "unicode/utf8"

// Decoder turns tokens into text as they arrive. A character that spans tokens is held back until it is whole, so that
// what Add returns is always valid UTF-8. The zero value is not usable: see Tokenizer.Decoder.
type Decoder struct {
	tokenizer   *Tokenizer
	skipSpecial bool
	held        [utf8.UTFMax]byte // an unfinished character
	heldLen     int
	scratch     []byte
}

// Decoder starts a text. Special tokens are left out of it if skipSpecial is set. All that Add and Flush return,
// together, is Decode of the ids.
func (t *Tokenizer) Decoder(skipSpecial bool) *Decoder {
	return &Decoder{tokenizer: t, skipSpecial: skipSpecial}
}

// Add takes the next token and returns the text that has become certain, which may be empty.
func (d *Decoder) Add(id int32) string {
	if d.skipSpecial && d.tokenizer.Special(id) {
		return ""
	}
	token := d.tokenizer.vocab.bytes(id)
	if d.heldLen == 0 && utf8.ValidString(token) {
		return token
	}
	raw := append(append([]byte(nil), d.held[:d.heldLen]...), token...)
	text, rest := appendValid(d.scratch[:0], raw)
	d.scratch = text
	d.heldLen = copy(d.held[:], rest)
	return string(text)
}

// Flush ends the text: what is held back cannot become a character any more, and is returned as U+FFFD. Then the
// decoder is as new.
func (d *Decoder) Flush() string {
	text := appendLost(nil, d.held[:d.heldLen])
	d.heldLen = 0
	return string(text)
}

// appendValid appends the characters of raw to dst, U+FFFD for each sequence that is none (one for each longest
// beginning of a character, as Unicode recommends), up to an unfinished character at the end, which it returns.
func appendValid(dst, raw []byte) (text, rest []byte) {
	for utf8.FullRune(raw) {
		c, size := utf8.DecodeRune(raw)
		if c == utf8.RuneError && size == 1 {
			size = broken(raw)
			dst = utf8.AppendRune(dst, utf8.RuneError)
		} else {
			dst = append(dst, raw[:size]...)
		}
		raw = raw[size:]
	}
	return dst, raw
}

// broken is the length of the longest beginning of a character that raw, which begins with no whole one, begins with.
func broken(raw []byte) int {
	n := 1
	for n < len(raw) && !utf8.FullRune(raw[:n+1]) {
		n++
	}
	return n
}

// appendLost appends what becomes of an unfinished character at the end of a text.
func appendLost(dst, rest []byte) []byte {
	if len(rest) == 0 {
		return dst
	}
	return utf8.AppendRune(dst, utf8.RuneError)
}
