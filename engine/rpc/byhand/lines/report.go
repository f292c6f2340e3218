package lines

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Report is the counts of all algorithms, with what they come to.
type Report struct {
	Counts   []Count
	Plumbing int // lines that the code by hand shares
}

// New counts.
func New() (*Report, error) {
	counts, err := Counts()
	if err != nil {
		return nil, err
	}
	plumbing, err := Plumbing()
	return &Report{Counts: counts, Plumbing: plumbing}, err
}

// Spread is the least, the median and the largest saving over the algorithms.
type Spread struct {
	Least  float64 `json:"least"`
	Median float64 `json:"median"`
	Most   float64 `json:"most"`
}

// Spread is that of a saving: Count.Own, Count.Shared or Count.Alone.
func (r *Report) Spread(of func(Count) float64) Spread {
	var x []float64
	for _, c := range r.Counts {
		x = append(x, of(c))
	}
	slices.Sort(x)
	n := len(x)
	return Spread{x[0], (x[(n-1)/2] + x[n/2]) / 2, x[n-1]}
}

// reach is how many algorithms reach the article's saving.
func (r *Report) reach(of func(Count) float64) int {
	n := 0
	for _, c := range r.Counts {
		if of(c) >= Article {
			n++
		}
	}
	return n
}

var heads = []string{
	"algorithm", "Go program", "Starlark", "by hand, own", "plumbing needed", "saved: own", "plumbing shared", "alone", "80 % less?",
}

func (r *Report) rows() [][]string {
	var rows [][]string
	for _, c := range r.Counts {
		rows = append(rows, []string{
			c.Algorithm, strconv.Itoa(c.Program), strconv.Itoa(c.Starlark), strconv.Itoa(c.ByHand), strconv.Itoa(c.Needs),
			percent(c.Own()), percent(c.Shared()), percent(c.Alone()), c.verdict(),
		})
	}
	return rows
}

// verdict says in words whether the article's saving is reproduced.
func (c Count) verdict() string {
	switch c.Reproduced() {
	case "own":
		return "yes"
	case "shared":
		return "with shared plumbing"
	case "alone":
		return "only alone"
	}
	return "no"
}

func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// notes say what was counted and what comes out.
func (r *Report) notes() []string {
	own, shared, alone := r.Spread(Count.Own), r.Spread(Count.Shared), r.Spread(Count.Alone)
	star := r.Spread(Count.OwnStarlark)
	n := len(r.Counts)
	return []string{
		"Counted: lines with code on them in whole declarations; no blank lines, comments, package clauses or imports. " +
			"Go program: package route. By hand, own: the algorithm's file in engine/rpc/byhand, the same rule over HTTP. " +
			"Both are Go; tests show that they write the same tokens.",
		fmt.Sprintf("Plumbing: %d lines that all of the code by hand shares (calls, retries, streams, log-probabilities, a "+
			"request's state, the service); plumbing needed: those that the algorithm reaches, and the service. "+
			"Registration and defaults are counted on neither side, nor are model servers and engine.", r.Plumbing),
		fmt.Sprintf("Saved by a Go program, least / median / most: own code alone %s / %s / %s; with 1/%d of the plumbing %s / %s / %s; "+
			"where it is the only algorithm, with all that it needs, %s / %s / %s.", percent(own.Least), percent(own.Median),
			percent(own.Most), n, percent(shared.Least), percent(shared.Median), percent(shared.Most), percent(alone.Least),
			percent(alone.Median), percent(alone.Most)),
		fmt.Sprintf("A Starlark file saves %s / %s / %s on their own code, but against Go, whose errors take lines.",
			percent(star.Least), percent(star.Median), percent(star.Most)),
		fmt.Sprintf("The article's \"80 %% fewer lines\" (it does not say of what): reached by %d of %d algorithms on their own code, by "+
			"%d with shared plumbing, by %d alone.", r.reach(Count.Own), n, r.reach(Count.Shared), r.reach(Count.Alone)),
	}
}

// JSON writes one document.
func (r *Report) JSON(w io.Writer) error {
	type row struct {
		Count
		Own        float64 `json:"saving_own"`
		Shared     float64 `json:"saving_shared"`
		Alone      float64 `json:"saving_alone"`
		Reproduced string  `json:"article_reproduced"`
	}
	var rows []row
	for _, c := range r.Counts {
		rows = append(rows, row{c, c.Own(), c.Shared(), c.Alone(), c.Reproduced()})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Article    float64 `json:"article_saving"`
		Plumbing   int     `json:"plumbing_lines"`
		Own        Spread  `json:"saving_own"`
		Shared     Spread  `json:"saving_shared"`
		Alone      Spread  `json:"saving_alone"`
		Starlark   Spread  `json:"saving_own_starlark"`
		Algorithms []row   `json:"algorithms"`
	}{Article, r.Plumbing, r.Spread(Count.Own), r.Spread(Count.Shared), r.Spread(Count.Alone), r.Spread(Count.OwnStarlark), rows})
}

// CSV writes one line an algorithm, savings unrounded.
func (r *Report) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	exact := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	rows := [][]string{{
		"algorithm", "program_lines", "starlark_lines", "by_hand_lines", "plumbing_needed_lines", "plumbing_share_lines",
		"saving_own", "saving_shared", "saving_alone", "article_reproduced",
	}}
	for _, c := range r.Counts {
		rows = append(rows, []string{
			c.Algorithm, strconv.Itoa(c.Program), strconv.Itoa(c.Starlark), strconv.Itoa(c.ByHand), strconv.Itoa(c.Needs),
			exact(c.Share), exact(c.Own()), exact(c.Shared()), exact(c.Alone()), c.Reproduced(),
		})
	}
	return out.WriteAll(rows)
}

// Markdown writes a table and what was counted.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(heads)
	fmt.Fprintf(&b, "|---|%s---|\n", strings.Repeat("---:|", len(heads)-2))
	for _, row := range r.rows() {
		line(row)
	}
	b.WriteByte('\n')
	for _, n := range r.notes() {
		fmt.Fprintf(&b, "- %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Table writes the same for a terminal of width columns.
func (r *Report) Table(w io.Writer, width int) error {
	var b strings.Builder
	first := []string{"", "Go", "", "by", "plumbing", "saved,", "plumbing", "", ""}
	second := []string{"algorithm", "program", "Starlark", "hand", "needed", "own", "shared", "alone", "80 % less?"}
	for _, row := range append([][]string{first, second}, r.rows()...) {
		var line strings.Builder
		fmt.Fprintf(&line, "%-14s", row[0])
		for i, width := range []int{7, 8, 4, 8, 6, 8, 5} {
			fmt.Fprintf(&line, " %*s", width, row[i+1])
		}
		fmt.Fprintf(&line, "  %s", row[len(row)-1])
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	for _, n := range r.notes() {
		b.WriteByte('\n')
		used := 0
		for _, word := range strings.Fields(n) {
			switch {
			case used > 0 && used+1+len(word) > width:
				b.WriteByte('\n')
				used = 0
			case used > 0:
				b.WriteByte(' ')
				used++
			}
			b.WriteString(word)
			used += len(word)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}
