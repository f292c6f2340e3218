package paper

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// doubts gathers the latency models' warnings over all runs. They differ in how far beyond a table a run went: of each
// kind the furthest is kept.
type doubts struct {
	mu       sync.Mutex
	furthest map[string]doubt // by the warning without its number
}

type doubt struct {
	text string
	by   int
}

var number = regexp.MustCompile(`\d+`)

// add takes warnings of the form "TABLE: WHAT NUMBER beyond ...".
func (d *doubts) add(warnings []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, w := range warnings {
		table, what, _ := strings.Cut(w, ": ")
		at := number.FindStringIndex(what)
		kind, by := w, 0
		if at != nil {
			kind = table + ": " + what[:at[0]] + what[at[1]:]
			by, _ = strconv.Atoi(what[at[0]:at[1]]) // one too long to read counts as none
		}
		if d.furthest == nil {
			d.furthest = map[string]doubt{}
		}
		if before, ok := d.furthest[kind]; !ok || by > before.by {
			d.furthest[kind] = doubt{w, by}
		}
	}
}

// list is sorted by kind.
func (d *doubts) list() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []string
	for _, kind := range slices.Sorted(maps.Keys(d.furthest)) {
		out = append(out, d.furthest[kind].text)
	}
	return out
}
