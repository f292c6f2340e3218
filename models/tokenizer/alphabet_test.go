package tokenizer

import "testing"

// TestAlphabet: each byte has one character, and those that a reader of tokenizer.json knows are the known ones.
func TestAlphabet(t *testing.T) {
	seen := make(map[int16]rune)
	for c, b := range byteOf {
		if b < 0 {
			continue
		}
		if other, ok := seen[b]; ok {
			t.Errorf("byte %#02x is both %q and %q", b, other, rune(c))
		}
		seen[b] = rune(c)
	}
	if len(seen) != 256 {
		t.Errorf("%d bytes have a character", len(seen))
	}
	for c, b := range map[rune]int16{'a': 'a', 'Ġ': ' ', 'Ċ': '\n', 'ĉ': '\t', 'č': '\r', 'Ā': 0, 'ġ': 0x7f, 'Ń': 0xad,
		'ÿ': 0xff} {
		if byteOf[c] != b {
			t.Errorf("%q stands for %#02x, want %#02x", c, byteOf[c], b)
		}
	}
	if got, ok := appendBytes([]byte("x"), []byte("ĠaĊ")); !ok || string(got) != "x a\n" {
		t.Errorf("%q, %v", got, ok)
	}
	if got, ok := appendBytes([]byte("x"), []byte("a b")); ok || string(got) != "x" {
		t.Errorf("a space stands for itself: %q", got)
	}
}
