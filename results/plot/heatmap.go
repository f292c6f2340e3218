package plot

import (
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/trbench/trbench/results"
)

// heatmapFigure shows the objective's metric as colour over two swept numbers; false where there are not two. Requests
// at a time are one of the two where there is no other, else each has a panel. Over thresholds and what is given it
// shows the gain over eager: the metric itself differs far more between what is given.
func heatmapFigure(t *Tuning) (Figure, bool) {
	x, y, ok := t.mapAxes()
	if !ok {
		return Figure{}, false
	}
	m := heatmap{t: t, x: x, y: y, gain: t.Axes[x].Delay && t.given(y) && t.hasEager()}
	panels := m.panels()
	if len(panels) == 0 {
		return Figure{}, false
	}
	shown := panels[:min(len(panels), maxPanels)]
	name, label := metricName(t.Metric), metricLabel(t.Metric)
	if m.gain {
		name, label = "change of "+name+" against eager", "change of "+name+", %"
	}
	f := Figure{Name: "heatmap", title: fmt.Sprintf("%s over %s and %s", capital(name), t.Axes[x].Key, t.Axes[y].Key)}
	var values []float64
	for _, p := range shown {
		for _, row := range p.cells.values {
			values = append(values, row...)
		}
	}
	s := shadesOf(values, m.gain, t.Minimise)
	f.bar = &colorBar{s, label}
	columns := columnsOf(len(shown))
	width := figureWidth(columns)
	if len(t.Axes[x].Values) > 10 {
		width = figureWidth(2)
	}
	var drawn []panel
	for _, p := range shown {
		p.cells.shades = s
		drawn = append(drawn, panel{
			title: p.title, layers: []layer{p.cells},
			x: categoryAxis(t.Axes[x].Key, t.Axes[x].Values, along(width-f.bar.room(), columns)),
			y: categoryAxis(t.Axes[y].Key, t.Axes[y].Values, 2*upright),
		})
	}
	f.place(drawn, heatHeight(len(t.Axes[y].Values)))
	f.width = width
	f.legend = []sign{{name: "best", glyph: draw.GlyphStyle{Color: ink, Radius: vg.Points(5), Shape: frameGlyph{}}}}
	f.subtitle = sentences(t.subject()+".", "Simulated.", t.sought()+".")
	f.notes = m.notes(len(shown), len(panels))
	return f, true
}

// mapAxes picks the two axes of a map: x has the delay, or more values.
func (t *Tuning) mapAxes() (x, y int, ok bool) {
	delay, concurrency, others := t.numeric()
	switch {
	case len(others) == 2:
		x, y = others[0], others[1]
	case len(others) == 1 && delay >= 0:
		return delay, others[0], true
	case len(others) == 1 && concurrency >= 0:
		x, y = others[0], concurrency
	case len(others) == 0 && delay >= 0 && concurrency >= 0:
		return delay, concurrency, true
	default:
		return 0, 0, false
	}
	if len(t.Axes[y].Values) > len(t.Axes[x].Values) {
		x, y = y, x
	}
	return x, y, true
}

// hasEager says that every point has an eager one beside it to be compared with.
func (t *Tuning) hasEager() bool {
	for i := range t.Groups {
		g := &t.Groups[i]
		eagers := t.eagers(g)
		for j := range g.Points {
			if e := eagers[t.rest(&g.Points[j])]; e == nil || e.Value.Or(0) == 0 {
				return false
			}
		}
	}
	return true
}

func heatHeight(rows int) vg.Length {
	return vg.Length(min(max(1.1+0.42*float64(rows), 2.6), 5)) * vg.Inch
}

// heatmap is what fills the cells of a map.
type heatmap struct {
	t       *Tuning
	x, y    int // axes
	gain    bool
	many    bool // some cells are the best of several points
	holes   bool // some cells have no point
	compete bool // some cells compete with each other
}

// heatPanel is one map: one value of each other axis.
type heatPanel struct {
	title string
	key   []string
	cells *cells
	tops  []*TuningPoint // by cell: the point that it shows
	eager []*TuningPoint // the one beside it that delays nothing; nil if none
	group []*TuningGroup // and its group
}

// panels fills the maps. A cell with several points shows the best of them; over thresholds, those alone are shown.
func (m *heatmap) panels() []*heatPanel {
	t := m.t
	columns, rows := len(t.Axes[m.x].Values), len(t.Axes[m.y].Values)
	var panels []*heatPanel
	for i := range t.Groups {
		g := &t.Groups[i]
		eagers := t.eagers(g)
		for j := range g.Points {
			q := &g.Points[j]
			if t.Axes[m.x].Delay && q.Policy != policies[0] {
				continue
			}
			column := slices.Index(t.Axes[m.x].Values, q.Values[m.x])
			row := slices.Index(t.Axes[m.y].Values, q.Values[m.y])
			if column < 0 || row < 0 {
				continue
			}
			at := row*columns + column
			p := m.panelFor(&panels, q, rows*columns)
			if p.tops[at] != nil {
				m.many = true
			}
			if p.tops[at] == nil || t.better(q, p.tops[at]) {
				p.tops[at], p.eager[at], p.group[at] = q, eagers[t.rest(q)], g
			}
		}
	}
	for _, p := range panels {
		p.cells = &cells{signed: m.gain, broken: make([]bool, rows*columns), best: m.best(p)}
		for r := range rows {
			row := make([]float64, columns)
			for c := range row {
				row[c] = math.NaN()
				at := r*columns + c
				if q := p.tops[at]; q != nil {
					row[c] = m.value(q, p.eager[at])
					p.cells.broken[at] = !q.Meets
				}
				m.holes = m.holes || math.IsNaN(row[c])
			}
			p.cells.values = append(p.cells.values, row)
		}
	}
	return panels
}

// panelFor finds or makes the map that a point stands in.
func (m *heatmap) panelFor(panels *[]*heatPanel, q *TuningPoint, n int) *heatPanel {
	var key, title []string
	for k, a := range m.t.Axes {
		if k == m.x || k == m.y || a.Delay || len(a.Values) < 2 {
			continue
		}
		key, title = append(key, q.Values[k]), append(title, setting(a.Key, q.Values[k]))
	}
	for _, p := range *panels {
		if slices.Equal(p.key, key) {
			return p
		}
	}
	p := &heatPanel{
		title: joinParts(title...), key: key,
		tops: make([]*TuningPoint, n), eager: make([]*TuningPoint, n), group: make([]*TuningGroup, n),
	}
	*panels = append(*panels, p)
	return p
}

// value is what a cell shows of a point.
func (m *heatmap) value(q, eager *TuningPoint) float64 {
	if m.gain {
		return 100 * results.Change(q.Value, eager.Value).Or(math.NaN())
	}
	return q.Value.Or(math.NaN())
}

// best lists the cells to mark: where cells compete, the best of each group; else the best of all.
func (m *heatmap) best(p *heatPanel) []int {
	var order []*TuningGroup
	cellsOf := map[*TuningGroup][]int{}
	for at, g := range p.group {
		if g == nil {
			continue
		}
		if cellsOf[g] == nil {
			order = append(order, g)
		}
		cellsOf[g] = append(cellsOf[g], at)
	}
	top := func(list []int) []int {
		best := -1
		for _, at := range list {
			if q := p.tops[at]; q.Meets && !q.Value.IsNull() && (best < 0 || m.t.better(q, p.tops[best])) {
				best = at
			}
		}
		if best < 0 {
			return nil
		}
		return []int{best}
	}
	var marked, all []int
	compete := false
	for _, g := range order {
		compete = compete || len(cellsOf[g]) > 1
		marked, all = append(marked, top(cellsOf[g])...), append(all, cellsOf[g]...)
	}
	if compete {
		m.compete = true
		return marked
	}
	return top(all)
}

func (m *heatmap) notes(shown, all int) []string {
	var notes []string
	t := m.t
	if m.gain {
		notes = append(notes, "Blue is better than eager, orange worse.")
	}
	if t.Axes[m.x].Delay && m.policies() > 1 {
		notes = append(notes, "Thresholds only: the figure delay shows the other policies.")
	}
	for _, k := range []int{m.x, m.y} {
		if m.compete && t.given(k) {
			notes = append(notes, fmt.Sprintf("There is a best for each %s.", t.Axes[k].Key))
		}
	}
	if m.many {
		notes = append(notes, "A cell with several points shows the best of them.")
	}
	if m.holes {
		notes = append(notes, "Blank: no such point.")
	}
	if len(t.Limits) > 0 {
		notes = append(notes, "Crossed out: does not keep to "+t.limitsText()+".")
	}
	text := []string{sentences(notes...)}
	if all > shown {
		text = append(text, fmt.Sprintf("The first %d of %d maps.", shown, all))
	}
	return notesOf(text...)
}

// policies counts the policies that were set side by side.
func (m *heatmap) policies() int {
	var found []string
	for i := range m.t.Groups {
		for j := range m.t.Groups[i].Points {
			if p := m.t.Groups[i].Points[j].Policy; p != "" && !slices.Contains(found, p) {
				found = append(found, p)
			}
		}
	}
	return len(found)
}

// cells is a map: a colour a value, on two category axes.
type cells struct {
	values [][]float64 // by row, from below; NaN: no point
	broken []bool      // by cell, row after row: does not keep to the limits
	best   []int       // cells to frame
	shades shades
	signed bool // of a change
}

func (m *cells) on(g *plot.Plot, _, _ axis) (left int) {
	g.X.LineStyle.Width, g.Y.LineStyle.Width = 0, 0
	g.X.Tick.LineStyle.Width, g.Y.Tick.LineStyle.Width = 0, 0 // their length keeps the labels off the cells
	g.Add(m)
	return 0 // a cell without a value stays empty
}

// Plot implements plot.Plotter.
func (m *cells) Plot(c draw.Canvas, g *plot.Plot) {
	x, y := g.Transforms(&c)
	columns := len(m.values[0])
	edges := func(at int) (left, bottom, right, top vg.Length) {
		col, row := float64(at%columns), float64(at/columns)
		return x(col - 0.5), y(row - 0.5), x(col + 0.5), y(row + 0.5)
	}
	style := m.style(x(1)-x(0), y(1)-y(0))
	for r, row := range m.values {
		for k, v := range row {
			at := r*columns + k
			left, bottom, right, top := edges(at)
			col, ok := m.shades.of(v)
			if !ok {
				continue
			}
			box(&c, col.color(), left, bottom, right, top)
			if m.broken[at] {
				c.StrokeLine2(draw.LineStyle{Color: col.onto(), Width: vg.Points(0.7)}, left, bottom, right, top)
			}
		}
	}
	// White between the cells, over their edges.
	for k := 1; k < columns; k++ {
		c.StrokeLine2(seam, x(float64(k)-0.5), c.Min.Y, x(float64(k)-0.5), c.Max.Y)
	}
	for r := 1; r < len(m.values); r++ {
		c.StrokeLine2(seam, c.Min.X, y(float64(r)-0.5), c.Max.X, y(float64(r)-0.5))
	}
	if style.Font.Size > 0 {
		for r, row := range m.values {
			for k, v := range row {
				if col, ok := m.shades.of(v); ok {
					style.Color = col.onto()
					c.FillText(style, vg.Point{X: x(float64(k)), Y: y(float64(r))}, m.word(v))
				}
			}
		}
	}
	for _, at := range m.best {
		left, bottom, right, top := edges(at)
		frame(&c, ink, 2, left, bottom, right, top)
		frame(&c, paper, 1, left+2, bottom+2, right-2, top-2)
	}
}

var seam = draw.LineStyle{Color: paper, Width: vg.Points(0.8)}

// style is that of the words in cells of this size; of size 0 where they don't fit.
func (m *cells) style(width, height vg.Length) draw.TextStyle {
	for _, size := range []float64{9, 8, 7, 6.5} {
		style := words(size, ink, xfont.WeightNormal)
		style.XAlign, style.YAlign = draw.XCenter, draw.YCenter
		widest := vg.Length(0)
		for _, row := range m.values {
			for _, v := range row {
				if _, ok := m.shades.of(v); ok {
					widest = max(widest, style.Width(m.word(v)))
				}
			}
		}
		if widest+9 <= width && style.Font.Size+9 <= height {
			return style
		}
	}
	return draw.TextStyle{}
}

// word writes a value into its cell.
func (m *cells) word(v float64) string {
	if m.signed {
		if math.Abs(v) < 0.05 {
			return "0"
		}
		return fmt.Sprintf("%+.1f", v)
	}
	if math.Abs(v) >= 1e5 || v != 0 && math.Abs(v) < 0.01 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return valueLabel(v)
}

// frame draws a rectangle's edge inside it.
func frame(c *draw.Canvas, col color.Color, thick, left, bottom, right, top vg.Length) {
	box(c, col, left, bottom, right, bottom+thick)
	box(c, col, left, top-thick, right, top)
	box(c, col, left, bottom+thick, left+thick, top-thick)
	box(c, col, right-thick, bottom+thick, right, top-thick)
}

// frameGlyph is a square's outline.
type frameGlyph struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (frameGlyph) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	frame(c, s.Color, 2, at.X-s.Radius*1.5, at.Y-s.Radius, at.X+s.Radius*1.5, at.Y+s.Radius)
}
