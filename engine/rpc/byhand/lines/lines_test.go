package lines

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/rpc/byhand"
)

// Every algorithm is counted, and every file of the code by hand belongs to one of them or to the plumbing.
func TestAllAreCounted(t *testing.T) {
	counts, err := Counts()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range counts {
		names = append(names, c.Algorithm)
		if c.Program < 5 || c.Starlark < 5 || c.ByHand < 10 || c.Needs < 100 {
			t.Errorf("%+v", c)
		}
	}
	if !slices.Equal(names, route.Names()) {
		t.Errorf("counted %v, there are %v", names, route.Names())
	}
	embedded, err := read(byhand.Source)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, path := range files {
		name := filepath.Base(path)
		if strings.HasSuffix(name, "_test.go") || name == "source.go" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(embedded[name]) != string(text) {
			t.Errorf("%s is not embedded", name)
		}
	}
}

// What is counted, on a file that can be counted by eye.
func TestWhatCounts(t *testing.T) {
	s, err := parse(fstest.MapFS{"a.go": {Data: []byte(`// Package a.
package a

import "fmt"

/* a
comment */
// F is documented.
func F(x int) string { // 1
	// not this

	if x > 0 { // 2
		return ` + "`raw 3\n\n5`" + `
	} // 6
	return G(
		x, // 8
	)
}

type (
	T struct { // 1
		x int

		y int // 3
	}
	U int
)

const k = 1

func (t *T) M() { F(k) }
`)}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range s {
		got = append(got, fmt.Sprint(d.name, " ", d.lines))
	}
	if want := []string{"F 10", "T 4", "U 1", "k 1", "T.M 1"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := starlarkLines("# c\n\ndef f():\n    # c\n    return 1 # one\n"); n != 2 {
		t.Errorf("%d Starlark lines", n)
	}
	all := []declaration{{name: "T.M", uses: []string{"F"}}, {name: "F"}, {name: "G"}, {file: "front.go", name: "H"}}
	found := reached([]declaration{{uses: []string{"M"}}}, all)
	if len(found) != 3 || slices.ContainsFunc(found, func(d declaration) bool { return d.name == "G" }) {
		t.Errorf("reached %+v", found)
	}
}

// The tables say what the counts say.
func TestReport(t *testing.T) {
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	var text, md, data, records bytes.Buffer
	for _, err := range []error{r.Table(&text, 80), r.Markdown(&md), r.JSON(&data), r.CSV(&records)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(text.String()) {
		if len(line) > 81 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	var out struct {
		Plumbing   int `json:"plumbing_lines"`
		Algorithms []struct {
			Count
			Own float64 `json:"saving_own"`
		}
	}
	if err := json.Unmarshal(data.Bytes(), &out); err != nil || len(out.Algorithms) != len(r.Counts) || out.Plumbing != r.Plumbing {
		t.Fatal(err, out)
	}
	for i, a := range out.Algorithms {
		if a.Count != r.Counts[i] || a.Own != a.Count.Own() {
			t.Errorf("got %+v, want %+v", a, r.Counts[i])
		}
	}
	if n := strings.Count(records.String(), "\n"); n != 1+len(r.Counts) {
		t.Errorf("%d records", n)
	}
	c := Count{Program: 10, ByHand: 20, Needs: 80, Share: 5}
	if c.Own() != .5 || c.Shared() != .6 || c.Alone() != .9 || c.Reproduced() != "alone" {
		t.Errorf("%v %v %v %s", c.Own(), c.Shared(), c.Alone(), c.Reproduced())
	}
	for want, c := range map[string]Count{"own": {Program: 1, ByHand: 5}, "shared": {Program: 1, ByHand: 4, Share: 1}, "no": {Program: 3, ByHand: 4, Needs: 5}} {
		if got := c.Reproduced(); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
}

// The table in the documents is this one.
func TestDocumentIsFresh(t *testing.T) {
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	var md bytes.Buffer
	if err := r.Markdown(&md); err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../../../docs/PROGRAMS.md")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(string(doc)), " ")
	for line := range strings.Lines(md.String()) {
		if !strings.Contains(words, strings.Join(strings.Fields(line), " ")) {
			t.Errorf("docs/PROGRAMS.md lacks (trbench programs --lines --output md):\n%s", line)
		}
	}
}
