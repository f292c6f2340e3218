package markov

import "math/bits"

// key is a state packed in two words: for every model i its k_i waiting requests, b_i running ones and r_i quanta left.
// Differences of states are packed the same way and add word by word. Fields never carry into each other: no count
// exceeds N, no time exceeds the longest step, and each has the bits for that.
type key [2]uint64

func (k key) plus(d key) key  { return key{k[0] + d[0], k[1] + d[1]} }
func (k key) minus(d key) key { return key{k[0] - d[0], k[1] - d[1]} }

// less orders keys; adding the same key to both sides keeps the order.
func (k key) less(o key) bool {
	if k[1] != o[1] {
		return k[1] < o[1]
	}
	return k[0] < o[0]
}

// field says where one model's three numbers lie, all in one word.
type field struct {
	word                   int   // 0 or 1
	waiting, running, left uint8 // shifts within the word
	countMask, leftMask    uint64
}

func (f *field) waitingIn(k *key) int { return int(k[f.word&1] >> (f.waiting & 63) & f.countMask) }
func (f *field) runningIn(k *key) int { return int(k[f.word&1] >> (f.running & 63) & f.countMask) }
func (f *field) leftIn(k *key) int32  { return int32(k[f.word&1] >> (f.left & 63) & f.leftMask) }

// pack returns the key with this model's numbers, and nothing for the others.
func (f *field) pack(waiting, running int, left int32) key {
	var k key
	k[f.word] = uint64(waiting)<<f.waiting | uint64(running)<<f.running | uint64(left)<<f.left
	return k
}

// layout places the models' fields, first fit; false if they don't fit two words.
func layout(g *grid, n int) ([]field, bool) {
	fields := make([]field, len(g.steps))
	count := bits.Len(uint(n))
	var used [2]int
	for i := range fields {
		left := bits.Len(uint(g.longest(i)))
		need := 2*count + left
		word := 0
		if used[0]+need > 64 {
			word = 1
		}
		if used[word]+need > 64 {
			return nil, false
		}
		at := used[word]
		used[word] += need
		fields[i] = field{
			word:      word,
			waiting:   uint8(at),
			running:   uint8(at + count),
			left:      uint8(at + 2*count),
			countMask: 1<<count - 1,
			leftMask:  1<<left - 1,
		}
	}
	return fields, true
}

// stateSet numbers states in the order in which they are first seen: a hash table with open addressing over the list
// of keys. A slot holds a state's number + 1 in its low half and further bits of the hash in its high half, so that a
// probe seldom has to look at the key. Invariant: at most half of the slots are taken.
type stateSet struct {
	keys  []key
	slots []uint64
	shift uint // 64 - log2(len(slots))

	hashes  []uint64 // scratch
	touched uint64   // keeps the compiler from leaving out loads whose value nobody needs
}

// newStateSet returns a set with room for about so many states; it grows beyond.
func newStateSet(states int) *stateSet {
	log := max(8, bits.Len(uint(2*states)))
	return &stateSet{keys: make([]key, 0, states), slots: make([]uint64, 1<<log), shift: uint(64 - log)}
}

// hash spreads both words over all the bits; the two odd constants are the golden ratio and sqrt(2), as fractions of
// 2^64.
func (k key) hash() uint64 {
	return k[0]*0x9E3779B97F4A7C15 + k[1]*0x6A09E667F3BCC909
}

// numbers appends the numbers of the states to list, new ones for those that are unseen. All the slots are looked at
// first: the cache misses, which take most of the time, then overlap instead of waiting for each other's outcome.
func (s *stateSet) numbers(list []int32, states []key) []int32 {
	if 2*(len(s.keys)+len(states)) > len(s.slots) {
		s.grow(len(states))
	}
	s.hashes = s.hashes[:0]
	mask := uint64(len(s.slots) - 1)
	for i := range states {
		h := states[i].hash()
		s.hashes = append(s.hashes, h)
		s.touched ^= s.slots[h>>s.shift&mask]
	}
	for i, h := range s.hashes {
		k := states[i]
		tag := h >> (s.shift - 32) << 32
		at := h >> s.shift
		for {
			slot := s.slots[at&mask]
			if slot == 0 {
				s.keys = append(s.keys, k)
				s.slots[at&mask] = tag | uint64(len(s.keys))
				list = append(list, int32(len(s.keys)-1))
				break
			}
			if id := uint32(slot) - 1; slot>>32<<32 == tag && s.keys[id] == k {
				list = append(list, int32(id))
				break
			}
			at++
		}
	}
	return list
}

// grow makes at least four times as many slots, and enough for so many more states.
func (s *stateSet) grow(more int) {
	log := 64 - s.shift + 2
	for 1<<log < 2*(len(s.keys)+more) {
		log++
	}
	s.shift = 64 - log
	s.slots = make([]uint64, 1<<log)
	mask := uint64(len(s.slots) - 1)
	for i := range s.keys {
		h := s.keys[i].hash()
		at := h >> s.shift
		for s.slots[at&mask] != 0 {
			at++
		}
		s.slots[at&mask] = h>>(s.shift-32)<<32 | uint64(i+1)
	}
}
