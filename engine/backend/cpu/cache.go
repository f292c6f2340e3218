package cpu

import (
	"github.com/trbench/trbench/engine/backend/cpu/kernel"
	"github.com/trbench/trbench/engine/step"
)

// slabBytes is about how much memory the cache takes at a time.
const slabBytes = 1 << 20

// cache is the KV of one model: blocks of a fixed number of tokens, which a sequence owns in any order. It grows on
// demand and sets no bound: the scheduler's accounts do.
//
// Within a block, each layer has its keys, by head transposed: [dim][columns], position j of the block in column j, so
// that a query's scores for neighbouring positions are neighbouring lanes; then its values, by head: [tokens][wide].
type cache struct {
	layers, heads int
	dim, wide     int // of a head; wide is dim rounded up to whole vectors
	tokens        int // of a block
	columns       int // tokens rounded up to whole vectors
	layerFloats   int // of one layer in a block
	blockFloats   int

	slabs   [][]float32
	perSlab int32 // blocks
	made    int32 // blocks in slabs that have been given out at least once
	free    []int32
	seqs    []sequence // by handle
}

// sequence is what the cache holds of a request.
//
// Invariant: tokens <= len(blocks) * cache.tokens.
type sequence struct {
	blocks []int32
	tokens int // in KV
}

func newCache(layers, heads, dim, blockTokens int) *cache {
	c := &cache{
		layers: layers, heads: heads, dim: dim, wide: kernel.Pad(dim, kernel.Lanes),
		tokens: blockTokens, columns: kernel.Pad(blockTokens, kernel.Lanes),
	}
	c.layerFloats = heads * (c.dim*c.columns + c.tokens*c.wide)
	c.blockFloats = layers * c.layerFloats
	c.perSlab = int32(max(1, slabBytes/(4*c.blockFloats)))
	return c
}

// at is the sequence of h; the table grows.
func (c *cache) at(h step.Handle) *sequence {
	for int(h) >= len(c.seqs) {
		c.seqs = append(c.seqs, sequence{})
	}
	return &c.seqs[h]
}

// truncate drops KV beyond n tokens, and the blocks that held only that.
func (c *cache) truncate(s *sequence, n int) {
	s.tokens = min(s.tokens, n)
	keep := (s.tokens + c.tokens - 1) / c.tokens
	c.free = append(c.free, s.blocks[keep:]...)
	s.blocks = s.blocks[:keep]
}

// reserve gives s blocks for n tokens.
func (c *cache) reserve(s *sequence, n int) {
	for len(s.blocks)*c.tokens < n {
		s.blocks = append(s.blocks, c.take())
	}
}

// take returns a free block; its contents are whatever they were.
func (c *cache) take() int32 {
	if n := len(c.free); n > 0 {
		b := c.free[n-1]
		c.free = c.free[:n-1]
		return b
	}
	if c.made == int32(len(c.slabs))*c.perSlab {
		c.slabs = append(c.slabs, make([]float32, int(c.perSlab)*c.blockFloats))
	}
	c.made++
	return c.made - 1
}

// held is the number of blocks that sequences own.
func (c *cache) held() int { return int(c.made) - len(c.free) }

// layer is one layer's part of a block.
func (c *cache) layer(block int32, layer int) []float32 {
	slab := c.slabs[block/c.perSlab]
	return slab[int(block%c.perSlab)*c.blockFloats+layer*c.layerFloats:][:c.layerFloats]
}

// keys are those of head in a layer's part of a block: [dim][columns].
func (c *cache) keys(part []float32, head int) []float32 {
	n := c.dim * c.columns
	return part[head*n:][:n]
}

// values are those of head in a layer's part of a block: [tokens][wide].
func (c *cache) values(part []float32, head int) []float32 {
	n := c.tokens * c.wide
	return part[c.heads*c.dim*c.columns+head*n:][:n]
}
