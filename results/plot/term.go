package plot

import (
	"fmt"
	"io"
	"math"
	"slices"
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

// termRows bounds the bars of a group.
const termRows = 16

// TuningTerm draws the objective's metric as bars of text, a block a group, in lines of at most 80 columns; a star
// marks the best point. Of a group with several policies it shows that of the best point, and of many points the better
// ones.
func TuningTerm(w io.Writer, t *Tuning) error {
	var b strings.Builder
	for i := range t.Groups {
		g := &t.Groups[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s\n", cut(g.Title+": "+metricLabel(t.Metric), termWidth))
		shown := t.termPoints(g)
		most, name := 0., 0
		for _, k := range shown {
			p := &g.Points[k]
			most, name = max(most, p.Value.Or(0)), max(name, utf8.RuneCountInString(t.settings(g, p)))
		}
		name = min(name, termWidth-termBar-20)
		for _, k := range shown {
			p := &g.Points[k]
			star, text := ' ', "-"
			if k == g.Best {
				star = '*'
			}
			if v, ok := p.Value.Get(); ok {
				text = valueLabel(v)
			}
			setting := cut(printable(t.settings(g, p)), name)
			fmt.Fprintf(&b, "%c %-*s %s %s\n", star, name, setting, textBar(p.Value.Or(0), most), text)
		}
		if more := len(g.Points) - len(shown); more > 0 {
			fmt.Fprintf(&b, "  and %d more\n", more)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// termPoints picks the points of a group that have a bar, in the order of the sweep.
func (t *Tuning) termPoints(g *TuningGroup) []int {
	var shown []int
	for i := range g.Points {
		if p := &g.Points[i]; g.Best < 0 || p.eager() || p.Policy == g.Points[g.Best].Policy {
			shown = append(shown, i)
		}
	}
	slices.SortStableFunc(shown, func(a, b int) int {
		switch p, q := &g.Points[a], &g.Points[b]; {
		case t.better(p, q):
			return -1
		case t.better(q, p):
			return 1
		}
		return 0
	})
	shown = shown[:min(len(shown), termRows)]
	slices.Sort(shown)
	return shown
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
