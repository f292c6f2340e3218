package paper

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/trbench/trbench/results"
)

var update = flag.Bool("update", false, "write docs/REPRODUCTION.md anew")

const document = "../../../docs/REPRODUCTION.md"

// whole is every section, computed once; -short leaves out those that take longest.
var whole = sync.OnceValues(func() (*Report, error) {
	long := map[string]bool{"orchestration": true, "combinations": true, "article": true, "original": true}
	o := Options{Seed: 1, Workers: 2}
	if testing.Short() && !*update {
		o.Only = func(c *Cell) bool { name, _, _ := strings.Cut(c.ID, "/"); return !long[name] }
	}
	return Run(context.Background(), o)
})

func wholeReport(t *testing.T) *Report {
	t.Helper()
	r, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The document is that of the code, row by row.
func TestDocument(t *testing.T) {
	r := wholeReport(t)
	reasons(t, r)
	if *update {
		var b bytes.Buffer
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
	if computed < 10 {
		t.Errorf("%d sections were compared, want 10 at least", computed)
	}
	for _, f := range r.fitted() {
		if !strings.Contains(text, f) {
			t.Errorf("%s does not say %q", document, f)
		}
	}
}

// Our errors are within what is asked of a faithful simulator.
func TestBars(t *testing.T) {
	r := wholeReport(t)
	for _, bar := range []struct {
		rows          string  // the claims whose id begins so
		mean, largest float64 // error of the predicted ones, %
	}{
		{"dtmc/", .1, .1}, {"measured/", 5, 10}, {"ablation/", 5, 10}, {"parallelism/", 8, 8}, {"pairs/", 12, 12},
		{"official/", 15, 15}, {"llm-only/", 12, 12}, {"gpus/r2r/", 5, 5}, {"gpus/co-llm/", 10, 10}, {"gpus/citer/", 17, 17},
	} {
		var some Compared
		for _, s := range r.Sections {
			some.Cells = append(some.Cells, s.Cells...)
			for _, c := range s.Claims {
				if strings.HasPrefix(c.ID, bar.rows) {
					some.Claims = append(some.Claims, c)
				}
			}
		}
		if e := some.Errors(); e.Cells == 0 || 100*e.Mean > bar.mean || 100*e.Largest > bar.largest {
			t.Errorf("%s: %v; want mean <= %g %%, largest <= %g %%", bar.rows, e, bar.mean, bar.largest)
		}
	}
	for _, s := range r.Sections {
		for _, c := range s.Claims {
			d := c.Difference.Or(0)
			if c.Kind == "fitted" && s.cell(c.ID).Metric == "" && math.Abs(d) > .03 { // rates are solved without prefills, which weigh in short outputs
				t.Errorf("%s is fitted, and %.1f %% off: want 3 %% at most", c.ID, 100*d)
			}
			if x := c.Ours.Or(0); c.ID == "scaling/n16-over-n1" && (x < 7.5 || x > 10) {
				t.Errorf("%s: %.2f, want 7.5 to 10", c.ID, x)
			}
		}
	}
	ordered(t, r)
}

// A prediction does not rest on its own number, and what is fitted says so: the cells that set a row's parameters are known
// (Setup.from), and the row is fitted if it is one of them, or the same number printed twice.
func TestFittedIsNotPredicted(t *testing.T) {
	sections, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	cells := map[string]*Cell{}
	for _, s := range sections {
		for _, c := range s.Cells {
			cells[c.ID] = c
		}
	}
	fitted := 0
	for _, c := range cells {
		if c.Measure != "" || c.None || c.Published == nil || c.Over != nil {
			continue
		}
		own := false
		for _, id := range c.Setup.from() {
			from := cells[id]
			same := math.Abs(*from.Published/(*c.Published)-1) < 1e-3 && from.Setup.N == c.Setup.N
			own = own || id == c.ID || same && c.Metric == ""
		}
		own = own || c.Metric == "latency" && c.Setup.N == 1 // which gives the output length
		if own != (c.Kind == "fitted") {
			t.Errorf("%s is %s; parameters from %v", c.ID, c.Kind, c.Setup.from())
		}
		if own {
			fitted++
		}
	}
	if fitted < 10 {
		t.Errorf("%d fitted rows, want 10 at least: p, contention and the overheads alone make so many", fitted)
	}

	number := 100.
	c := Compared{Section: Section{Name: "x"}}
	for i, kind := range []string{"fitted", "predicted", "predicted", "predicted"} {
		cell := &Cell{ID: fmt.Sprint("x/", i), Kind: kind, Published: &number}
		if i == 2 {
			upto := 200.
			cell.Upto = &upto
		}
		cell.AtLeast = i == 3
		c.Cells = append(c.Cells, cell)
		c.Claims = append(c.Claims, judge(cell, &figure{value: results.F(130)}, nil, nil))
	}
	if e := c.Errors(); e.Cells != 1 || e.Worst != "1" {
		t.Errorf("errors over a fitted row, a predicted one and a range: %+v, want those of the one that is predicted and has one number", e)
	}
}

// reasons wants a reason beside every number that is not reproduced.
func reasons(t *testing.T, r *Report) {
	for _, s := range r.Sections {
		status := map[string]string{}
		for _, c := range s.Claims {
			status[c.ID] = c.Status
		}
		for _, c := range s.Cells {
			if st := status[c.ID]; st != "" && st != "reproduced" && !c.Alone && c.Why == "" {
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
