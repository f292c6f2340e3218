package tokenizer

import "unicode/utf8"

// A byte-level vocabulary is written as text: printable bytes stand for themselves, and the 68 others for the
// characters from U+0100 on, in order (GPT-2, encoder.py). Space is Ġ, newline Ċ.

// alphabet is one more than the highest character that stands for a byte.
const alphabet = 256 + 68

// byteOf is the byte that each character stands for; -1 where it stands for none.
var byteOf = func() (table [alphabet]int16) {
	for i := range table {
		table[i] = -1
	}
	shifted := rune(256)
	for b := range 256 {
		c := rune(b)
		if !printable(b) {
			c = shifted
			shifted++
		}
		table[c] = int16(b)
	}
	return table
}()

// printable says that a byte stands for itself.
func printable(b int) bool { return '!' <= b && b <= '~' || 0xa1 <= b && b != 0xad }

// appendBytes appends the bytes that token spells; ok is false, and nothing appended, where a character of it stands
// for none.
func appendBytes(dst, token []byte) (_ []byte, ok bool) {
	before := len(dst)
	for len(token) > 0 {
		c, size := utf8.DecodeRune(token)
		if c >= alphabet || byteOf[c] < 0 {
			return dst[:before], false
		}
		dst = append(dst, byte(byteOf[c]))
		token = token[size:]
	}
	return dst, true
}
