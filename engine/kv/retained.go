package kv

import "github.com/trbench/trbench/engine/step"

// Orphan is the handle of an entry whose request has ended: cached blocks that nobody returns for.
const Orphan step.Handle = -1

const none = int32(-1)

// Retained lists the KV that is kept for requests not running here, oldest first: what is taken back when blocks run
// out. A token-routing subserver keeps the KV of pending requests; a single-model server keeps its prefix cache.
//
// Every operation is O(1). Invariant: blocks is the sum over the entries.
type Retained struct {
	nodes  []node
	at     []int32 // node by handle, none if the handle has no entry
	spare  int32   // head of the list of unused nodes, linked by next
	oldest int32
	newest int32
	blocks int32
	count  int
}

type node struct {
	prev, next int32
	handle     step.Handle
	blocks     int32
}

// NewRetained returns an empty list.
func NewRetained() Retained { return Retained{spare: none, oldest: none, newest: none} }

// Blocks is how many blocks all entries hold together.
func (r *Retained) Blocks() int32 { return r.blocks }

// Len is the number of entries.
func (r *Retained) Len() int { return r.count }

// Add appends an entry for h as the newest. h must have none.
func (r *Retained) Add(h step.Handle, blocks int32) {
	for int(h) >= len(r.at) {
		r.at = append(r.at, none)
	}
	if r.at[h] != none {
		panic("kv: the handle has an entry already")
	}
	i := r.spare
	if i == none {
		i = int32(len(r.nodes))
		r.nodes = append(r.nodes, node{})
	} else {
		r.spare = r.nodes[i].next
	}
	r.nodes[i] = node{prev: r.newest, next: none, handle: h, blocks: blocks}
	if r.newest == none {
		r.oldest = i
	} else {
		r.nodes[r.newest].next = i
	}
	r.newest = i
	r.at[h] = i
	r.blocks += blocks
	r.count++
}

// Remove takes h's entry out and returns its blocks: 0 if it has none.
func (r *Retained) Remove(h step.Handle) int32 {
	if int(h) >= len(r.at) || r.at[h] == none {
		return 0
	}
	return r.drop(r.at[h])
}

// Orphan says that h's request has ended: the entry keeps its place and its blocks, and the handle is free.
func (r *Retained) Orphan(h step.Handle) {
	if int(h) >= len(r.at) || r.at[h] == none {
		return
	}
	r.nodes[r.at[h]].handle = Orphan
	r.at[h] = none
}

// Oldest returns the entry to take back first. ok is false if there is none.
func (r *Retained) Oldest() (h step.Handle, blocks int32, ok bool) {
	if r.oldest == none {
		return 0, 0, false
	}
	n := &r.nodes[r.oldest]
	return n.handle, n.blocks, true
}

// ShrinkOldest takes n blocks off the oldest entry, and the entry out if none are left.
func (r *Retained) ShrinkOldest(n int32) {
	o := &r.nodes[r.oldest]
	if n >= o.blocks {
		r.drop(r.oldest)
		return
	}
	o.blocks -= n
	r.blocks -= n
}

func (r *Retained) drop(i int32) int32 {
	n := r.nodes[i]
	if n.prev == none {
		r.oldest = n.next
	} else {
		r.nodes[n.prev].next = n.next
	}
	if n.next == none {
		r.newest = n.prev
	} else {
		r.nodes[n.next].prev = n.prev
	}
	if n.handle != Orphan {
		r.at[n.handle] = none
	}
	r.nodes[i].next = r.spare
	r.spare = i
	r.blocks -= n.blocks
	r.count--
	return n.blocks
}
