package tokenizer

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// merged is byte-pair encoding by its definition: look at all neighbours, merge the pair that comes first in the list
// and leftmost in the word, and look again.
func merged(merges [][2]string, word string) []string {
	rank := make(map[[2]string]int)
	for i, m := range merges {
		rank[m] = i // the last of equals, as in the library
	}
	var parts []string
	for i := range len(word) {
		parts = append(parts, word[i:i+1])
	}
	for {
		best, at := len(merges), -1
		for i := range len(parts) - 1 {
			if r, ok := rank[[2]string{parts[i], parts[i+1]}]; ok && r < best {
				best, at = r, i
			}
		}
		if at < 0 {
			return parts
		}
		parts = append(append(slices.Clone(parts[:at]), parts[at]+parts[at+1]), parts[at+2:]...)
	}
}

// drawMerges draws merges over a few letters: each joins two tokens that there are by then.
func drawMerges(t *rapid.T) [][2]string {
	tokens := []string{"a", "b", "c"}
	var merges [][2]string
	for range rapid.IntRange(0, 20).Draw(t, "merges") {
		m := [2]string{rapid.SampledFrom(tokens).Draw(t, "left"), rapid.SampledFrom(tokens).Draw(t, "right")}
		if slices.Contains(merges, m) {
			continue
		}
		merges = append(merges, m)
		if joined := m[0] + m[1]; !slices.Contains(tokens, joined) {
			tokens = append(tokens, joined)
		}
	}
	// Any order of ranks is valid, though training would not give it.
	return rapid.Permutation(merges).Draw(t, "ranks")
}

// TestMergeByDefinition compares both ways of merging with the definition.
func TestMergeByDefinition(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		merges := drawMerges(r)
		v := toy{merges: merges}.open(t).vocab
		word := rapid.StringOfN(rapid.SampledFrom([]rune("abc")), 1, shortWord, -1).Draw(r, "word")
		want := merged(merges, word)
		for name, merge := range map[string]func([]int32) int{"scan": v.mergeShort, "heap": v.mergeLong} {
			var ids []int32
			for i := range len(word) {
				ids = append(ids, v.byteID[word[i]])
			}
			var got []string
			for _, id := range ids[:merge(ids)] {
				got = append(got, v.bytes(id))
			}
			if !slices.Equal(got, want) {
				r.Fatalf("%s: merges %q, %q: %q, want %q", name, merges, word, got, want)
			}
		}
	})
}

// TestLongWord: a word beyond the scan's bound, with the tokens that its structure gives.
func TestLongWord(t *testing.T) {
	tok := toy{merges: [][2]string{{"a", "b"}, {"ab", "ab"}, {"abab", "abab"}}}.open(t)
	for _, n := range []int{shortWord / 2, shortWord/2 + 1, 10_001} { // times "ab": 64, 66 and 20,002 bytes
		ids := tok.Encode(strings.Repeat("ab", n), false)
		want := slices.Repeat([]int32{258}, n/4)
		if n%4 >= 2 {
			want = append(want, 257)
		}
		if n%2 == 1 {
			want = append(want, 256)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("%d times ab: %d tokens, want %d", n, len(ids), len(want))
		}
		if got := tok.Count(strings.Repeat("ab", n)); got != len(want) {
			t.Errorf("%d times ab: counted %d tokens, want %d", n, got, len(want))
		}
	}
}

// TestIgnoreMerges: a word that is a token is taken whole only where the file says so.
func TestIgnoreMerges(t *testing.T) {
	base := toy{merges: [][2]string{{"a", "b"}}, extra: []string{"abc"}}
	if got := base.open(t).Encode("abc", false); !slices.Equal(got, []int32{256, 'c'}) {
		t.Errorf("by merges: %v", got)
	}
	base.ignoreMerges = true
	tok := base.open(t)
	if got := tok.Encode("abc", false); !slices.Equal(got, []int32{257}) {
		t.Errorf("ignoring merges: %v", got)
	}
	if got := tok.Encode("abcabc", false); !slices.Equal(got, []int32{256, 'c', 256, 'c'}) {
		t.Errorf("a word that is no token: %v", got)
	}
}

// TestLastEqualMerge: of two equal merges the last one's rank holds, as in the library.
func TestLastEqualMerge(t *testing.T) {
	tok := toy{merges: [][2]string{{"a", "b"}, {"b", "c"}, {"a", "b"}}}.open(t)
	if got := tok.Encode("abc", false); !slices.Equal(got, []int32{'a', 257}) {
		t.Errorf("%v, want a and bc", got)
	}
}

func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h heap
		var want []uint64
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			if len(want) > 0 && rapid.Bool().Draw(t, "pop") {
				if got := h.pop(); got != want[0] {
					t.Fatalf("popped %d, want %d", got, want[0])
				}
				want = want[1:]
				continue
			}
			x := rapid.Uint64Range(0, 20).Draw(t, "x")
			h.push(x)
			at, _ := slices.BinarySearch(want, x)
			want = slices.Insert(want, at, x)
		}
	})
}
