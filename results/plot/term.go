package plot

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/trbench/trbench/results"
)

// termWidth is the widest line of Term, in columns; termBar the widest bar.
const (
	termWidth = 80
	termBar   = 40
)

// Term draws the output of every point as bars of text, a block a group and concurrency, in lines of at most 80
// columns.
func Term(w io.Writer, s *results.Summary) error {
	var b strings.Builder
	groups := results.Groups(s.Points)
	name := 0
	for _, system := range results.Systems(s.Points) {
		name = max(name, utf8.RuneCountInString(system))
	}
	name = min(name, termWidth-termBar-20)
	most := 0.0
	for i := range s.Points {
		most = max(most, s.Points[i].OutputTokS.Or(0))
	}
	for i := range groups {
		g := &groups[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s: output, tok/s\n", g.Title())
		for _, n := range g.Concurrencies() {
			if n > 0 {
				fmt.Fprintf(&b, "%d at a time\n", n)
			}
			for _, p := range g.At(n) {
				value, ok := p.OutputTokS.Get()
				text := "-"
				if ok {
					text = valueLabel(value)
				}
				fmt.Fprintf(&b, "  %-*s %s %s\n", name, cut(p.System, name), textBar(value, most), text)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// cut shortens a name to so many letters.
func cut(s string, letters int) string {
	if utf8.RuneCountInString(s) <= letters {
		return s
	}
	return string([]rune(s)[:letters-1]) + "~"
}

// textBar is a bar of blocks, an eighth of a column exact.
func textBar(value, most float64) string {
	if !(value > 0) || most <= 0 {
		return ""
	}
	eighths := max(int(math.Round(value/most*termBar*8)), 1)
	bar := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		bar += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return bar
}
