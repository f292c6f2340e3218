package tokenizer

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/fstest"
)

// spelling is text in the alphabet of a byte-level vocabulary, by GPT-2's definition.
func spelling(text string) string {
	var out strings.Builder
	for i := range len(text) {
		out.WriteRune(characters[text[i]])
	}
	return out.String()
}

// characters is the alphabet: the inverse of byteOf.
var characters = func() (table [256]rune) {
	for c, b := range byteOf {
		if b >= 0 {
			table[b] = rune(c)
		}
	}
	return table
}()

// toy is tokenizer.json of a small tokenizer: 256 bytes, id by value, then one token a merge.
type toy struct {
	merges       [][2]string // of plain text
	regex        string      // "" for one word
	nfc          bool
	ignoreMerges bool
	extra        []string // tokens that no merge makes
	added        []addedToken
	pairs        bool // merges as lists, not strings
	prefix       string
}

// file is the file as a tree that a test may change.
func (toy toy) file() map[string]any {
	vocab := make(map[string]int)
	for b := range 256 {
		vocab[string(characters[b])] = b
	}
	merges := []any{}
	for _, m := range toy.merges {
		left, right := spelling(m[0]), spelling(m[1])
		if _, ok := vocab[left+right]; !ok {
			vocab[left+right] = len(vocab)
		}
		if toy.pairs {
			merges = append(merges, []string{left, right})
		} else {
			merges = append(merges, left+" "+right)
		}
	}
	for _, text := range toy.extra {
		vocab[spelling(text)] = len(vocab)
	}
	steps := []any{}
	if toy.regex != "" {
		steps = append(steps, map[string]any{"type": "Split", "pattern": map[string]any{"Regex": toy.regex},
			"behavior": "Isolated", "invert": false})
	}
	steps = append(steps, map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})
	file := map[string]any{
		"version":       "1.0",
		"pre_tokenizer": map[string]any{"type": "Sequence", "pretokenizers": steps},
		"decoder":       map[string]any{"type": "ByteLevel"},
		"added_tokens":  toy.added,
		"model": map[string]any{"type": "BPE", "dropout": nil, "unk_token": nil, "byte_fallback": false,
			"ignore_merges": toy.ignoreMerges, "vocab": vocab, "merges": merges},
	}
	if toy.nfc {
		file["normalizer"] = map[string]any{"type": "NFC"}
	}
	if toy.prefix != "" {
		id := int32(-1)
		for _, a := range toy.added {
			if a.Content == toy.prefix {
				id = a.ID
			}
		}
		file["post_processor"] = map[string]any{"type": "TemplateProcessing",
			"single": []any{map[string]any{"SpecialToken": map[string]any{"id": toy.prefix, "type_id": 0}},
				map[string]any{"Sequence": map[string]any{"id": "A", "type_id": 0}}},
			"special_tokens": map[string]any{toy.prefix: map[string]any{"id": toy.prefix, "ids": []int32{id}}}}
	}
	return file
}

// write is a folder of one file from a tree, or of its text.
func write(t testing.TB, tree any) fstest.MapFS {
	t.Helper()
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{"tokenizer.json": {Data: text}}
}

// open opens a toy.
func (toy toy) open(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := OpenFS(write(t, toy.file()), ".")
	if err != nil {
		t.Fatal(err)
	}
	return tok
}
