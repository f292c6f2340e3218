package kv

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// listPool is Blocks by its definition: a free list, and contents found by looking at all blocks.
type listPool struct {
	free []Block // the front is taken next
	refs map[Block]int
	hash map[Block]Hash
	age  map[Block]int // when it got its content
	now  int
}

func newListPool(n int32) *listPool {
	p := &listPool{refs: map[Block]int{}, hash: map[Block]Hash{}, age: map[Block]int{}}
	for b := range n {
		p.free = append(p.free, b)
	}
	return p
}

func (p *listPool) find(h Hash) (Block, bool) {
	best, ok := Block(-1), false
	for b, g := range p.hash {
		if g == h && (!ok || p.age[b] < p.age[best]) {
			best, ok = b, true
		}
	}
	return best, ok
}

func (p *listPool) take() Block {
	b := p.free[0]
	p.free = p.free[1:]
	delete(p.hash, b)
	p.refs[b] = 1
	return b
}

func (p *listPool) hold(b Block) {
	if p.refs[b] == 0 {
		p.free = slices.DeleteFunc(p.free, func(x Block) bool { return x == b })
	}
	p.refs[b]++
}

func (p *listPool) give(b Block) {
	if p.refs[b]--; p.refs[b] == 0 {
		p.free = append(p.free, b)
	}
}

func (p *listPool) fill(b Block, h Hash) {
	p.now++
	p.hash[b], p.age[b] = h, p.now
}

// TestBlocksAreTheList wants the pool to answer as its definition does, whatever is done with it.
func TestBlocksAreTheList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int32Range(1, 12).Draw(t, "blocks")
		p, q := NewBlocks(n, true), newListPool(n)
		var held []Block
		for range rapid.IntRange(1, 80).Draw(t, "operations") {
			switch rapid.IntRange(0, 3).Draw(t, "operation") {
			case 0:
				if p.Free() == 0 {
					continue
				}
				b := p.Take()
				if want := q.take(); b != want {
					t.Fatalf("took block %d, want %d", b, want)
				}
				held = append(held, b)
			case 1:
				if len(held) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "given")
				p.Give(held[i])
				q.give(held[i])
				held = slices.Delete(held, i, i+1)
			case 2:
				if len(held) == 0 {
					continue
				}
				b := held[rapid.IntRange(0, len(held)-1).Draw(t, "filled")]
				if !p.Filled(b) {
					h := Hash(rapid.IntRange(1, 4).Draw(t, "content"))
					p.Fill(b, h)
					q.fill(b, h)
				}
			case 3:
				h := Hash(rapid.IntRange(1, 4).Draw(t, "sought"))
				b, ok := p.Find(h)
				want, wantOK := q.find(h)
				if ok != wantOK || ok && b != want {
					t.Fatalf("content %d: block %d %v, want %d %v", h, b, ok, want, wantOK)
				}
				if ok {
					p.Hold(b)
					q.hold(b)
					held = append(held, b)
				}
			}
			if err := p.Valid(); err != nil {
				t.Fatal(err)
			}
			if int(p.Free()) != len(q.free) || p.Free()+p.Held() != n {
				t.Fatalf("%d free and %d held of %d, want %d free", p.Free(), p.Held(), n, len(q.free))
			}
		}
	})
}

// TestBlocksWithoutLimit wants a pool that grows to keep every content and to use blocks without one again.
func TestBlocksWithoutLimit(t *testing.T) {
	p := NewBlocks(0, true)
	a, b := p.Take(), p.Take()
	p.Fill(a, 7)
	p.Give(b, a)
	if c := p.Take(); c != b {
		t.Errorf("took block %d, want %d, which is free and has no content", c, b)
	}
	if c := p.Take(); c == a || c == b {
		t.Errorf("took block %d, want a new one", c)
	}
	if got, ok := p.Find(7); !ok || got != a {
		t.Errorf("content 7: block %d %v, want %d", got, ok, a)
	}
	if err := p.Valid(); err != nil {
		t.Error(err)
	}
}

// TestBlocksWithoutContents wants a pool that does not cache to find nothing.
func TestBlocksWithoutContents(t *testing.T) {
	p := NewBlocks(2, false)
	p.Fill(p.Take(), 7)
	if _, ok := p.Find(7); ok {
		t.Error("found a content")
	}
}
