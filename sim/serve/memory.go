package serve

import (
	"math/bits"

	"github.com/trbench/trbench/engine/kv"
)

// Contents names the content of each full block of tokens: a chain, so that two blocks are alike only where all tokens
// before them are.
func Contents(tokens []int32, blockTokens int) []kv.Hash {
	if blockTokens < 1 {
		return nil
	}
	var all []kv.Hash
	h := uint64(chain)
	for i, t := range tokens {
		h = mix(h, uint64(uint32(t)))
		if (i+1)%blockTokens == 0 {
			all = append(all, name(h))
		}
	}
	return all
}

const (
	chain = 0x9e3779b97f4a7c15
	own   = 0xd1b54a32d192ed03
)

// mix folds x into h: a multiplication whose halves are xored, so that every bit of both reaches every bit of the result.
func mix(h, x uint64) uint64 {
	hi, lo := bits.Mul64(h^chain, x^own)
	return hi ^ lo ^ bits.RotateLeft64(h, 29)
}

// name is h as a content, which is not 0.
func name(h uint64) kv.Hash { return kv.Hash(max(1, h)) }

// content is that of block i of a request. The blocks that hold output, and all blocks of a prompt that nobody knows, are
// like no other request's: only the request itself finds them again, after a preemption.
func (w *world) content(id int32, i int) kv.Hash {
	if b := w.requests[id].Blocks; i < len(b) {
		return b[i]
	}
	return name(mix(mix(own, uint64(id)), uint64(i)))
}

// hits are the blocks of s's known tokens that the pool has. At least one token is always computed.
func (w *world) hits(id int32, s *seq) []kv.Block {
	w.found = w.found[:0]
	if !w.cfg.Caching {
		return nil
	}
	for i := range int((s.known - 1) / w.cfg.BlockTokens) {
		b, ok := w.pool.Find(w.content(id, i))
		if !ok {
			break
		}
		w.found = append(w.found, b)
	}
	return w.found
}

// blocksOf is how many blocks hold so many tokens.
func (w *world) blocksOf(tokens int32) int32 {
	return (tokens + w.cfg.BlockTokens - 1) / w.cfg.BlockTokens
}

// extend gets the blocks that the next n tokens of a running sequence need; it takes none where not all can be had.
func (w *world) extend(id int32, s *seq, n int32) bool {
	need := w.blocksOf(s.computed+n) - int32(len(s.blocks))
	if need > w.pool.Free() {
		return false
	}
	w.take(s, need)
	w.fill(id, s, min(s.computed+n, s.known))
	return true
}

// claim gets the blocks with which a waiting sequence enters: those that it finds, and new ones for its next n tokens. It
// changes nothing where they can't be had, or, unless FirstChunk, where not all its known tokens would fit.
func (w *world) claim(id int32, s *seq, hits []kv.Block, n int32) bool {
	found := int32(len(hits))
	free := w.pool.Free()
	for _, b := range hits {
		if w.pool.IsFree(b) {
			free--
		}
	}
	if !w.cfg.FirstChunk && w.blocksOf(s.known)-found > free {
		return false
	}
	cached := found * w.cfg.BlockTokens
	need := w.blocksOf(cached+n) - found
	if need > free {
		return false
	}
	for _, b := range hits {
		w.pool.Hold(b)
	}
	s.blocks = append(s.blocks[:0], hits...)
	s.computed, s.filled = cached, found
	w.take(s, need)
	w.fill(id, s, min(cached+n, s.known))
	return true
}

func (w *world) take(s *seq, n int32) {
	for range n {
		s.blocks = append(s.blocks, w.pool.Take())
	}
	w.out.MostHeld = max(w.out.MostHeld, w.pool.Held())
}

// fill names the blocks that are full with so many tokens.
func (w *world) fill(id int32, s *seq, tokens int32) {
	if !w.cfg.Caching {
		return
	}
	for full := tokens / w.cfg.BlockTokens; s.filled < full; s.filled++ {
		w.pool.Fill(s.blocks[s.filled], w.content(id, int(s.filled)))
	}
}

// drop lets go of a sequence's blocks, the last first: what is nearest to the end is of least use to others.
func (w *world) drop(s *seq) {
	for i := len(s.blocks) - 1; i >= 0; i-- {
		w.pool.Give(s.blocks[i])
	}
	s.blocks, s.filled, s.computed = s.blocks[:0], 0, 0
}
