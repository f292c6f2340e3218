package paper

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/table"
)

// Hash names what a report depends on: the published numbers, how ours are come by, whose they are (source; "" is all of
// them), and the seed.
func Hash(seed uint64, source string) string {
	h := sha256.New()
	h.Write(published)
	fmt.Fprintf(h, "%s seed %d, %d tokens a cell\n", source, seed, tokens)
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Summary is the report as summary.json holds it.
func (r *Report) Summary() *results.Summary {
	s := &results.Summary{Run: Hash(r.Seed, r.Source), Clock: "virtual", Seed: r.Seed, Warnings: r.Warnings}
	for i := range r.Sections {
		for _, claim := range r.Sections[i].Claims {
			if !r.Sections[i].cell(claim.ID).Alone {
				s.Claims = append(s.Claims, claim)
			}
		}
	}
	return s
}

// Errors is how far the predictions of a section are off. Fitted cells and those without two numbers are not in it, nor
// are those inside a published range or bound, which would be counted as exact.
type Errors struct {
	Cells         int
	Mean, Largest float64 // of |ours / published - 1|
	Worst         string  // the cell of the largest
}

// Errors sums up a section.
func (c *Compared) Errors() Errors {
	var e Errors
	for _, claim := range c.Claims {
		d, ok := claim.Difference.Get()
		if !ok || claim.Kind != "predicted" || c.cell(claim.ID).within(d) {
			continue
		}
		e.Cells++
		e.Mean += math.Abs(d)
		if math.Abs(d) >= e.Largest {
			e.Largest, e.Worst = math.Abs(d), c.short(claim.ID)
		}
	}
	if e.Cells > 0 {
		e.Mean /= float64(e.Cells)
	}
	return e
}

func (e Errors) String() string {
	switch e.Cells {
	case 0:
		return "no errors: nothing is both predicted and outside what is published"
	case 1:
		return fmt.Sprintf("1 predicted: off by %.1f %%", 100*e.Mean)
	}
	return fmt.Sprintf("%d predicted: mean error %.1f %%, largest %.1f %% (%s)",
		e.Cells, 100*e.Mean, 100*e.Largest, e.Worst)
}

// short is a claim's name within its section.
func (c *Compared) short(id string) string { return strings.TrimPrefix(id, c.Name+"/") }

// row is a claim as the tables show it.
func (c *Compared) row(i int) []string {
	claim, unit := c.Claims[i], c.unit(c.Claims[i].ID)
	published, ours := value(claim.Published, unit), value(claim.Ours, unit)
	if cell := c.cell(claim.ID); cell.Upto != nil {
		published = fmt.Sprintf("%g-%g%s", *cell.Published, *cell.Upto, map[string]string{"times": "x", "%": " %"}[unit])
	}
	differs := "-"
	if d, ok := claim.Difference.Get(); ok {
		if differs = fmt.Sprintf("%+.1f %%", 100*d); strings.TrimLeft(differs, "+-") == "0.0 %" {
			differs = "0.0 %"
		}
	}
	kind := claim.Kind
	if claim.Ours.IsNull() {
		kind = "-"
	}
	status := claim.Status
	if c.cell(claim.ID).Alone {
		status = "-"
	}
	return []string{c.short(claim.ID), published, ours, differs, kind, status}
}

// cell is the cell of a claim of this section.
func (c *Compared) cell(id string) *Cell {
	i := slices.IndexFunc(c.Cells, func(x *Cell) bool { return x.ID == id })
	return c.Cells[i]
}

// within says that a cell is published as a range or a bound, and that a difference of d lies inside.
func (c *Cell) within(d float64) bool { return c.Upto != nil && d == 0 || c.AtLeast && d >= 0 }

func (c *Compared) unit(id string) string { return c.cell(id).Unit }

// value writes a figure with its unit; tok/s, the unit of nearly all, is not repeated.
func value(f results.Float, unit string) string {
	x, ok := f.Get()
	if !ok {
		return "-"
	}
	switch unit {
	case "times":
		return strconv.FormatFloat(x, 'f', 2, 64) + " x"
	case "%":
		return strconv.FormatFloat(x, 'f', 1, 64) + " %"
	case "s":
		return strconv.FormatFloat(x, 'f', 3, 64) + " s"
	case "ms":
		return strconv.FormatFloat(x, 'f', 2, 64) + " ms"
	case "us":
		return strconv.FormatFloat(x, 'f', 0, 64) + " us"
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}

// fitted says what was set, and from what.
func (r *Report) fitted() []string {
	return []string{
		fmt.Sprintf("switch rate p = %.3f, from %s; other algorithms and settings have their own, from their cell at N = 1",
			r.SwitchRate, ablationRate),
		fmt.Sprintf("contention %.2f while both models run on shared GPUs, from %s", r.Contention, contentionCell),
		fmt.Sprintf("without CUDA graphs a step is longer by %.3f ms (router), %.1f ms (large model), %.1f ms (small model), "+
			"from the ablation at N = 1", r.Router, r.LLM, r.SLM),
		fmt.Sprintf("hop between two nodes %.2f ms one way, from %s and %s", r.Hop, oneNodeCell, twoNodesCell),
		fmt.Sprintf("host overhead %.2f ms (small model) and %.2f ms (large model) a step, from the paper's step times of 6.0 "+
			"and 27.9 ms", results.Millis(latency.SmallHost), results.Millis(latency.LargeHost)),
	}
}

// Width is the widest line of the table on a terminal, columns.
const Width = table.Width

var head = []string{"claim", "published", "ours", "differs", "kind", "status"}

// Table writes the report for a terminal: a table a section, in 80 columns.
func (r *Report) Table(w io.Writer) error {
	var b strings.Builder
	b.WriteString("Published numbers and ours. Throughput in tok/s unless a unit stands beside it.\n")
	for _, f := range r.fitted() {
		b.WriteString(table.Paragraph("fitted: ", f))
	}
	for i := range r.Sections {
		c := &r.Sections[i]
		if len(c.Claims) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n%s\n", c.Title)
		line := func(cells []string) {
			fmt.Fprintf(&b, "%-27s%11s%11s%9s  %-9s %s\n", cells[0], cells[1], cells[2], cells[3], cells[4], cells[5])
		}
		line(head)
		for k := range c.Claims {
			line(c.row(k))
		}
		b.WriteString(table.Paragraph("  ", c.Errors().String()))
	}
	if len(r.Warnings) > 0 {
		b.WriteString("\n")
	}
	for _, w := range r.Warnings {
		b.WriteString(table.Paragraph("warning: ", w))
	}
	b.WriteString("\nreproduced: within 10 %, or beyond what is claimed as \"or more\". direction:\nfurther off, on the published side.\n")
	b.WriteString(table.Paragraph("", "The reason for each row is in summary.json (claims) and, with --output md, beside it."))
	_, err := io.WriteString(w, b.String())
	return err
}

// CSV writes one line a claim.
func (r *Report) CSV(w io.Writer) error {
	out := csv.NewWriter(w)
	err := out.Write([]string{"source", "id", "unit", "published", "ours", "difference", "kind", "status", "why"})
	if err != nil {
		return err
	}
	number := func(f results.Float) string {
		x, ok := f.Get()
		if !ok {
			return ""
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	}
	for i := range r.Sections {
		c := &r.Sections[i]
		for _, claim := range c.Claims {
			if err := out.Write([]string{claim.Source, claim.ID, c.unit(claim.ID), number(claim.Published), number(claim.Ours),
				number(claim.Difference), claim.Kind, claim.Status, claim.Why}); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// Markdown writes the report as a document: docs/REPRODUCTION.md is this of seed 1.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `# Published numbers and ours

Written by `+"`trbench run paper --seed %d --output md`"+`; do not edit. The numbers come from two
sources, kept apart: the paper "TokenRouter: Efficient Serving System for Token-Level LLM Routing" (arXiv 2610.12242), and
the article (its release note). Ours are simulated, with kernel times of an A100 and no GPU, or computed by the exact
Markov chain.

A row is **fitted** if its number was used to set the model, else **predicted**. It is **reproduced** if ours is within
10 %%, or beyond what a source claims as this much "or more"; in **direction** if further off but on the published side
(of 1 for a ratio, of 0 for a change, else of the next system); and otherwise **not**. Published cells of one
configuration differ among themselves by up to 7 %%.

Fitted:

`, r.Seed)
	for _, f := range r.fitted() {
		fmt.Fprintf(&b, "- %s\n", f)
	}
	b.WriteString("\n## Overview\n\nErrors are of predicted rows alone.\n\n")
	b.WriteString("| section | rows | reproduced | direction | not | mean error | largest |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|\n")
	for i := range r.Sections {
		c := &r.Sections[i]
		if len(c.Claims) == 0 {
			continue
		}
		count := map[string]int{}
		for k := range c.Claims {
			count[c.row(k)[5]]++
		}
		mean, largest := "-", "-"
		if e := c.Errors(); e.Cells > 0 {
			mean, largest = fmt.Sprintf("%.1f %%", 100*e.Mean), fmt.Sprintf("%.1f %%", 100*e.Largest)
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %s | %s |\n",
			c.Name, len(c.Claims), count["reproduced"], count["direction"], count["not"], mean, largest)
	}
	for i := range r.Sections {
		if len(r.Sections[i].Claims) > 0 {
			b.WriteString("\n" + r.Sections[i].markdown())
		}
	}
	if len(r.Warnings) > 0 {
		b.WriteString("\n## Beyond the tables\n\n")
		b.WriteString("Some contexts of the long workloads exceed what was measured, and are extrapolated; the furthest:\n\n")
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "- %s\n", w)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// markdown is a section of the document.
func (c *Compared) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", c.Title)
	if c.Note != "" {
		fmt.Fprintf(&b, "%s\n\n", strings.TrimSpace(c.Note))
	}
	b.WriteString("| claim | published | ours | differs | kind | status | why |\n|---|--:|--:|--:|---|---|---|\n")
	for k := range c.Claims {
		fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(c.row(k), " | "), c.Claims[k].Why)
	}
	fmt.Fprintf(&b, "\n%s.\n", capital(c.Errors().String()))
	return b.String()
}

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
