package tokenizer

import (
	"os"
	"strings"
	"testing"

	"github.com/trbench/trbench/internal/testutil"
)

// benchTexts are English with sums (GSM8K's questions), conversations in many languages and code, and one word of
// 100,000 letters, which would take a scan for the lowest rank as many passes.
func benchTexts(b *testing.B) map[string]string {
	read := func(name string) string {
		text, err := os.ReadFile(testutil.Reference(b, "datasets", name))
		if err != nil {
			b.Fatal(err)
		}
		return string(text)
	}
	return map[string]string{
		"text=gsm8k":    read("gsm8k_test.jsonl"),
		"text=sharegpt": read("sharegpt_v3_1000.json"),
		"text=oneword":  strings.Repeat("antidisestablishment", 5_000),
	}
}

func BenchmarkCount(b *testing.B) {
	texts := benchTexts(b)
	for _, family := range []string{qwen25, llama31} {
		tok := realTokenizer(b, family)
		for _, name := range []string{"text=gsm8k", "text=sharegpt", "text=oneword"} {
			b.Run(family+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(texts[name])))
				for b.Loop() {
					tok.Count(texts[name])
				}
			})
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, family := range []string{qwen25, llama31} {
		b.Run(family, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				realTokenizer(b, family)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	tok := realTokenizer(b, llama31)
	text := benchTexts(b)["text=sharegpt"]
	ids := tok.Encode(text, false)
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			tok.Decode(ids)
		}
	})
	b.Run("stream", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			d := tok.Decoder(true)
			for _, id := range ids {
				d.Add(id)
			}
		}
	})
}
