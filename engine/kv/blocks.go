package kv

import "fmt"

// Hash names the content of a full block and of all blocks before it: who computes it sees tokens, the pool does not. 0
// is no content.
type Hash uint64

// Block is one block of a pool, 0 to its size less one.
type Block = int32

// Blocks is a pool whose blocks can be told apart, so that sequences share those of a common prefix: vLLM's block pool.
// A block is held by the sequences that use it. One that nobody holds is free, and keeps its content until it is taken
// for another: from the front of the free list, where the one that has been free for longest stands.
//
// Every operation on a block is O(1). Invariant: a block is in the free list if and only if refs is 0.
type Blocks struct {
	nodes  []block
	first  map[Hash]Block // of the blocks with a content, the one that got it first
	limit  int32          // blocks; 0 is no limit
	front  Block          // of the free list
	back   Block
	free   int32
	caches bool
}

type block struct {
	hash       Hash
	refs       int32
	prev, next Block // in the free list
	twin       Block // the next block with the same content
}

// NewBlocks returns a pool of n free blocks; n <= 0 is a pool that grows when it has none, and never takes a content
// back. caches says whether contents are remembered.
func NewBlocks(n int32, caches bool) *Blocks {
	p := &Blocks{first: make(map[Hash]Block), limit: max(0, n), front: none, back: none, caches: caches}
	for range n {
		p.grow()
	}
	return p
}

// grow adds a free block.
func (p *Blocks) grow() {
	p.nodes = append(p.nodes, block{twin: none})
	p.push(Block(len(p.nodes) - 1))
}

// Free is how many blocks can be taken.
func (p *Blocks) Free() int32 {
	if p.limit == 0 {
		return Unlimited
	}
	return p.free
}

// Total is the pool's size; Unlimited if it grows.
func (p *Blocks) Total() int32 {
	if p.limit == 0 {
		return Unlimited
	}
	return p.limit
}

// Held is how many blocks sequences hold.
func (p *Blocks) Held() int32 { return int32(len(p.nodes)) - p.free }

// Find returns a block with a content.
func (p *Blocks) Find(h Hash) (b Block, ok bool) {
	b, ok = p.first[h]
	return b, ok
}

// IsFree says that nobody holds b: whoever holds it next takes it from the free ones.
func (p *Blocks) IsFree(b Block) bool { return p.nodes[b].refs == 0 }

// Hold lets one more sequence hold b.
func (p *Blocks) Hold(b Block) {
	if p.nodes[b].refs == 0 {
		p.unlink(b)
	}
	p.nodes[b].refs++
}

// Take takes the block that has been free for longest; its content is forgotten. Taking from a pool without a free one
// is a programmer's mistake and panics.
func (p *Blocks) Take() Block {
	b := p.front
	if p.limit == 0 && (b == none || p.nodes[b].hash != 0) {
		p.grow()
		b = p.back
	}
	if b == none {
		panic(fmt.Sprintf("kv: none of %d blocks is free", p.limit))
	}
	p.unlink(b)
	p.forget(b)
	p.nodes[b].refs = 1
	return b
}

// Give lets go of blocks in this order: the first is taken again before the last.
func (p *Blocks) Give(blocks ...Block) {
	for _, b := range blocks {
		n := &p.nodes[b]
		if n.refs == 0 {
			panic(fmt.Sprintf("kv: block %d is free already", b))
		}
		if n.refs--; n.refs > 0 {
			continue
		}
		if p.limit == 0 && n.hash == 0 {
			p.pushFront(b)
			continue
		}
		p.push(b)
	}
}

// Fill says that b, which is held, has a content now.
func (p *Blocks) Fill(b Block, h Hash) {
	if !p.caches {
		return
	}
	n := &p.nodes[b]
	if n.hash != 0 || h == 0 {
		panic(fmt.Sprintf("kv: block %d is filled twice, or with nothing", b))
	}
	n.hash = h
	at, ok := p.first[h]
	if !ok {
		p.first[h] = b
		return
	}
	for p.nodes[at].twin != none {
		at = p.nodes[at].twin
	}
	p.nodes[at].twin = b
}

// Filled says that b has a content.
func (p *Blocks) Filled(b Block) bool { return p.nodes[b].hash != 0 }

// forget takes b's content away.
func (p *Blocks) forget(b Block) {
	n := &p.nodes[b]
	if n.hash == 0 {
		return
	}
	switch at := p.first[n.hash]; {
	case at != b:
		for p.nodes[at].twin != b {
			at = p.nodes[at].twin
		}
		p.nodes[at].twin = n.twin
	case n.twin != none:
		p.first[n.hash] = n.twin
	default:
		delete(p.first, n.hash)
	}
	n.hash, n.twin = 0, none
}

func (p *Blocks) push(b Block) {
	p.nodes[b].prev, p.nodes[b].next = p.back, none
	if p.back == none {
		p.front = b
	} else {
		p.nodes[p.back].next = b
	}
	p.back = b
	p.free++
}

func (p *Blocks) pushFront(b Block) {
	p.nodes[b].prev, p.nodes[b].next = none, p.front
	if p.front == none {
		p.back = b
	} else {
		p.nodes[p.front].prev = b
	}
	p.front = b
	p.free++
}

func (p *Blocks) unlink(b Block) {
	n := &p.nodes[b]
	if n.prev == none {
		p.front = n.next
	} else {
		p.nodes[n.prev].next = n.next
	}
	if n.next == none {
		p.back = n.prev
	} else {
		p.nodes[n.next].prev = n.prev
	}
	p.free--
}

// Valid checks the invariants; it costs time in proportion to the pool. Tests call it after every step.
func (p *Blocks) Valid() error {
	linked := make([]bool, len(p.nodes))
	count := int32(0)
	for b, last := p.front, none; b != none; last, b = b, p.nodes[b].next {
		if linked[b] || p.nodes[b].prev != last {
			return fmt.Errorf("kv: the free list is broken at block %d", b)
		}
		linked[b] = true
		count++
	}
	if count != p.free {
		return fmt.Errorf("kv: %d blocks in the free list, %d counted", count, p.free)
	}
	for b := range p.nodes {
		if n := &p.nodes[b]; linked[b] != (n.refs == 0) || n.refs < 0 {
			return fmt.Errorf("kv: block %d: held by %d, in the free list: %v", b, n.refs, linked[b])
		}
	}
	for h, b := range p.first {
		for ; b != none; b = p.nodes[b].twin {
			if p.nodes[b].hash != h {
				return fmt.Errorf("kv: block %d has content %x, found as %x", b, p.nodes[b].hash, h)
			}
		}
	}
	return nil
}
