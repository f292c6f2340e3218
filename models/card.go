package models

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trbench/trbench/internal/suggest"
)

// bytesPerValue is the size of a weight and of a KV entry: every model here is served in bf16.
const bytesPerValue = 2

// Card is the architecture of a dense decoder-only transformer of the Llama or Qwen family, as its published
// config.json gives it.
type Card struct {
	Name    string   // canonical, lower case: "llama3-8b"
	Aliases []string // other spellings; Lookup ignores case

	Layers       int
	Hidden       int // width of the residual stream
	Heads        int // query heads
	KVHeads      int // key and value heads; fewer than Heads under grouped-query attention
	HeadDim      int
	Intermediate int // width of the gated feed-forward layer
	Vocab        int // rows of the embedding, padding included

	TiedEmbeddings bool // the output layer is the embedding, transposed
	QKVBias        bool // query, key and value projections have a bias (Qwen2.5)
	QKNorm         bool // queries and keys have an RMS norm of HeadDim weights each (Qwen3)
}

// Params is the number of weights: embedding, output layer unless tied, and per layer the attention and gated
// feed-forward projections and the norms.
func (c Card) Params() int64 {
	hidden, queries, kv := int64(c.Hidden), int64(c.Heads)*int64(c.HeadDim), int64(c.KVHeads)*int64(c.HeadDim)
	layer := hidden*(queries+2*kv) + queries*hidden + 3*hidden*int64(c.Intermediate) + 2*hidden
	if c.QKVBias {
		layer += queries + 2*kv
	}
	if c.QKNorm {
		layer += 2 * int64(c.HeadDim)
	}
	embeddings := int64(c.Vocab) * hidden
	if !c.TiedEmbeddings {
		embeddings *= 2
	}
	return int64(c.Layers)*layer + embeddings + hidden
}

// WeightBytes is the size of the weights in bf16.
func (c Card) WeightBytes() int64 { return bytesPerValue * c.Params() }

// KVBytesPerToken is the size in bf16 of the keys and values of one token, over all layers.
func (c Card) KVBytesPerToken() int64 { return int64(c.KVHeads) * c.kvBytesPerHead() }

// kvBytesPerHead is KVBytesPerToken's share of one KV head.
func (c Card) kvBytesPerHead() int64 { return 2 * bytesPerValue * int64(c.Layers) * int64(c.HeadDim) }

// Cards returns the known models, by family and then by size.
func Cards() []Card {
	return []Card{
		llama("llama2-7b", 32, 4096, 32, 32, 11008, 32000, "llama-2-7b", "llama-2-7b-hf"),
		llama("llama2-70b", 80, 8192, 64, 8, 28672, 32000, "llama-2-70b", "llama-2-70b-hf"),
		llama("llama3-8b", 32, 4096, 32, 8, 14336, 128256, "llama-3-8b", "llama3.1-8b", "llama-3.1-8b",
			"meta-llama-3-8b", "meta-llama-3.1-8b"),
		llama("llama3-70b", 80, 8192, 64, 8, 28672, 128256, "llama-3-70b", "llama3.1-70b", "llama-3.1-70b",
			"meta-llama-3-70b", "meta-llama-3.1-70b"),
		qwen25("qwen2.5-1.5b", 28, 1536, 12, 2, 8960, 151936, true, "qwen-2.5-1.5b"),
		qwen25("qwen2.5-7b", 28, 3584, 28, 4, 18944, 152064, false, "qwen-2.5-7b"),
		qwen25("qwen2.5-14b", 48, 5120, 40, 8, 13824, 152064, false, "qwen-2.5-14b"),
		qwen25("qwen2.5-32b", 64, 5120, 40, 8, 27648, 152064, false, "qwen-2.5-32b"),
		qwen25("qwen2.5-72b", 80, 8192, 64, 8, 29568, 152064, false, "qwen-2.5-72b"),
		qwen3("qwen3-0.6b", 28, 1024, 16, 3072, true, "qwen-3-0.6b"),
		qwen3("qwen3-1.7b", 28, 2048, 16, 6144, true, "qwen-3-1.7b"),
		qwen3("qwen3-4b", 36, 2560, 32, 9728, true, "qwen-3-4b"),
		qwen3("qwen3-8b", 36, 4096, 32, 12288, false, "qwen-3-8b"),
		qwen3("qwen3-32b", 64, 5120, 64, 25600, false, "qwen-3-32b"),
	}
}

// llama is a Llama 2, 3 or 3.1 card. 3.1 differs from 3 in its rotary scaling only, which costs nothing.
func llama(name string, layers, hidden, heads, kvHeads, intermediate, vocab int, aliases ...string) Card {
	return Card{Name: name, Aliases: aliases, Layers: layers, Hidden: hidden, Heads: heads, KVHeads: kvHeads,
		HeadDim: 128, Intermediate: intermediate, Vocab: vocab}
}

func qwen25(name string, layers, hidden, heads, kvHeads, intermediate, vocab int, tied bool, aliases ...string) Card {
	return Card{Name: name, Aliases: aliases, Layers: layers, Hidden: hidden, Heads: heads, KVHeads: kvHeads,
		HeadDim: 128, Intermediate: intermediate, Vocab: vocab, TiedEmbeddings: tied, QKVBias: true}
}

func qwen3(name string, layers, hidden, heads, intermediate int, tied bool, aliases ...string) Card {
	return Card{Name: name, Aliases: aliases, Layers: layers, Hidden: hidden, Heads: heads, KVHeads: 8,
		HeadDim: 128, Intermediate: intermediate, Vocab: 151936, TiedEmbeddings: tied, QKNorm: true}
}

// Names returns the canonical names, in the order of Cards.
func Names() []string {
	var names []string
	for _, c := range Cards() {
		names = append(names, c.Name)
	}
	return names
}

// Lookup returns the card of a model by its canonical name or an alias, case ignored; a trailing "-instruct" or "-chat"
// is dropped, since tuning leaves the architecture alone. The error of an unknown name gives the nearest known one.
func Lookup(name string) (Card, error) {
	folded := strings.ToLower(strings.TrimSpace(name))
	folded = strings.TrimSuffix(strings.TrimSuffix(folded, "-instruct"), "-chat")
	var spellings []string
	cards := Cards()
	canonical := make(map[string]string)
	for _, c := range cards {
		if folded == c.Name || slices.Contains(c.Aliases, folded) {
			return c, nil
		}
		for _, spelling := range append([]string{c.Name}, c.Aliases...) {
			spellings = append(spellings, spelling)
			canonical[spelling] = c.Name
		}
	}
	if near, ok := suggest.Nearest(folded, spellings); ok {
		return Card{}, fmt.Errorf("unknown model %q: did you mean %s? (trbench models list shows all)",
			name, canonical[near])
	}
	return Card{}, fmt.Errorf("unknown model %q (trbench models list shows all)", name)
}
