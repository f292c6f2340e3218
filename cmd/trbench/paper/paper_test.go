package paper

import (
	"bytes"
	"context"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trbench/trbench/results"
)

var update = flag.Bool("update", false, "write docs/REPRODUCTION.md anew")

const document = "../../../docs/REPRODUCTION.md"

// run compares the sections that take little: the others cost some ten seconds of one core.
func run(t *testing.T, all bool) *Report {
	t.Helper()
	long := map[string]bool{"orchestration": true, "article": true, "original": true, "llm-only": true, "scaling": true}
	o := Options{Seed: 1, Workers: 2}
	if !all {
		o.Only = func(c *Cell) bool { name, _, _ := strings.Cut(c.ID, "/"); return !long[name] }
	}
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The document is that of the code, row by row, and our errors are within what is asked of a faithful simulator.
func TestDocument(t *testing.T) {
	if *update {
		var b bytes.Buffer
		r := run(t, true)
		reasons(t, r)
		if err := r.Markdown(&b); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(document, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	r := run(t, false)
	computed := 0
	for i := range r.Sections {
		c := &r.Sections[i]
		if !strings.Contains(text, "\n## "+c.Title+"\n") {
			t.Errorf("%s: the section is missing: go test ./cmd/trbench/paper -update", document)
		}
		if len(c.Claims) == 0 {
			continue
		}
		computed++
		if !strings.Contains(text, "\n"+c.markdown()) {
			t.Errorf("%s: section %q is out of date: go test ./cmd/trbench/paper -update", document, c.Title)
		}
	}
	if computed < 6 {
		t.Errorf("%d sections were compared, want 6 at least", computed)
	}
	for _, f := range r.fitted() {
		if !strings.Contains(text, f) {
			t.Errorf("%s does not say %q", document, f)
		}
	}
	bounds := map[string][2]float64{ // mean and largest error, %
		"dtmc": {.1, .1}, "measured": {5, 10}, "ablation": {5, 10}, "parallelism": {8, 8}, "pairs": {12, 12},
		"official": {15, 15},
	}
	for i := range r.Sections {
		c := &r.Sections[i]
		if bound, ok := bounds[c.Name]; ok {
			if e := c.Errors(); 100*e.Mean > bound[0] || 100*e.Largest > bound[1] {
				t.Errorf("%s: %v; want mean <= %g %%, largest <= %g %%", c.Name, e, bound[0], bound[1])
			}
		}
		for _, claim := range c.Claims {
			if d := claim.Difference.Or(0); claim.Kind == "fitted" && math.Abs(d) > .02 {
				t.Errorf("%s is fitted, and %.1f %% off: want 2 %% at most", claim.ID, 100*d)
			}
		}
	}
	ordered(t, r)
	reasons(t, r)
}

// reasons wants a reason beside every number that is not reproduced.
func reasons(t *testing.T, r *Report) {
	for _, s := range r.Sections {
		status := map[string]string{}
		for _, c := range s.Claims {
			status[c.ID] = c.Status
		}
		for _, c := range s.Cells {
			if st := status[c.ID]; st != "" && st != "reproduced" && c.Why == "" {
				t.Errorf("%s: %s, and nothing says why", c.ID, st)
			}
		}
	}
}

// ordered wants the ablation's rows in the published order, at every N where they differ.
func ordered(t *testing.T, r *Report) {
	ours := map[string]results.Float{}
	for _, s := range r.Sections {
		for _, c := range s.Claims {
			ours[c.ID] = c.Ours
		}
	}
	rows := []string{"tokenrouter", "eager", "step-sync", "router-graph", "llm-graph", "slm-graph"}
	for _, n := range []string{"n4", "n8"} {
		for i := 1; i < len(rows); i++ {
			above, below := ours["ablation/"+n+"/"+rows[i-1]].Or(math.NaN()), ours["ablation/"+n+"/"+rows[i]].Or(math.NaN())
			if !(above > below) {
				t.Errorf("ablation %s: %s has %.2f, and %s, which is published below it, %.2f", n, rows[i-1], above, rows[i], below)
			}
		}
	}
}

// The same seed gives the same bytes, whatever the number of workers.
func TestSameBytes(t *testing.T) {
	only := func(c *Cell) bool {
		return strings.HasPrefix(c.ID, "ablation/n4/") || c.Measure == "article/bill"
	}
	var first []byte
	for _, workers := range []int{1, 3} {
		r, err := Run(context.Background(), Options{Seed: 7, Workers: workers, Only: only})
		if err != nil {
			t.Fatal(err)
		}
		data := results.AppendSummary(nil, r.Summary())
		if first == nil {
			first = data
		} else if !bytes.Equal(first, data) {
			t.Errorf("%d workers give other bytes than 1", workers)
		}
	}
}

// The plots are drawn, the same bytes each time, whatever part of the numbers there is.
func TestPlots(t *testing.T) {
	only := func(c *Cell) bool { return c.ID == "ablation/n4/step-sync" || c.Setup.System == "chain" }
	r, err := Run(context.Background(), Options{Seed: 1, Workers: 1, Only: only})
	if err != nil {
		t.Fatal(err)
	}
	var first []byte
	for range 2 {
		dir := t.TempDir()
		files, err := r.Save(dir, "svg", "png")
		if err != nil {
			t.Fatal(err)
		}
		var all []byte
		for _, f := range files {
			data, err := os.ReadFile(filepath.Join(dir, f))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, data...)
		}
		if len(files) != 4 || first != nil && !bytes.Equal(first, all) {
			t.Errorf("%d files, want 4 with the same bytes each time", len(files))
		}
		first = all
	}
}

func TestTableFits(t *testing.T) {
	only := func(c *Cell) bool { return c.None || c.Setup.System == "chain" }
	r, err := Run(context.Background(), Options{Seed: 1, Workers: 1, Only: only})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > Width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestJudge(t *testing.T) {
	f := func(x float64) *float64 { return &x }
	for _, c := range []struct {
		cell   Cell
		ours   float64
		status string
	}{
		{Cell{Published: f(100)}, 110, "reproduced"},
		{Cell{Published: f(100)}, 111, "not"},
		{Cell{Published: f(8), Chance: true}, 4, "direction"},
		{Cell{Published: f(8), Chance: true}, .9, "not"},
		{Cell{Published: f(-40), Unit: "%", AtLeast: true}, -60, "reproduced"},
		{Cell{Published: f(-40), Unit: "%", AtLeast: true}, -20, "direction"},
		{Cell{Published: f(-40), Unit: "%", AtLeast: true}, 20, "not"},
		{Cell{Published: f(50), Upto: f(70)}, 60, "reproduced"},
		{Cell{Published: f(50), Upto: f(70)}, 80, "not"},
	} {
		got := judge(&c.cell, &figure{value: results.F(c.ours)}, nil, nil)
		if got.Status != c.status {
			t.Errorf("%g beside %g: %s, want %s", c.ours, *c.cell.Published, got.Status, c.status)
		}
	}
	cell := Cell{Published: f(100)}
	lower := Cell{Published: f(50)}
	got := judge(&cell, &figure{value: results.F(150)}, &lower, &figure{value: results.F(60)})
	if got.Status != "direction" {
		t.Errorf("above the cell that it is published above: %s, want direction", got.Status)
	}
}

func TestLoadErrors(t *testing.T) {
	for text, want := range map[string]string{
		"sections: [{name: a, cells: [{id: x, colour: red}]}]":                  "unknown field",
		"sections: [{name: a, cells: [{id: x, source: blog}]}]":                 `a/x: source "blog"`,
		"sections: [{name: a, cells: [{id: x, none: true}]}]":                   "why says nothing",
		"sections: [{name: a, cells: [{id: x}, {id: x}]}]":                      "is there twice",
		"sections: [{name: a, cells: [{id: x, than: a/y}]}]":                    `no cell "a/y"`,
		"sections: [{name: a, cells: [{id: x, upto: 3}]}]":                      "upper end",
		"sections: [{name: a, cells: [{id: x, kind: guessed, published: 1}]}]":  `kind "guessed"`,
		"sections: [{name: a, cells: [{id: x, published: 1, setup: {p: [1]}}]}": "published.yaml",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
