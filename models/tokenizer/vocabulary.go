package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// vocabulary is the tokens and the merges of a byte-level BPE, in flat tables: 11 MB for the 128,256 tokens and 280,147
// merges of Llama 3.
type vocabulary struct {
	text   string   // all tokens' bytes, by id
	starts []uint32 // token id is text[starts[id]:starts[id+1]]; empty for an id that no token has

	byteID  [256]int32 // the tokens of one byte
	longest int        // bytes of the longest token that words can be

	tokens []int32     // hash table: id by bytes; -1 is free
	merges []mergeSlot // hash table: merge by its two tokens
	shift  uint        // of a hash, to the size of merges
}

// mergeSlot is one merge: the tokens of the pair become token id.
type mergeSlot struct {
	pair uint64 // left << 32 | right; freePair in an empty slot
	merge
}

// merge is what a pair becomes, and when: lower ranks first.
type merge struct {
	rank uint32 // noRank where the pair does not merge
	id   int32
}

const (
	freePair = ^uint64(0) // ids are positive int32s, so that no pair looks like this
	noRank   = ^uint32(0)
)

// entry is one token on its way into a vocabulary.
type entry struct {
	id         int32
	start, end uint32 // of its bytes, in the builder's text
	word       bool   // may come out of merging; false for added tokens and spellings outside the alphabet
}

// builder collects the tokens of a vocabulary.
type builder struct {
	text    []byte
	entries []entry
}

// add adds a token as tokenizer.json spells it.
func (b *builder) add(id int32, spelling []byte) {
	start := len(b.text)
	text, ok := appendBytes(b.text, spelling)
	if !ok {
		text = append(b.text, spelling...)
	}
	b.text = text
	b.entries = append(b.entries, entry{id, uint32(start), uint32(len(text)), ok})
}

// addAdded adds an added token, which stands for its spelling.
func (b *builder) addAdded(id int32, spelling string) {
	start := len(b.text)
	b.text = append(b.text, spelling...)
	b.entries = append(b.entries, entry{id, uint32(start), uint32(len(b.text)), false})
}

// build returns the vocabulary, without merges. An added token may repeat a token of the vocabulary.
func (b *builder) build() (*vocabulary, error) {
	slices.SortStableFunc(b.entries, func(x, y entry) int { return int(x.id) - int(y.id) })
	v := new(vocabulary)
	text := make([]byte, 0, len(b.text))
	words := 0
	for i, e := range b.entries {
		if e.word {
			words++
		}
		if i > 0 && b.entries[i-1].id == e.id {
			prev := b.entries[i-1]
			if x, y := b.text[prev.start:prev.end], b.text[e.start:e.end]; !bytes.Equal(x, y) {
				return nil, fmt.Errorf("tokens %q and %q have the same id, %d", x, y, e.id)
			}
			continue
		}
		for len(v.starts) <= int(e.id) {
			v.starts = append(v.starts, uint32(len(text)))
		}
		text = append(text, b.text[e.start:e.end]...)
	}
	v.text = string(text)
	v.starts = append(slices.Clip(v.starts), uint32(len(text)))
	v.tokens = make([]int32, tableSize(words))
	for i := range v.tokens {
		v.tokens[i] = -1
	}
	for i := range v.byteID {
		v.byteID[i] = -1
	}
	for _, e := range b.entries {
		if err := v.index(e, b.text[e.start:e.end]); err != nil {
			return nil, err
		}
	}
	for c, id := range v.byteID {
		if id < 0 {
			return nil, fmt.Errorf("model.vocab: no token for byte %#02x", c)
		}
	}
	return v, nil
}

// index makes a word token found by its bytes.
func (v *vocabulary) index(e entry, text []byte) error {
	if !e.word {
		return nil
	}
	if len(text) == 0 {
		return fmt.Errorf("model.vocab: token %d is empty", e.id)
	}
	slot, id := find(v, text)
	if id >= 0 {
		return fmt.Errorf("model.vocab: token %q has two ids, %d and %d", text, id, e.id)
	}
	v.tokens[slot] = e.id
	v.longest = max(v.longest, len(text))
	if len(text) == 1 {
		v.byteID[text[0]] = e.id
	}
	return nil
}

// tableSize is a power of two that n entries fill to two thirds at most.
func tableSize(n int) int { return 1 << bits.Len(uint(n+n/2)) }

// size is the highest id and one.
func (v *vocabulary) size() int { return len(v.starts) - 1 }

// bytes is the text of a token, which need not be UTF-8; empty for an id that no token has.
func (v *vocabulary) bytes(id int32) string {
	if id < 0 || int(id) >= v.size() {
		return ""
	}
	return v.text[v.starts[id]:v.starts[id+1]]
}

// find returns the id of a token and its slot; -1 and a free slot where there is none.
func find[T string | []byte](v *vocabulary, text T) (slot uint64, id int32) {
	mask := uint64(len(v.tokens) - 1)
	for slot = hash(text) & mask; ; slot = (slot + 1) & mask {
		id = v.tokens[slot]
		if id < 0 || v.bytes(id) == string(text) { // compares in place
			return slot, id
		}
	}
}

// hash folds the bytes of a token, eight at a time.
func hash[T string | []byte](text T) uint64 {
	h, word := uint64(len(text)), uint64(0)
	for i := range len(text) {
		word = word<<8 | uint64(text[i])
		if i%8 == 7 {
			h, word = mix(h^word), 0
		}
	}
	return mix(h ^ word)
}

// multiplier is 2^64 over the golden ratio, odd: what Fibonacci hashing multiplies by.
const multiplier = 0x9e3779b97f4a7c15

// mix spreads every bit over the low ones, which pick the slot.
func mix(h uint64) uint64 {
	hi, lo := bits.Mul64(h, multiplier)
	return hi ^ lo
}

// errNoToken says that a merge names a token that the vocabulary lacks.
var errNoToken = errors.New("is no token of model.vocab")

// startMerges makes room for n merges.
func (v *vocabulary) startMerges(n int) {
	size := tableSize(n)
	v.merges = make([]mergeSlot, size)
	for i := range v.merges {
		v.merges[i] = mergeSlot{freePair, merge{rank: noRank}}
	}
	v.shift = uint(64 - bits.Len(uint(size-1)))
}

// addMerge adds the merge of two tokens: their bytes are both[:split] and both[split:]. The same pair again replaces
// the first, as in the tokenizers library.
func (v *vocabulary) addMerge(rank uint32, both []byte, split int) error {
	left, right := both[:split], both[split:]
	_, l := find(v, left)
	if l < 0 {
		return fmt.Errorf("%q: %w", left, errNoToken)
	}
	_, r := find(v, right)
	if r < 0 {
		return fmt.Errorf("%q: %w", right, errNoToken)
	}
	_, id := find(v, both)
	if id < 0 {
		return fmt.Errorf("%q: %w", both, errNoToken)
	}
	slot := v.slot(l, r)
	*slot = mergeSlot{pairOf(l, r), merge{rank, id}}
	return nil
}

func pairOf(left, right int32) uint64 { return uint64(left)<<32 | uint64(right) }

// slot is where the merge of a pair is, or would be.
func (v *vocabulary) slot(left, right int32) *mergeSlot {
	pair, mask := pairOf(left, right), uint64(len(v.merges)-1)
	for i := pair * multiplier >> v.shift; ; i = (i + 1) & mask {
		if s := &v.merges[i]; s.pair == pair || s.pair == freePair {
			return s
		}
	}
}

// merge is what a pair of tokens becomes; its rank is noRank where they do not merge.
func (v *vocabulary) merge(left, right int32) merge { return v.slot(left, right).merge }
