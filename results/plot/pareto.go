package plot

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/trbench/trbench/results"
)

var (
	// frontStyle is the line of the points that no other beats at both figures.
	frontStyle = draw.LineStyle{Color: muted, Width: vg.Points(1.1)}
	// limitStyle is the line of a bound.
	limitStyle = draw.LineStyle{Color: muted, Width: vg.Points(1.1), Dashes: dashes(2, 2)}
)

const paretoName = "pareto"

// paretoFigure shows throughput against tail latency, a panel a group; false where no group has a choice.
func paretoFigure(t *Tuning) (Figure, bool) {
	all := t.apart(func(TuningAxis) bool { return false })
	all = slices.DeleteFunc(all, func(p panelOf) bool { return len(p.points) < 2 })
	if len(all) == 0 {
		return Figure{}, false
	}
	shown, leftOut := few(all)
	f := Figure{Name: paretoName, title: "Output against tail latency"}
	c := t.colouring(all)
	if c.by != "" {
		f.title += ", by " + c.by
	}
	var panels []panel
	columns := columnsOf(len(shown))
	limited := false
	for _, p := range shown {
		one, has := t.paretoPanel(p, c, along(figureWidth(columns), columns))
		limited = limited || has
		panels = append(panels, one)
	}
	f.place(panels, 3.5*vg.Inch)
	for i, name := range c.names {
		f.legend = append(f.legend, sign{name: name, glyph: c.looks[i].point()})
	}
	f.legend = append(f.legend, sign{name: "Pareto front", stroke: frontStyle})
	if limited {
		f.legend = append(f.legend, sign{name: "limit", stroke: limitStyle})
	}
	f.legend = append(f.legend, sign{name: "best", glyph: bestGlyph})
	f.subtitle = sentences(t.subject()+".", "Points: simulated.", t.sought()+".")
	f.notes = notesOf(
		sentences("Up and left is better. The front: no other point has both more output and a lower P99 TPOT.",
			t.onceNote(), axesNote(f.rows, true)),
		leftOut, t.doubt())
	return f, true
}

// colouring gives each point of a figure the look of its policy, or of its value on one axis.
type colouring struct {
	by    string // what tells them apart; "" where nothing does
	names []string
	looks []look
	of    func(*TuningPoint) int // index of names; -1: none
}

// colouring colours by the policy where there are several; else by the first axis on which the points of a group differ
// and that has no more values than there are looks.
func (t *Tuning) colouring(panels []panelOf) colouring {
	var c colouring
	for i, policy := range policies {
		if slices.ContainsFunc(panels, func(p panelOf) bool { return len(p.sorted(policy)) > 0 }) {
			c.names, c.looks = append(c.names, policy), append(c.looks, policyLooks[i])
		}
	}
	if len(c.names) > 1 {
		names := c.names
		c.by = "batching policy"
		c.of = func(p *TuningPoint) int { return slices.Index(names, p.Policy) }
		return c
	}
	for k, a := range t.Axes {
		if len(a.Values) < 2 || len(a.Values) > len(looks) ||
			!slices.ContainsFunc(panels, func(p panelOf) bool { return t.varies(p.group, k) }) {
			continue
		}
		c = colouring{by: a.Key, of: func(p *TuningPoint) int { return slices.Index(a.Values, p.Values[k]) }}
		for i, v := range a.Values {
			l := looks[i]
			if a.Key == "system" {
				l = lookOf(v, a.Values)
			}
			c.names, c.looks = append(c.names, orNone(setting(a.Key, v))), append(c.looks, l)
		}
		return c
	}
	return colouring{names: []string{"point"}, looks: looks[:1], of: func(*TuningPoint) int { return 0 }}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// throughput and tail are what the figure sets against each other.
func (p *TuningPoint) throughput() float64 { return p.Point.OutputTokS.Or(math.NaN()) }
func (p *TuningPoint) tail() float64       { return p.Point.TPOT.Percentile(99).Or(math.NaN()) }

func (t *Tuning) paretoPanel(p panelOf, c colouring, room labels) (out panel, limited bool) {
	out.title = p.title
	g := p.group
	strands := make([]strand, len(c.names))
	var xs, ys []float64
	var points []*TuningPoint
	for i := range strands {
		strands[i].look, strands[i].loose = c.looks[i], true
	}
	for _, i := range p.points {
		q := &g.Points[i]
		k := c.of(q)
		if k < 0 {
			continue
		}
		x, y := q.tail(), q.throughput()
		xs, ys, points = append(xs, x), append(ys, y), append(points, q)
		strands[k].add(x, y, math.NaN(), t.Repeats > 1 && q.Runs < 2)
	}
	out.x, out.y = fittedAxis(tpotP99.label, xs, room), fittedAxis(output.label, ys, upright)
	for _, l := range t.Limits {
		shade := 1
		if l.Op[0] == '>' {
			shade = -1
		}
		line := &level{at: l.Bound, style: limitStyle, word: "limit " + l.Op + " " + tickLabel(l.Bound), shade: shade}
		switch l.Metric {
		case "tpot_p99_ms":
			line.upright = true
		case "output_tok_s":
		default:
			continue
		}
		limited = true
		out.layers = append(out.layers, line)
	}
	out.layers = append(out.layers, front(points))
	for i := len(strands) - 1; i >= 0; i-- {
		if len(strands[i].xs) > 0 {
			out.layers = append(out.layers, &strands[i])
		}
	}
	if g.Best >= 0 && slices.Contains(p.points, g.Best) {
		q := &g.Points[g.Best]
		out.layers = append(out.layers, &ring{q.tail(), q.throughput()})
		out.caption = "best: " + t.settings(g, q)
	} else if g.Best < 0 {
		out.caption = nothingBest
	}
	return out, limited
}

// front is the line through the points that no other beats at both figures: as the tail latency that is allowed grows,
// the output that can be had.
func front(points []*TuningPoint) *path {
	sorted := slices.DeleteFunc(slices.Clone(points), func(p *TuningPoint) bool {
		return math.IsNaN(p.tail()) || math.IsNaN(p.throughput())
	})
	slices.SortStableFunc(sorted, func(a, b *TuningPoint) int {
		return cmp.Or(cmp.Compare(a.tail(), b.tail()), cmp.Compare(b.throughput(), a.throughput()))
	})
	line := &path{style: frontStyle, steps: true, edges: true}
	most := math.Inf(-1)
	for _, p := range sorted {
		if y := p.throughput(); y > most {
			line.xs, line.ys = append(line.xs, p.tail()), append(line.ys, y)
			most = y
		}
	}
	return line
}

// doubt is what is to be said of the percentiles.
func (t *Tuning) doubt() string {
	g := results.Group{}
	for i := range t.Summary.Points {
		g.Points = append(g.Points, &t.Summary.Points[i])
	}
	return sentences(doubt([]results.Group{g})...)
}

// limitsText is the limits in words; "" where there are none.
func (t *Tuning) limitsText() string {
	var parts []string
	for _, l := range t.Limits {
		parts = append(parts, fmt.Sprint(l))
	}
	return joinParts(parts...)
}
