package tokenizer

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// TestBroken: what becomes of bytes that are no text. The expectations are those of the Unicode Standard, tables 3-8 to
// 3-11 ("U+FFFD substitution of maximal subparts").
func TestBroken(t *testing.T) {
	const bad = "\ufffd"
	tok := toy{}.open(t)
	for raw, want := range map[string]string{
		"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41": strings.Repeat(bad, 8) + "A",
		"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41": strings.Repeat(bad, 8) + "A",
		"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42": strings.Repeat(bad, 5) + "A" + bad + bad + "B",
		"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41": strings.Repeat(bad, 4) + "A",
		"a\xf0\x9f\x9a":                        "a" + bad,
		"\xf0\x9f\x9a\x80":                     "🚀",
	} {
		var ids []int32
		d := tok.Decoder(false)
		got := ""
		for i := range len(raw) {
			ids = append(ids, int32(raw[i]))
			got += d.Add(int32(raw[i]))
		}
		if got += d.Flush(); got != want {
			t.Errorf("% x, streamed: %q, want %q", raw, got, want)
		}
		if got := tok.Decode(ids); got != want {
			t.Errorf("% x: %q, want %q", raw, got, want)
		}
	}
}

// TestDecoder: whatever the tokens, what is streamed is valid text at every step, and in the end Decode's.
func TestDecoder(t *testing.T) {
	tok := toy{merges: [][2]string{{"\x9f", "\x9a"}, {"\xf0", "\x9f\x9a"}, {"a", "\xf0"}}}.open(t)
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOf(rapid.OneOf(rapid.Int32Range(-2, 262),
			rapid.SampledFrom([]int32{0xf0, 0x9f, 0x9a, 0x80, 'a', 256, 257, 258}))).Draw(t, "ids")
		d := tok.Decoder(false)
		var text strings.Builder
		for _, id := range ids {
			part := d.Add(id)
			if !utf8.ValidString(part) {
				t.Fatalf("%q is no text", part)
			}
			text.WriteString(part)
		}
		text.WriteString(d.Flush())
		if got, want := text.String(), tok.Decode(ids); got != want {
			t.Fatalf("%v: streamed %q, want %q", ids, got, want)
		}
		if d.Flush() != "" {
			t.Fatal("flushed twice")
		}
	})
}

// TestRoundTrip: decoding gives back what was encoded, in normal form.
func TestRoundTrip(t *testing.T) {
	for _, nfc := range []bool{false, true} {
		for _, regex := range []string{"", regexGPT2, regexQwen, regexLlama3} {
			tok := toy{regex: regex, nfc: nfc, merges: [][2]string{{"e", "r"}, {" ", "a"}, {"\xc3", "\xa9"}},
				added: []addedToken{{ID: 400, Content: "<|im_end|>", Special: true}}}.open(t)
			rapid.Check(t, func(t *rapid.T) {
				text := strings.ToValidUTF8(fragmented().Draw(t, "text"), "?")
				ids := tok.Encode(text, false)
				want := text
				if nfc {
					var parts []string
					for part := range strings.SplitSeq(text, "<|im_end|>") {
						parts = append(parts, norm.NFC.String(part))
					}
					want = strings.Join(parts, "<|im_end|>")
				}
				if got := tok.Decode(ids); got != want {
					t.Fatalf("%q: %v decodes to %q, want %q", text, ids, got, want)
				}
				if got := tok.Count(text); got != len(ids) {
					t.Fatalf("%q: counted %d, want %d", text, got, len(ids))
				}
				if got := tok.Append([]int32{7}, text, false); !slices.Equal(got, append([]int32{7}, ids...)) {
					t.Fatalf("%q: appended %v, want %v", text, got, ids)
				}
			})
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	tok := toy{regex: regexLlama3, merges: [][2]string{{"e", "r"}, {"\xc3", "\xa9"}},
		added: []addedToken{{ID: 400, Content: "<|im_end|>", Special: true}}}.open(f)
	f.Add("a <|im_end|> er é \xff")
	f.Fuzz(func(t *testing.T, text string) {
		var raw []byte
		for _, id := range tok.Encode(text, false) {
			raw = append(raw, tok.Token(id)...)
		}
		if string(raw) != text {
			t.Fatalf("%q became %q", text, raw)
		}
	})
}

// TestSkipSpecial: special tokens steer, other added ones are text; an id that no token has is neither.
func TestSkipSpecial(t *testing.T) {
	tok := toy{added: []addedToken{{ID: 400, Content: "<s>", Special: true}, {ID: 401, Content: "<t>"}}}.open(t)
	ids := []int32{400, 'a', 401, 300, 500, -1, 400}
	if got := tok.Decode(ids); got != "<s>a<t><s>" {
		t.Errorf("%q", got)
	}
	text := ""
	for d := tok.Decoder(true); len(ids) > 0; ids = ids[1:] {
		text += d.Add(ids[0])
	}
	if text != "a<t>" {
		t.Errorf("without special ones: %q", text)
	}
	if !tok.Special(400) || tok.Special(401) || tok.Special('a') || tok.Size() != 402 {
		t.Error("which are special, and how many")
	}
}
