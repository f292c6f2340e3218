package plot

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/trbench/trbench/results"
)

// knobFigure shows the objective's metric and the tail latency against the one other number that was swept, a line a
// concurrency and a panel a value of what else was; false where there is no such number. Where there is a choice at one
// place, it shows the best.
func knobFigure(t *Tuning) (Figure, bool) {
	delay, concurrency, others := t.numeric()
	if len(others) != 1 || concurrency >= 0 && len(t.Axes[concurrency].Values) > len(looks) {
		return Figure{}, false
	}
	k := knob{t: t, x: others[0], line: concurrency, eager: delay >= 0 && t.hasEager()}
	panels := k.panels()
	if len(panels) == 0 {
		return Figure{}, false
	}
	shown := panels[:min(len(panels), headlineGroups)]
	key := t.Axes[k.x].Key
	second := tpotP99.label
	if t.Metric == "tpot_p99_ms" {
		second = output.label
	}
	f := Figure{
		Name:  "sweep-" + slug(key),
		title: fmt.Sprintf("%s and %s against %s", capital(metricName(t.Metric)), tailName(second), key),
		width: figureWidth(len(shown)), height: 5.6 * vg.Inch,
	}
	for row, label := range []string{metricLabel(t.Metric), second} {
		var drawn []panel
		var xs, ys []float64
		for _, p := range shown {
			one, x, y := k.panel(p, row == 1)
			drawn, xs, ys = append(drawn, one), append(xs, x...), append(ys, y...)
		}
		for i := range drawn {
			p := &drawn[i]
			p.x, p.y = valueAxis("", xs, along(f.width, len(drawn))), valueAxis(label, ys, upright)
			if row == 0 {
				p.title = shown[i].title
			} else {
				p.x.label = key
			}
			if i > 0 {
				p.y.label = ""
			}
		}
		f.rows = append(f.rows, drawn)
	}
	if k.line >= 0 {
		for i, v := range t.Axes[k.line].Values {
			l := looks[i]
			stroke := draw.LineStyle{Color: l.color, Width: vg.Points(1.4)}
			f.legend = append(f.legend, sign{"N = " + v, stroke, l.point()})
		}
	}
	if k.eager {
		f.legend = append(f.legend,
			sign{name: "best delay", stroke: draw.LineStyle{Color: ink, Width: vg.Points(1.4)}},
			sign{name: "eager", stroke: eagerStyle(look{color: ink})})
	}
	f.named = f.legend == nil
	f.subtitle = sentences(t.subject()+".", t.simulated())
	var more string
	if len(panels) > len(shown) {
		more = fmt.Sprintf("The first %d of %d panels.", len(shown), len(panels))
	}
	best := ""
	if k.many {
		best = "At each value of " + key + ": the best point. " + t.sought() + "."
	}
	f.notes = notesOf(sentences(best, t.doubt()), more)
	return f, true
}

func tailName(label string) string {
	if label == output.label {
		return "output"
	}
	return "P99 TPOT"
}

// knob picks what a figure of one number shows.
type knob struct {
	t       *Tuning
	x, line int  // axes; line is -1 where there is one line
	eager   bool // show the eager points too
	many    bool // there is a choice at some place
}

// knobPanel is one panel: one value of each axis that is neither x nor line.
type knobPanel struct {
	title string
	key   []string
	lines [][]*TuningPoint // by value of the line's axis: the best point at each x
	eager [][]*TuningPoint // the eager ones
}

func (k *knob) panels() []*knobPanel {
	var panels []*knobPanel
	for i := range k.t.Groups {
		g := &k.t.Groups[i]
		for j := range g.Points {
			k.add(&panels, &g.Points[j])
		}
	}
	return panels
}

// add puts a point into its panel and line.
func (k *knob) add(panels *[]*knobPanel, q *TuningPoint) {
	var key, title []string
	for a, axis := range k.t.Axes {
		if a != k.x && a != k.line && !axis.Delay && len(axis.Values) > 1 {
			key, title = append(key, q.Values[a]), append(title, setting(axis.Key, q.Values[a]))
		}
	}
	at := slices.IndexFunc(*panels, func(p *knobPanel) bool { return slices.Equal(p.key, key) })
	if at < 0 {
		lines := 1
		if k.line >= 0 {
			lines = len(k.t.Axes[k.line].Values)
		}
		at = len(*panels)
		*panels = append(*panels, &knobPanel{
			title: joinParts(title...), key: key,
			lines: make([][]*TuningPoint, lines), eager: make([][]*TuningPoint, lines),
		})
	}
	n := 0
	if k.line >= 0 {
		if n = slices.Index(k.t.Axes[k.line].Values, q.Values[k.line]); n < 0 {
			return
		}
	}
	p := (*panels)[at]
	if k.eager && q.eager() {
		p.eager[n] = append(p.eager[n], q)
	}
	line := &p.lines[n]
	same := slices.IndexFunc(*line, func(o *TuningPoint) bool { return o.Values[k.x] == q.Values[k.x] })
	switch {
	case same < 0:
		*line = append(*line, q)
	case k.t.better(q, (*line)[same]):
		(*line)[same], k.many = q, true
	default:
		k.many = true
	}
}

// panel draws one metric: the objective's, or the second.
func (k *knob) panel(p *knobPanel, second bool) (out panel, xs, ys []float64) {
	for n := len(p.lines) - 1; n >= 0; n-- {
		s := k.strand(p.lines[n], looks[n], second)
		if len(s.xs) == 0 {
			continue
		}
		xs, ys = append(xs, s.xs...), append(ys, s.ys...)
		for i, half := range s.halves {
			ys = append(ys, s.ys[i]+half)
		}
		if e := k.strand(p.eager[n], looks[n], second); len(e.xs) > 0 {
			out.layers = append(out.layers, &path{xs: e.xs, ys: e.ys, style: eagerStyle(looks[n])})
			ys = append(ys, e.ys...)
		}
		out.layers = append(out.layers, s)
	}
	return out, xs, ys
}

// eagerStyle is the line of eager points beside a line of best ones.
func eagerStyle(l look) draw.LineStyle {
	return draw.LineStyle{Color: l.color, Width: vg.Points(1.1), Dashes: dashes(2, 2)}
}

// strand is one metric of points, by their x.
func (k *knob) strand(points []*TuningPoint, l look, second bool) *strand {
	s := &strand{look: l}
	at := func(q *TuningPoint) float64 {
		x, err := strconv.ParseFloat(q.Values[k.x], 64)
		if err != nil {
			return math.NaN()
		}
		return x
	}
	points = slices.Clone(points)
	slices.SortStableFunc(points, func(a, b *TuningPoint) int { return cmp.Compare(at(a), at(b)) })
	for _, q := range points {
		v, half := q.Value, q.CI95
		if second {
			half = results.Float{}
			if v = q.Point.TPOT.Percentile(99); k.t.Metric == "tpot_p99_ms" {
				v = q.Point.OutputTokS
			}
		}
		s.add(at(q), v.Or(math.NaN()), half.Or(math.NaN()), false)
	}
	return s
}
