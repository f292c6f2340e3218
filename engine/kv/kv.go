// Package kv accounts for the KV blocks of one server. It counts blocks and remembers whose KV may be taken back
// first; it holds no tensors and no token values.
//
// Read kv.go (the pool), then retained.go (KV that outlives its step: pending requests, a server's prefix cache), and
// blocks.go (a pool in which sequences share blocks).
package kv

import (
	"errors"
	"fmt"
)

// ErrFull is the kind of an allocation that the pool can't serve.
var ErrFull = errors.New("KV pool full")

// Unlimited is a pool size that no run exhausts: constant latencies come without a memory size.
const Unlimited int32 = 1 << 30

// Pool counts the KV blocks of one subserver.
//
// Invariant: 0 <= free <= total.
type Pool struct {
	tokens int32 // tokens a block
	total  int32
	free   int32
}

// NewPool returns a pool of blocks blocks of blockTokens tokens each; blocks <= 0 is Unlimited.
func NewPool(blocks, blockTokens int32) Pool {
	if blockTokens <= 0 {
		panic("kv: a block holds at least one token")
	}
	if blocks <= 0 {
		blocks = Unlimited
	}
	return Pool{tokens: blockTokens, total: blocks, free: blocks}
}

// Blocks is how many blocks hold n tokens.
func (p *Pool) Blocks(n int32) int32 { return (n + p.tokens - 1) / p.tokens }

// BlockTokens is how many tokens one block holds.
func (p *Pool) BlockTokens() int32 { return p.tokens }

// Free is how many blocks are free.
func (p *Pool) Free() int32 { return p.free }

// Total is the pool's size in blocks.
func (p *Pool) Total() int32 { return p.total }

// Take takes n blocks. Taking more than Free is a programmer's mistake and panics.
func (p *Pool) Take(n int32) {
	if n < 0 || n > p.free {
		panic(fmt.Sprintf("kv: take %d of %d free blocks", n, p.free))
	}
	p.free -= n
}

// Give gives n blocks back.
func (p *Pool) Give(n int32) {
	if n < 0 || p.free+n > p.total {
		panic(fmt.Sprintf("kv: give back %d blocks with %d of %d free", n, p.free, p.total))
	}
	p.free += n
}
