package tokenizer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestMergeForms: merges as strings and as lists are the same tokenizer.
func TestMergeForms(t *testing.T) {
	base := toy{regex: regexQwen, merges: [][2]string{{"h", "e"}, {" ", "he"}, {"\"", "\\"}}}
	strs := base.open(t)
	base.pairs = true
	lists := base.open(t)
	for _, text := range []string{"he he \"\\ hehe", "été", ""} {
		if a, b := strs.Encode(text, false), lists.Encode(text, false); !slices.Equal(a, b) {
			t.Errorf("%q: %v and %v", text, a, b)
		}
	}
	if got := strs.Encode("he he\"\\", false); !slices.Equal(got, []int32{256, 257, 258}) {
		t.Errorf("%v", got)
	}
}

// TestAround: what a model wants before a text is put there on request.
func TestAround(t *testing.T) {
	tok := toy{added: []addedToken{{ID: 300, Content: "<bos>", Special: true}}, prefix: "<bos>"}.open(t)
	if got := tok.Encode("a", true); !slices.Equal(got, []int32{300, 'a'}) || tok.BOS() != 300 {
		t.Errorf("%v, beginning %d", got, tok.BOS())
	}
	if got := tok.Encode("a", false); !slices.Equal(got, []int32{'a'}) {
		t.Errorf("%v", got)
	}
	if bare := (toy{}).open(t); bare.BOS() != -1 || len(bare.EOS()) != 0 || len(bare.Encode("", true)) != 0 {
		t.Errorf("a bare tokenizer begins with %d and ends with %v", bare.BOS(), bare.EOS())
	}
}

// TestEnds: where the ends of text come from, and that each counts once.
func TestEnds(t *testing.T) {
	base := toy{added: []addedToken{{ID: 300, Content: "<eos>", Special: true},
		{ID: 301, Content: "<|im_start|>", Special: true}, {ID: 302, Content: "<|im_end|>", Special: true},
		{ID: 303, Content: "<more>", Special: true}}}
	for _, c := range []struct {
		config, generation string
		want               []int32
	}{
		{``, ``, nil},
		{`{"eos_token": "<eos>"}`, ``, []int32{300}},
		{`{"eos_token": {"content": "<eos>", "lstrip": false}}`, `{"eos_token_id": [303, 300]}`, []int32{300, 303}},
		{`{"eos_token": "<eos>", "chat_template": "<|im_start|>"}`, `{"eos_token_id": 303}`, []int32{300, 302, 303}},
		{`{"eos_token": null, "chat_template": null}`, `{"eos_token_id": null}`, nil},
	} {
		fsys := write(t, base.file())
		if c.config != "" {
			fsys["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(c.config)}
		}
		if c.generation != "" {
			fsys["generation_config.json"] = &fstest.MapFile{Data: []byte(c.generation)}
		}
		tok, err := OpenFS(fsys, ".")
		if err != nil {
			t.Errorf("%s %s: %v", c.config, c.generation, err)
			continue
		}
		if got := tok.EOS(); !slices.Equal(got, c.want) {
			t.Errorf("%s %s: ends at %v, want %v", c.config, c.generation, got, c.want)
		}
	}
}

// TestPatterns: the forms in which files name the patterns.
func TestPatterns(t *testing.T) {
	split := func(regex, behavior string, invert bool) any {
		return map[string]any{"type": "Split", "pattern": map[string]any{"Regex": regex}, "behavior": behavior,
			"invert": invert}
	}
	byteLevel := func(regex bool) any {
		return map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": regex}
	}
	sequence := func(steps ...any) any { return map[string]any{"type": "Sequence", "pretokenizers": steps} }
	for _, c := range []struct {
		pre  any
		want pattern
	}{
		{byteLevel(true), patternGPT2},
		{map[string]any{"type": "ByteLevel"}, patternGPT2},
		{byteLevel(false), patternWhole},
		{sequence(split(regexQwen, "Isolated", false), byteLevel(false)), patternQwen},
		{sequence(split(regexLlama3, "Removed", true), byteLevel(false)), patternLlama3},
		{sequence(split(regexGPT2, "Isolated", false), byteLevel(false)), patternGPT2},
	} {
		tree := toy{}.file()
		tree["pre_tokenizer"] = c.pre
		tok, err := OpenFS(write(t, tree), ".")
		if err != nil {
			t.Errorf("%v: %v", c.pre, err)
		} else if tok.pattern != c.want {
			t.Errorf("%v: pattern %d, want %d", c.pre, tok.pattern, c.want)
		}
	}
}

// TestRefused: files that this package would misread.
func TestRefused(t *testing.T) {
	type object = map[string]any
	for _, c := range []struct {
		change func(tree, model object)
		want   string
	}{
		{func(_, m object) { m["type"] = "Unigram" }, `model.type is "Unigram", wanted BPE`},
		{func(_, m object) { m["byte_fallback"] = true }, "model.byte_fallback is true"},
		{func(_, m object) { m["dropout"] = .1 }, "model.dropout is 0.1"},
		{func(_, m object) { m["end_of_word_suffix"] = "</w>" }, "model.end_of_word_suffix"},
		{func(_, m object) { m["continuing_subword_prefix"] = "##" }, "model.continuing_subword_prefix"},
		{func(_, m object) { m["ignore_merges"] = "yes" }, "model.ignore_merges is a JSON string, wanted bool"},
		{func(_, m object) { delete(m, "vocab") }, "model.vocab: is missing"},
		{func(_, m object) { m["vocab"] = []int{1} }, "model.vocab: is missing or no object"},
		{func(_, m object) { delete(m["vocab"].(map[string]int), "A") }, "model.vocab: no token for byte 0x41"},
		{func(_, m object) { m["vocab"].(map[string]int)["AA"] = 65 }, "have the same id, 65"},
		{func(_, m object) { m["vocab"].(map[string]int)["AA"] = -1 }, `"AA": id is -1`},
		{func(_, m object) { m["vocab"].(map[string]int)["AA"] = 1 << 30 }, `"AA": id is 1073741824, wanted 0 to`},
		{func(_, m object) { m["vocab"].(map[string]int)[""] = 300 }, "token 300 is empty"},
		{func(_, m object) { m["vocab"] = object{"A": "x"} }, `"A": id is "x"`},
		{func(_, m object) { delete(m, "merges") }, "model.merges: is missing"},
		{func(_, m object) { m["merges"] = []string{"A B"} }, `model.merges[0]: "AB": is no token of model.vocab`},
		{func(_, m object) { m["merges"] = []string{"AB"} }, `"AB" is no pair`},
		{func(_, m object) { m["merges"] = [][]string{{"A"}} }, `"A" stands alone`},
		{func(_, m object) { m["merges"] = [][]string{{"A", "B", "C"}} }, `"A", "B" and more`},
		{func(_, m object) { m["merges"] = []int{3} }, "is 3], wanted a string"},
		{func(f, _ object) { f["added_tokens"] = []object{{"id": 1 << 30, "content": "x"}} },
			"added_tokens[0]: id is 1073741824"},
		{func(f, _ object) { f["added_tokens"] = []object{{"id": 300}} }, "added_tokens[0]: content is empty"},
		{func(f, _ object) { f["added_tokens"] = []object{{"id": 65, "content": "x"}} },
			`tokens "A" and "x" have the same id, 65`},
		{func(f, _ object) { f["normalizer"] = object{"type": "NFKC"} }, `normalizer: type is "NFKC"`},
		{func(f, _ object) { f["decoder"] = object{"type": "Metaspace"} }, `decoder: type is "Metaspace"`},
		{func(f, _ object) { f["pre_tokenizer"] = nil }, "pre_tokenizer: no ByteLevel"},
		{func(f, _ object) { f["pre_tokenizer"] = object{"type": "Whitespace"} }, `pre_tokenizer: step 0 is "Whitespace"`},
		{func(f, _ object) { f["pre_tokenizer"] = object{"type": "ByteLevel", "add_prefix_space": true} },
			"add_prefix_space is true"},
		{func(f, _ object) {
			f["pre_tokenizer"] = object{"type": "Split", "pattern": object{"Regex": "x+"}, "behavior": "Isolated"}
		}, `unknown expression "x+"`},
		{func(f, _ object) {
			f["pre_tokenizer"] = object{"type": "Split", "pattern": object{"Regex": regexQwen}, "behavior": "Removed"}
		}, `behavior is "Removed"`},
		{func(f, _ object) { f["post_processor"] = object{"type": "BertProcessing"} },
			`post_processor: type is "BertProcessing"`},
		{func(f, _ object) { f["post_processor"] = object{"type": "TemplateProcessing"} }, "holds the text 0 times"},
	} {
		tree := toy{}.file()
		c.change(tree, tree["model"].(object))
		_, err := OpenFS(write(t, tree), ".")
		if err == nil || !strings.HasPrefix(err.Error(), "tokenizer.json: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	for name, text := range map[string]string{
		"tokenizer.json":         `{"model":`,
		"tokenizer_config.json":  `{"eos_token": "<none>"}`,
		"generation_config.json": `{"eos_token_id": 99999}`,
	} {
		fsys := write(t, toy{}.file())
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
		if _, err := OpenFS(fsys, "."); err == nil || !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := Open("no such folder"); err == nil || !strings.Contains(err.Error(), "no such folder/tokenizer.json: ") {
		t.Errorf("no folder: %v", err)
	}
}

// FuzzOpen: no file makes Open panic, and one that it accepts encodes and decodes. The 256 tokens that every vocabulary
// has are put into the file, so that what is drawn is the rest.
func FuzzOpen(f *testing.F) {
	var bytes strings.Builder
	for b, c := range characters {
		quoted, err := json.Marshal(string(c))
		if err != nil {
			f.Fatal(err)
		}
		fmt.Fprintf(&bytes, "%s:%d,", quoted, b)
	}
	const added, pre, post = `[{"id":300,"content":"<b>","special":true}]`, `{"type":"ByteLevel"}`, `null`
	f.Add(`"ab":256`, `["a b"]`, added, pre, post)
	f.Add(`"ab":256, "Ġab":257`, `[["a", "b"], ["Ġ", "ab"]]`, `[]`, `{"type":"Sequence","pretokenizers":[
		{"type":"Split","pattern":{"Regex":"`+strings.ReplaceAll(regexQwen, `\`, `\\`)+`"},"behavior":"Isolated"},
		{"type":"ByteLevel","use_regex":false}]}`, `{"type":"ByteLevel"}`)
	f.Add(`"a\u0062":256`, `[]`, added, pre, `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<b>"}},
		{"Sequence":{"id":"A"}}],"special_tokens":{"<b>":{"ids":[300]}}}`)
	f.Add(`"a":{"b":[1,"}"]}`, `[["a"],"a b",7]`, `[{"id":-1}]`, `[]`, `7`)
	f.Fuzz(func(t *testing.T, vocab, merges, added, pre, post string) {
		text := []byte(`{"model":{"type":"BPE","vocab":{` + bytes.String() + vocab + `},"merges":` + merges +
			`},"added_tokens":` + added + `,"pre_tokenizer":` + pre + `,"post_processor":` + post + `}`)
		tok, err := OpenFS(fstest.MapFS{"tokenizer.json": {Data: text}}, ".")
		if err != nil {
			return
		}
		const sample = "Ab 12 <b>\n\xff"
		if n := tok.Count(sample); n != len(tok.Encode(sample, false)) {
			t.Fatalf("counted %d", n)
		}
		if tok.Size() > len(text) {
			t.Fatalf("%d ids from %d bytes", tok.Size(), len(text))
		}
		tok.Decode(tok.Encode(sample, true))
	})
}
