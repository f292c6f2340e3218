package demo

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/trbench/trbench/models/tokenizer"
	"github.com/trbench/trbench/models/weights"
)

// TestModels checks the embedded files against what README.md says of them.
func TestModels(t *testing.T) {
	tok, err := Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		fsys   fs.FS
		params int64
		layers int
		hidden int
	}{
		{"gsm-s", Small(), 250_944, 4, 64},
		{"gsm-l", Large(), 2_560_320, 6, 192},
	} {
		m, err := weights.OpenFS(c.fsys, ".")
		if err != nil {
			t.Fatal(c.name, ": ", err)
		}
		if m.Params() != c.params || m.Config.Card(c.name).Params() != c.params {
			t.Errorf("%s: %d parameters, %d by its card, want %d", c.name, m.Params(), m.Config.Card(c.name).Params(), c.params)
		}
		if m.Config.Layers != c.layers || m.Config.Hidden != c.hidden {
			t.Errorf("%s: %d layers of width %d, want %d of %d", c.name, m.Config.Layers, m.Config.Hidden, c.layers, c.hidden)
		}
		if m.Config.Vocab != tok.Size() {
			t.Errorf("%s: %d rows in the embedding, %d tokens", c.name, m.Config.Vocab, tok.Size())
		}
		if !slices.Equal(m.Config.EOS, tok.EOS()) {
			t.Errorf("%s: ends at %v, its tokenizer at %v", c.name, m.Config.EOS, tok.EOS())
		}
		if err := m.Close(); err != nil {
			t.Error(c.name, ": ", err)
		}
	}
	if id, ok := tok.ID("<|endoftext|>"); !ok || !slices.Equal(tok.EOS(), []int32{id}) || id != 1021 {
		t.Errorf("ends at %v, want <|endoftext|>, 1021", tok.EOS())
	}
	if tok.Template() != tokenizer.NoTemplate {
		t.Errorf("template is %s", tok.Template())
	}
}

func TestPrompts(t *testing.T) {
	tok, err := Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	prompts := Prompts(20_000, 1)
	if len(prompts) != 20_000 {
		t.Fatalf("%d prompts", len(prompts))
	}
	seen := make(map[string]bool)
	longest := 0
	for _, p := range prompts {
		if seen[p] {
			t.Fatalf("twice: %q", p)
		}
		seen[p] = true
		text, ok := strings.CutPrefix(p, "Question: ")
		text, ok2 := strings.CutSuffix(text, "?\nAnswer:")
		if !ok || !ok2 {
			t.Fatalf("not in the models' form: %q", p)
		}
		// A verb without its argument, or an argument without its verb, prints one of these.
		if strings.ContainsAny(text, "\n!(") || strings.Contains(text, "  ") || strings.Contains(text, "-") {
			t.Fatalf("ill-formed: %q", p)
		}
		if !unicode.IsUpper(rune(text[0])) || !strings.ContainsAny(text, "0123456789") {
			t.Fatalf("no word problem: %q", p)
		}
		longest = max(longest, tok.Count(p))
	}
	if limit := TrainedPositions - 256; longest > limit {
		t.Errorf("a prompt of %d tokens, want at most %d", longest, limit)
	}
}

// TestPromptsSeed: a seed is a list, and a shorter one is its beginning.
func TestPromptsSeed(t *testing.T) {
	long := Prompts(300, 7)
	if !slices.Equal(Prompts(100, 7), long[:100]) {
		t.Error("a shorter list is not the beginning of a longer one")
	}
	if slices.Equal(Prompts(100, 8), long[:100]) {
		t.Error("two seeds give one list")
	}
	if Prompts(0, 7) == nil || len(Prompts(0, 7)) != 0 {
		t.Error("no prompts wanted, some given")
	}
}

// TestTemplates: there are at least twenty, and all appear before any does again.
func TestTemplates(t *testing.T) {
	if len(templates) < 20 {
		t.Fatalf("%d templates", len(templates))
	}
	lasts := make(map[string]bool) // the last words of a question tell templates apart
	for _, p := range Prompts(len(templates), 3) {
		p = strings.TrimSuffix(p, after)
		for _, name := range append(slices.Clone(women), men...) {
			p = strings.ReplaceAll(p, name, "N")
		}
		lasts[strings.TrimFunc(p[len(p)-22:], unicode.IsLetter)] = true
	}
	if len(lasts) != len(templates) {
		t.Errorf("%d kinds of question in %d prompts: %q", len(lasts), len(templates), slices.Sorted(maps.Keys(lasts)))
	}
}

// TestPromptsStable: the prompts of a seed never change, since results name the seed only.
func TestPromptsStable(t *testing.T) {
	got := Prompts(3, 1)
	want := []string{
		"Question: A farm packs eggs into boxes of 6. Its hens lay 138 eggs in the morning and 18 in the afternoon. How " +
			"many full boxes can the farm pack?\nAnswer:",
		"Question: A train has 6 cars with 15 passengers in each. At the next station 5 people get off and 24 get on. " +
			"How many passengers are on the train now?\nAnswer:",
		"Question: A garden is 30 feet long and 7 feet wide. A fence around it costs $9 a foot. How much does the whole " +
			"fence cost?\nAnswer:",
	}
	if !slices.Equal(got, want) {
		t.Errorf("Prompts(3, 1):\n%q\nwant\n%q", got, want)
	}
}
