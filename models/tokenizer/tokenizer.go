package tokenizer

import (
	"io/fs"
	"os"
	"slices"
)

// Tokenizer is an open tokenizer.json.
type Tokenizer struct {
	vocab       *vocabulary
	ignoreMerge bool // a word that is a token is not merged, but taken as it is
	nfc         bool // text is normalised to NFC
	pattern     pattern

	added    addedTokens
	ordinary addedTokens // those that are not special: what a chat message may hold

	prefix, suffix []int32 // what Encode adds on request: the beginning of text of Llama 3
	bos            int32   // -1 where there is none
	eos            []int32
	special        map[int32]bool
	template       Template
	defaultSystem  string // the system message that ChatML gives where the conversation has none
}

// Open opens the tokenizer in dir: tokenizer.json and, where they are there, tokenizer_config.json (chat template, end
// of text), chat_template.jinja and generation_config.json (further ends of text).
func Open(dir string) (*Tokenizer, error) { return open(os.DirFS(dir), ".", dir) }

// OpenFS opens the tokenizer in folder dir of fsys.
func OpenFS(fsys fs.FS, dir string) (*Tokenizer, error) { return open(fsys, dir, dir) }

// Encode returns the tokens of text. Added tokens that it spells, special ones included, become their ids; addSpecial
// puts around it what the model expects around a whole text (Llama 3: <|begin_of_text|>). Bytes that are not UTF-8 are
// encoded as they are.
func (t *Tokenizer) Encode(text string, addSpecial bool) []int32 {
	return t.Append(make([]int32, 0, len(text)/4+len(t.prefix)+len(t.suffix)), text, addSpecial)
}

// Append is Encode that appends to ids.
func (t *Tokenizer) Append(ids []int32, text string, addSpecial bool) []int32 {
	if addSpecial {
		ids = append(ids, t.prefix...)
	}
	t.each(&t.added, text,
		func(id int32) { ids = append(ids, id) },
		func(word string) { ids = t.appendWord(ids, word) })
	if addSpecial {
		ids = append(ids, t.suffix...)
	}
	return ids
}

// Count is the number of tokens of text, len(Encode(text, false)), without room for them all.
func (t *Tokenizer) Count(text string) int {
	var room [shortWord]int32
	count := 0
	t.each(&t.added, text,
		func(int32) { count++ },
		func(word string) { count += len(t.appendWord(room[:0], word)) })
	return count
}

// each cuts text into added tokens and the words between them, in order.
func (t *Tokenizer) each(added *addedTokens, text string, token func(int32), word func(string)) {
	added.raw.cut(text, token, func(part string) {
		added.normalized.cut(t.normalize(part), token, func(part string) { t.pattern.words(part, word) })
	})
}

// Decode returns the text of ids, special tokens included. Ids that no token has are left out (a model's embedding may
// have more rows than its tokenizer has tokens); bytes that are no UTF-8 become U+FFFD.
func (t *Tokenizer) Decode(ids []int32) string {
	var raw []byte
	for _, id := range ids {
		raw = append(raw, t.vocab.bytes(id)...)
	}
	text, rest := appendValid(make([]byte, 0, len(raw)), raw)
	return string(appendLost(text, rest))
}

// Token is the bytes of one token, which need not be whole characters; "" for an id that no token has.
func (t *Tokenizer) Token(id int32) string { return t.vocab.bytes(id) }

// ID is the id of the added token that is spelt so.
func (t *Tokenizer) ID(added string) (id int32, ok bool) {
	for _, m := range []*matcher{&t.added.raw, &t.added.normalized} {
		if id, ok := m.exact(added); ok {
			return id, true
		}
	}
	return 0, false
}

// Special says that a token steers the model and is no part of a text to show.
func (t *Tokenizer) Special(id int32) bool { return t.special[id] }

// Size is the highest id and one; a model has at least as many rows in its embedding.
func (t *Tokenizer) Size() int { return t.vocab.size() }

// BOS is the token that begins a text; -1 where the model has none.
func (t *Tokenizer) BOS() int32 { return t.bos }

// EOS lists the tokens that end an output: those of tokenizer_config.json, of generation_config.json, and the end of a
// turn in the chat template.
func (t *Tokenizer) EOS() []int32 { return slices.Clone(t.eos) }
