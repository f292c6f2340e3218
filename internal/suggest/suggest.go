// Package suggest finds the name that a misspelt one was meant to be, for "did you mean" in errors.
package suggest

import "strings"

// Nearest returns the known name that is fewest edits from name: an edit inserts, removes or replaces one letter, or
// swaps two neighbours. Case is ignored; of equally near names the first in known wins. It reports false where even the
// nearest needs more edits than about a third of the letters (one is always forgiven): a far guess misleads.
func Nearest(name string, known []string) (string, bool) {
	from := []rune(strings.ToLower(name))
	best, nearest := -1, ""
	for _, k := range known {
		to := []rune(strings.ToLower(k))
		longer := max(len(from), len(to))
		limit := min(max(1, (longer+1)/3), longer-1) // of one letter, none may change
		if gap := len(from) - len(to); gap > limit || -gap > limit {
			continue
		}
		if d := distance(from, to); d <= limit && (best < 0 || d < best) {
			best, nearest = d, k
		}
	}
	return nearest, best >= 0
}

// distance is the optimal string alignment distance: Levenshtein's with swaps of neighbours, no letter edited twice.
func distance(a, b []rune) int {
	before, above, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := above[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
