package table

import (
	"io"
	"slices"
	"strings"

	"github.com/trbench/trbench/results"
)

// Markdown writes the points and the published figures as tables under headings of level 3, for a report or an issue.
func Markdown(w io.Writer, s *results.Summary) error {
	p := &printer{w: w}
	groups := results.Groups(s.Points)
	for i := range groups {
		p.section(groups[i].Title(), markdownPoints(&groups[i]))
	}
	if len(s.Claims) > 0 {
		p.section("Published figures and ours", markdownClaims(s.Claims))
	}
	for i, warning := range s.Warnings {
		if i == 0 {
			p.text("### Warnings\n\n")
		}
		p.text("- " + warning + "\n")
	}
	return p.err
}

func (p *printer) section(title string, g grid) {
	p.text("### " + title + "\n\n")
	for _, row := range g.rows {
		for i, cell := range row {
			row[i] = strings.NewReplacer("|", `\|`, "\n", " ").Replace(cell)
		}
	}
	if p.err == nil {
		p.err = g.render(p.w, markdown())
	}
	p.gap()
}

func markdownPoints(g *results.Group) grid {
	table := grid{
		head: []string{
			"N", "system", "output tok/s", "TTFT P50 ms", "TTFT P99 ms", "TPOT P50 ms", "TPOT P99 ms", "E2E P50 ms",
			"E2E P99 ms", "large", "failed",
		},
		words: []int{1},
	}
	judged := slices.ContainsFunc(g.Points, func(p *results.Point) bool { return !p.Agreement.IsNull() })
	if judged {
		table.head = append(table.head, "agreement", "NLL, nats a token")
	}
	versus := slices.ContainsFunc(g.Points, func(p *results.Point) bool { return p.System == results.TokenRouter })
	priced := priced(g.Points)
	if priced {
		table.head = append(table.head, "USD a million tokens")
	}
	if versus {
		table.head = append(table.head, "TokenRouter vs it: tok/s", "P99 TPOT")
	}
	for _, p := range g.Points {
		row := []string{
			concurrency(p.Concurrency), p.System, number(p.OutputTokS),
			number(p.TTFT.Percentile(50)), number(p.TTFT.Percentile(99)),
			number(p.TPOT.Percentile(50)), number(p.TPOT.Percentile(99)),
			number(p.E2E.Percentile(50)), number(p.E2E.Percentile(99)),
			share(p.LargeShare), grouped(float64(p.Failed)),
		}
		if judged {
			row = append(row, share(p.Agreement), nats(p.NLL))
		}
		if priced {
			row = append(row, usd(p.CostPerMTok))
		}
		if versus {
			ratio, change := against(g.At(p.Concurrency), p)
			row = append(row, ratio, change)
		}
		table.rows = append(table.rows, row)
	}
	return table
}

func markdownClaims(list []results.Claim) grid {
	table := claims(list)
	table.head = append(table.head, "why")
	table.words = append(table.words, len(table.head)-1)
	for i, c := range list {
		table.rows[i] = append(table.rows[i], c.Why)
	}
	return table
}
