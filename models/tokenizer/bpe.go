package tokenizer

// shortWord is the most bytes that are merged by scanning for the lowest rank, in the square of the length; longer
// words go through a heap.
const shortWord = 64

// appendWord appends the tokens of one word. The pair of neighbours with the lowest rank merges first, the leftmost of
// equals, until none is left that merges (Sennrich et al. 2016, algorithm 1, with ranks for counts).
func (t *Tokenizer) appendWord(ids []int32, word string) []int32 {
	v := t.vocab
	if len(word) == 1 {
		return append(ids, v.byteID[word[0]])
	}
	if t.ignoreMerge && len(word) <= v.longest {
		if _, id := find(v, word); id >= 0 {
			return append(ids, id)
		}
	}
	start := len(ids)
	for i := range len(word) {
		ids = append(ids, v.byteID[word[i]])
	}
	if len(word) <= shortWord {
		return ids[:start+v.mergeShort(ids[start:])]
	}
	return ids[:start+v.mergeLong(ids[start:])]
}

// mergeShort merges ids, at most shortWord of them, in place, and returns how many are left.
func (v *vocabulary) mergeShort(ids []int32) int {
	var merges [shortWord]merge // merges[i]: of ids[i] and ids[i+1]
	n := len(ids)
	for i := range n - 1 {
		merges[i] = v.merge(ids[i], ids[i+1])
	}
	for n > 1 {
		best, rank := 0, uint32(noRank)
		for i := range n - 1 {
			if merges[i].rank < rank {
				best, rank = i, merges[i].rank
			}
		}
		if rank == noRank {
			break
		}
		ids[best] = merges[best].id
		copy(ids[best+1:n-1], ids[best+2:n])
		copy(merges[best:n-2], merges[best+1:n-1])
		n--
		if best > 0 {
			merges[best-1] = v.merge(ids[best-1], ids[best])
		}
		if best < n-1 {
			merges[best] = v.merge(ids[best], ids[best+1])
		}
	}
	return n
}

// mergeLong is mergeShort for a word of any length n, in n log n steps.
func (v *vocabulary) mergeLong(ids []int32) int {
	// A node is a token in a list linked by index; what merges into its left neighbour drops out.
	type node struct {
		left, right int32 // -1 at the ends
		merge             // with the right neighbour
	}
	nodes := make([]node, len(ids))
	var queue heap // of rank << 32 | node: lowest rank first, then leftmost
	match := func(i int32) {
		n := &nodes[i]
		n.merge = merge{rank: noRank}
		if n.right >= 0 {
			n.merge = v.merge(ids[i], ids[n.right])
		}
		if n.rank != noRank {
			queue.push(uint64(n.rank)<<32 | uint64(i))
		}
	}
	for i := range nodes {
		nodes[i].left, nodes[i].right = int32(i)-1, int32(i)+1
	}
	nodes[len(nodes)-1].right = -1
	for i := range nodes {
		match(int32(i))
	}
	for len(queue) > 0 {
		top := queue.pop()
		i := int32(uint32(top))
		n := &nodes[i]
		// An entry is stale if its pair has merged with others since; a rank belongs to one pair, so that an equal rank
		// is the pair itself.
		if n.rank != uint32(top>>32) {
			continue
		}
		gone := n.right
		ids[i] = n.id
		n.right = nodes[gone].right
		nodes[gone].rank = noRank
		ids[gone] = -1
		if n.right >= 0 {
			nodes[n.right].left = i
		}
		match(i)
		if n.left >= 0 {
			match(n.left)
		}
	}
	count := 0
	for _, id := range ids {
		if id >= 0 {
			ids[count] = id
			count++
		}
	}
	return count
}

// heap is a binary heap, least first.
type heap []uint64

func (h *heap) push(x uint64) {
	*h = append(*h, x)
	q := *h
	for i := len(q) - 1; i > 0; {
		parent := (i - 1) / 2
		if q[parent] <= q[i] {
			break
		}
		q[parent], q[i] = q[i], q[parent]
		i = parent
	}
}

func (h *heap) pop() uint64 {
	q := *h
	least, last := q[0], len(q)-1
	q[0] = q[last]
	q = q[:last]
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && q[child+1] < q[child] {
			child++
		}
		if q[i] <= q[child] {
			break
		}
		q[i], q[child] = q[child], q[i]
		i = child
	}
	*h = q
	return least
}
