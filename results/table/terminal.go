package table

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trbench/trbench/results"
)

// Width is the widest line that Summary writes, in columns, as long as names are not longer than usual: a system of 17
// letters, a claim of 32.
const Width = 80

// Options choose what Summary writes.
type Options struct {
	TablesOnly bool // no heading, no legend, no warnings
}

// Summary writes the tables that a person reads after a run: a table a group, a block of rows a concurrency, a row a
// system. The last column says what TokenRouter does to that system's figures. After an error of w it writes no more.
func Summary(w io.Writer, s *results.Summary, o Options) error {
	p := &printer{w: w}
	if head := heading(s); head != "" && !o.TablesOnly {
		p.paragraph("", head)
		p.gap()
	}
	groups := results.Groups(s.Points)
	for i := range groups {
		p.paragraph("", groups[i].Title())
		p.grid(headline(&groups[i]))
		for _, point := range groups[i].Points {
			if point.Failed > 0 {
				p.paragraph(" *  ", failures(point))
			}
			if x, ok := point.GoodputReqS.Get(); ok {
				p.paragraph(" *  ", goodput(point, x))
			}
		}
		if text := quality(&groups[i]); text != "" {
			p.paragraph(" *  ", text)
		}
		p.gap()
		if t, ok := switches(&groups[i]); ok {
			p.paragraph("", switchText)
			p.grid(t)
			p.gap()
		}
	}
	if len(groups) > 0 && !o.TablesOnly {
		p.paragraph("", legend(s.Points))
		p.gap()
	}
	if len(s.Claims) > 0 {
		p.paragraph("", "Published figures and ours")
		p.grid(claims(s.Claims))
		p.gap()
	}
	if !o.TablesOnly {
		for _, warning := range s.Warnings {
			p.paragraph("warning: ", warning)
		}
	}
	return p.err
}

// printer writes lines until the first error.
type printer struct {
	w       io.Writer
	pending bool // a blank line is due before the next text
	err     error
}

func (p *printer) text(s string) {
	if p.pending {
		s, p.pending = "\n"+s, false
	}
	if p.err == nil {
		_, p.err = io.WriteString(p.w, s)
	}
}

// gap leaves a blank line before what follows, if anything does.
func (p *printer) gap() { p.pending = true }

func (p *printer) grid(g grid) {
	p.text("")
	if p.err == nil {
		p.err = g.render(p.w, plain())
	}
}

func (p *printer) paragraph(lead, words string) { p.text(Paragraph(lead, words)) }

// Paragraph is words behind lead, broken at Width, the lines after the first indented below lead; it ends in a newline.
func Paragraph(lead, words string) string {
	var b strings.Builder
	line, empty := lead, true
	for word := range strings.FieldsSeq(words) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > Width {
			b.WriteString(line + "\n")
			line, empty = strings.Repeat(" ", utf8.RuneCountInString(lead)), true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	return b.String() + line + "\n"
}

// heading says where the figures come from, before all tables.
func heading(s *results.Summary) string {
	if len(s.Points) == 0 {
		return ""
	}
	var parts []string
	if origin := results.Origin(s.Points); origin != "" {
		parts = append(parts, origin)
	}
	n := s.Points[0].Requests
	if !slices.ContainsFunc(s.Points, func(p results.Point) bool { return p.Requests != n }) {
		parts = append(parts, fmt.Sprintf("%s requests a point", grouped(float64(n))))
	}
	return strings.Join(append(parts, fmt.Sprintf("seed %d", s.Seed)), ", ")
}

// legend explains the columns that are there.
func legend(points []results.Point) string {
	text := "N: requests at a time. TTFT: scheduled arrival to first token. TPOT: time of an output token after the " +
		"first. P99: 99 % of requests are at or below."
	if slices.ContainsFunc(points, func(p results.Point) bool { return !p.CostPerMTok.IsNull() }) {
		text += " USD/Mtok: price of a million output tokens."
	}
	if slices.Contains(results.Systems(points), results.TokenRouter) {
		text += " Last column: TokenRouter's tok/s as a multiple of this system's, and its P99 TPOT against this " +
			"system's: -40 % is 40 % less."
	}
	return text
}

// headline is the table of one group.
func headline(g *results.Group) grid {
	versus := slices.ContainsFunc(g.Points, func(p *results.Point) bool { return p.System == results.TokenRouter })
	table := grid{
		head:  []string{"N", "system", "output\ntok/s", "TTFT\nP50 ms", "TTFT\nP99 ms", "TPOT\nP99 ms"},
		words: []int{1},
	}
	priced := priced(g.Points)
	last, width := "TokenRouter vs it\ntok/s   P99 TPOT", 10
	if priced { // one column more, and all of them in Width
		table.head = append(table.head, "USD/\nMtok")
		last, width = "TokenRouter/it\ntok/s P99 TPOT", 8
	}
	if versus {
		table.head = append(table.head, last)
	}
	for i, n := range g.Concurrencies() {
		if i > 0 {
			table.rows = append(table.rows, nil)
		}
		points := g.At(n)
		for j, p := range points {
			row := []string{
				"", systemName(p), number(p.OutputTokS),
				number(p.TTFT.Percentile(50)), number(p.TTFT.Percentile(99)), number(p.TPOT.Percentile(99)),
			}
			if j == 0 {
				row[0] = concurrency(n)
			}
			if priced {
				row = append(row, usd(p.CostPerMTok))
			}
			if versus {
				ratio, change := against(points, p)
				row = append(row, fmt.Sprintf("%s %*s", ratio, width, change))
			}
			table.rows = append(table.rows, row)
		}
	}
	return table
}

// systemName marks a point in which requests failed.
func systemName(p *results.Point) string {
	if p.Failed > 0 {
		return p.System + "*"
	}
	return p.System
}

// quality is the footnote of a group that knows how good its output is: agreement and NLL of each system, by concurrency
// where that matters.
func quality(g *results.Group) string {
	var systems []string
	said := map[string][]string{} // by system, a text a concurrency
	for _, p := range g.Points {
		var figures []string
		if !p.Agreement.IsNull() {
			figures = append(figures, share(p.Agreement))
		}
		if !p.NLL.IsNull() {
			figures = append(figures, nats(p.NLL)+" nats")
		}
		if figures == nil {
			continue
		}
		if said[p.System] == nil {
			systems = append(systems, p.System)
		}
		text := strings.Join(figures, ", ")
		if p.Concurrency > 0 {
			text += fmt.Sprintf(" at N = %d", p.Concurrency)
		}
		said[p.System] = append(said[p.System], text)
	}
	var parts []string
	for _, system := range systems {
		texts := said[system]
		figures, _, _ := strings.Cut(texts[0], " at ")
		if !slices.ContainsFunc(texts, func(t string) bool { return !strings.HasPrefix(t, figures+" at ") }) {
			texts = []string{figures}
		}
		parts = append(parts, system+" "+strings.Join(texts, ", "))
	}
	if parts == nil {
		return ""
	}
	return "Agreement with the large model, and NLL of the reference a token: " + strings.Join(parts, "; ") + "."
}

// failures is the footnote of a point in which requests failed.
func failures(p *results.Point) string {
	where := p.System
	if p.Concurrency > 0 {
		where += fmt.Sprintf(" at N = %d", p.Concurrency)
	}
	return fmt.Sprintf("%s: %s of %s requests failed; the figures are those of the others.",
		where, grouped(float64(p.Failed)), grouped(float64(p.Requests)))
}

// goodput is the footnote of a point with SLOs.
func goodput(p *results.Point, perSecond float64) string {
	where := p.System
	if p.Concurrency > 0 {
		where += fmt.Sprintf(" at N = %d", p.Concurrency)
	}
	return fmt.Sprintf("%s: %.3g requests a second meet every SLO, %.1f %% of them.", where, perSecond, 100*p.SLOAttainment.Or(0))
}

// against is what TokenRouter at the same concurrency does to p's output and P99 TPOT; empty for TokenRouter itself.
func against(points []*results.Point, p *results.Point) (ratio, change string) {
	if p.System == results.TokenRouter {
		return "", ""
	}
	c := results.Comparison{}
	if i := slices.IndexFunc(points, func(o *results.Point) bool { return o.System == results.TokenRouter }); i >= 0 {
		c = results.Compare(points[i], p)
	}
	return times(c.ThroughputRatio), percent(c.TPOTP99Change)
}

// claims is the table of published figures.
func claims(list []results.Claim) grid {
	table := grid{head: []string{"claim", "published", "ours", "differs", "kind", "status"}, words: []int{0, 4, 5}}
	for _, c := range list {
		table.rows = append(table.rows, []string{
			c.Source + " " + c.ID, hundredths(c.Published), hundredths(c.Ours), percent(c.Difference), c.Kind, c.Status,
		})
	}
	return table
}

// priced says that some point has a cost.
func priced(points []*results.Point) bool {
	return slices.ContainsFunc(points, func(p *results.Point) bool { return !p.CostPerMTok.IsNull() })
}
