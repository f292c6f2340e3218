package fidelity

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/table"
)

// Width is the widest line of Table, columns, as long as names are not longer than usual.
const Width = table.Width

var heads = [...]string{"mean", "P50", "P90", "P95", "P99"}

// pairs are a distribution's figures, by heads.
func (d *Dist) pairs() [len(heads)]Pair {
	return [...]Pair{d.MeanPair(), d.Percentile(50), d.Percentile(90), d.Percentile(95), d.Percentile(99)}
}

// Table writes the report for a terminal: real, predicted and error of each figure, then what each mechanism buys.
func (r *Report) Table(w io.Writer) error {
	var b strings.Builder
	for i := range r.Runs {
		if i > 0 {
			b.WriteByte('\n')
		}
		r.Runs[i].table(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Run) table(b *strings.Builder) {
	fmt.Fprintf(b, "%s: %d requests\n", r.Name, r.Requests)
	b.WriteString(table.Paragraph("  real:      ", r.Real))
	b.WriteString(table.Paragraph("  predicted: ", r.Predicted))
	line := func(what, side string, cell func(i int) string) {
		fmt.Fprintf(b, "%-13s%-10s", what, side)
		for i := range heads {
			fmt.Fprintf(b, "%11s", cell(i))
		}
		b.WriteByte('\n')
	}
	line("", "", func(i int) string { return heads[i] })
	for _, m := range r.metrics() {
		p := m.dist.pairs()
		line(m.name, "real", func(i int) string { return number(p[i].Real) })
		line("", "predicted", func(i int) string { return number(p[i].Predicted) })
		line("", "error", func(i int) string { return percent(p[i].Error()) })
	}
	tok := r.OutputTokS
	fmt.Fprintf(b, "%-13s%-10s%11s\n%13s%-10s%11s\n%13s%-10s%11s\n", "output tok/s", "real", number(tok.Real), "", "predicted",
		number(tok.Predicted), "", "error", percent(tok.Error()))
	fmt.Fprintf(b, "%-13smean |error| of a request: TPOT %s, E2E %s\n", "per request", share(r.TPOTMAPE), share(r.E2EMAPE))
	if len(r.Ablations) > 0 {
		b.WriteString("\nError with one mechanism off, %:\n")
		r.ablations(b)
	}
	for _, warning := range r.Warnings {
		b.WriteString(table.Paragraph("warning: ", warning))
	}
}

// ablationHeads are the columns of the table of mechanisms, and ablationRow their cells: signed errors in percent, and
// the mean error of a request without sign.
var ablationHeads = [...]string{
	"TPOT mean", "P99", "TTFT mean", "P99", "E2E mean", "P99", "tok/s", "TPOT MAPE",
}

func (f *Figures) ablationRow() [len(ablationHeads)]string {
	bare := func(e results.Float) string { return strings.TrimSuffix(percent(e), " %") }
	return [...]string{
		bare(f.TPOT.MeanPair().Error()), bare(f.TPOT.Percentile(99).Error()),
		bare(f.TTFT.MeanPair().Error()), bare(f.TTFT.Percentile(99).Error()),
		bare(f.E2E.MeanPair().Error()), bare(f.E2E.Percentile(99).Error()),
		bare(f.OutputTokS.Error()), strings.TrimSuffix(share(f.TPOTMAPE), " %"),
	}
}

func (r *Run) ablations(b *strings.Builder) {
	widths := [len(ablationHeads)]int{6, 7, 7, 7, 7, 7, 7, 7}
	row := func(name string, cells [len(ablationHeads)]string) {
		fmt.Fprintf(b, "%-24s", name)
		for i, c := range cells {
			fmt.Fprintf(b, "%*s", widths[i], c)
		}
		b.WriteByte('\n')
	}
	row("", [...]string{"TPOT", "TPOT", "TTFT", "TTFT", "E2E", "E2E", "tok/s", "TPOT"})
	row("without", [...]string{"mean", "P99", "mean", "P99", "mean", "P99", "", "MAPE"})
	row("(nothing: all on)", r.ablationRow())
	for i := range r.Ablations {
		row(r.Ablations[i].Without, r.Ablations[i].ablationRow())
	}
}

// Markdown writes the report as tables under headings of level 3.
func (r *Report) Markdown(w io.Writer) error {
	var b strings.Builder
	for i := range r.Runs {
		if i > 0 {
			b.WriteByte('\n')
		}
		r.Runs[i].markdown(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Run) markdown(b *strings.Builder) {
	fmt.Fprintf(b, "### %s\n\n%d requests. Real: %s. Predicted: %s.\n\n", r.Name, r.Requests, r.Real, r.Predicted)
	b.WriteString("| | | mean | P50 | P90 | P95 | P99 |\n|---|---|--:|--:|--:|--:|--:|\n")
	for _, m := range r.metrics() {
		name := m.name
		for _, side := range []struct {
			name string
			cell func(Pair) string
		}{
			{"real", func(p Pair) string { return number(p.Real) }},
			{"predicted", func(p Pair) string { return number(p.Predicted) }},
			{"error", func(p Pair) string { return percent(p.Error()) }},
		} {
			fmt.Fprintf(b, "| %s | %s |", name, side.name)
			for _, p := range m.dist.pairs() {
				fmt.Fprintf(b, " %s |", side.cell(p))
			}
			b.WriteByte('\n')
			name = ""
		}
	}
	tok := r.OutputTokS
	fmt.Fprintf(b, "\nOutput tok/s: %s real, %s predicted, error %s. Mean error of a request without sign: TPOT %s, E2E %s.\n",
		number(tok.Real), number(tok.Predicted), percent(tok.Error()), share(r.TPOTMAPE), share(r.E2EMAPE))
	if len(r.Ablations) > 0 {
		b.WriteString("\nError with one mechanism off, %:\n\n| without |")
		for _, h := range ablationHeads {
			fmt.Fprintf(b, " %s |", h)
		}
		b.WriteString("\n|---|" + strings.Repeat("--:|", len(ablationHeads)) + "\n")
		row := func(name string, f *Figures) {
			fmt.Fprintf(b, "| %s |", name)
			for _, c := range f.ablationRow() {
				fmt.Fprintf(b, " %s |", c)
			}
			b.WriteByte('\n')
		}
		row("(nothing: all on)", &r.Figures)
		for i := range r.Ablations {
			row(r.Ablations[i].Without, &r.Ablations[i].Figures)
		}
	}
	for i, warning := range r.Warnings {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "- warning: %s\n", warning)
	}
}

// number writes a figure with two decimals, fewer where it is large.
func number(f results.Float) string {
	x, ok := f.Get()
	if !ok {
		return "-"
	}
	digits := 2
	if math.Abs(x) >= 999.95 {
		digits = 1
	}
	return strconv.FormatFloat(x, 'f', digits, 64)
}

// percent writes a fraction as a signed change: +3.1 %, -0.4 %.
func percent(f results.Float) string {
	x, ok := f.Get()
	if !ok {
		return "-"
	}
	if s := fmt.Sprintf("%+.1f %%", 100*x); s != "-0.0 %" {
		return s
	}
	return "+0.0 %"
}

// share writes a fraction without a sign.
func share(f results.Float) string {
	x, ok := f.Get()
	if !ok {
		return "-"
	}
	return strconv.FormatFloat(100*x, 'f', 1, 64) + " %"
}
