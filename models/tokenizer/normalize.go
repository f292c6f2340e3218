package tokenizer

import (
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// normalize is text in the form that the vocabulary was trained on.
func (t *Tokenizer) normalize(text string) string {
	if !t.nfc || ascii(text) {
		return text
	}
	return norm.NFC.String(text) // text itself where it is normal
}

// ascii says that every byte of text is below utf8.RuneSelf.
func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
