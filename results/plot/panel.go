package plot

import (
	"math"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// curve is one system's line in a panel, in data units.
type curve struct {
	system string
	xs, ys []float64
	labels []string // beside the points; nil for none
	steps  bool     // a distribution: level up to the next value, and no glyphs
}

// bar is one system's bar in a panel.
type bar struct {
	system string
	value  float64 // NaN where there is none
}

// panel is one plot of a figure: curves, bars or layers, never two of them.
type panel struct {
	title   string
	caption string // below the title, in smaller letters
	x, y    axis
	curves  []curve
	bars    []bar
	named   bool    // bars have their system's name beside them
	layers  []layer // the first at the bottom
	blank   bool    // nothing: a place in the last row that no panel takes
}

// values are the y values of all curves, or the values of all bars.
func (p *panel) values() []float64 {
	var all []float64
	for _, c := range p.curves {
		all = append(all, c.ys...)
	}
	for _, b := range p.bars {
		all = append(all, b.value)
	}
	return all
}

// plot builds gonum's plot of the panel, and says how many points had no place in it.
func (p *panel) plot(systems []string) (*plot.Plot, int) {
	g := plot.New()
	g.BackgroundColor = nil
	var title []string
	for line := range strings.Lines(p.title) {
		title = append(title, printable(strings.TrimSuffix(line, "\n")))
	}
	g.Title.Text = strings.Join(title, "\n")
	g.Title.TextStyle = words(11, ink, xfont.WeightBold)
	g.Title.TextStyle.XAlign, g.Title.TextStyle.YAlign = draw.XCenter, draw.YTop
	g.Title.Padding = vg.Points(5)
	if p.layers != nil && p.title != "" {
		g.Title.Text = " " // its place; the heading is drawn over the middle of the data
		if p.caption != "" {
			g.Title.Padding += leading(captionStyle)
		}
		g.Add(&heading{printable(p.title), printable(p.caption), g.Title.TextStyle})
	}
	dress(&g.X, p.x, draw.XCenter, draw.YTop)
	dress(&g.Y, p.y, draw.XRight, draw.YCenter)

	lines := draw.LineStyle{Color: faint, Width: vg.Points(0.6)}
	grid := &plotter.Grid{Vertical: lines, Horizontal: lines}
	left := 0
	switch {
	case len(p.bars) > 0:
		grid.Horizontal = draw.LineStyle{}
		g.Y.Tick.Length = 0
		g.Add(grid)
		left = p.addBars(g, systems)
	case len(p.layers) > 0:
		left = p.addLayers(g, grid)
	default:
		g.Add(grid)
		left = p.addCurves(g, systems)
	}
	// Add widens the range to the data; the axis knows better.
	g.X.Min, g.X.Max, g.Y.Min, g.Y.Max = p.x.min, p.x.max, p.y.min, p.y.max
	return g, left
}

// heading is a panel's title, and a caption below it.
type heading struct {
	title, caption string
	style          draw.TextStyle
}

var captionStyle = words(9.5, ink, xfont.WeightNormal)

// Plot implements plot.Plotter.
func (h *heading) Plot(c draw.Canvas, _ *plot.Plot) {
	at := vg.Point{X: (c.Min.X + c.Max.X) / 2, Y: c.Max.Y + vg.Points(6)}
	write := func(style draw.TextStyle, text string) {
		style.XAlign, style.YAlign = draw.XCenter, draw.YBottom
		for style.Width(text) > c.Max.X-c.Min.X+panelGapX && style.Font.Size > vg.Points(6) {
			style.Font.Size -= vg.Points(0.5)
		}
		c.FillText(style, at, text)
		at.Y += leading(style)
	}
	if h.caption != "" {
		write(captionStyle, h.caption)
	}
	write(h.style, h.title)
}

// dress gives one of gonum's axes our style.
func dress(g *plot.Axis, a axis, x draw.XAlignment, y draw.YAlignment) {
	if a.label != "" {
		g.Label.Text = a.label + a.scale.note()
	}
	g.Label.TextStyle = words(10, muted, xfont.WeightNormal)
	g.Label.TextStyle.XAlign = draw.XCenter
	g.Label.Padding = vg.Points(3)
	g.LineStyle = draw.LineStyle{Color: rule, Width: vg.Points(0.8)}
	g.Tick.LineStyle = g.LineStyle
	g.Tick.Length = vg.Points(3)
	g.Tick.Label = words(9.5, ink, xfont.WeightNormal)
	g.Tick.Label.XAlign, g.Tick.Label.YAlign = x, y
	g.Tick.Marker = a.ticks
	g.Padding = 0
}

// addCurves adds the curves, the first system on top.
func (p *panel) addCurves(g *plot.Plot, systems []string) (left int) {
	for i := len(p.curves) - 1; i >= 0; i-- {
		c := p.curves[i]
		var points plotter.XYs
		var labels []string
		for j := range c.xs {
			x, okX := p.x.scale.place(c.xs[j])
			y, okY := p.y.scale.place(c.ys[j])
			if !okX || !okY {
				left++
				continue
			}
			points = append(points, plotter.XY{X: x, Y: y})
			if c.labels != nil {
				labels = append(labels, c.labels[j])
			}
		}
		if len(points) == 0 {
			continue
		}
		l := lookOf(c.system, systems)
		width := vg.Points(1.6)
		if i == 0 {
			width = vg.Points(2.4)
		}
		line := &plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: l.color, Width: width}}
		if c.steps {
			line.StepStyle, line.Dashes = plotter.PostStep, l.dashes
			g.Add(line)
			continue
		}
		g.Add(line, &plotter.Scatter{XYs: points, GlyphStyle: l.point()})
		if labels != nil {
			g.Add(tags(points, labels, l))
		}
	}
	return left
}

// tags writes a label to the upper right of each point.
func tags(points plotter.XYs, labels []string, l look) plot.Plotter {
	t := &plotter.Labels{XYs: points, Labels: labels, Offset: vg.Point{X: vg.Points(4), Y: vg.Points(3)}}
	for range labels {
		t.TextStyle = append(t.TextStyle, words(8, l.color, xfont.WeightNormal))
	}
	return t
}

// addBars adds horizontal bars, the first system at the top, each with its value.
func (p *panel) addBars(g *plot.Plot, systems []string) (left int) {
	for i, b := range p.bars {
		if math.IsNaN(b.value) || math.IsInf(b.value, 0) {
			left++
			continue
		}
		g.Add(&barPlotter{at: float64(len(p.bars) - 1 - i), value: b.value, color: lookOf(b.system, systems)})
	}
	return left
}

// barAxes sets the axes of a panel of bars: values along x, from 0, with room for the figures; systems along y.
func (p *panel) barAxes(label string, most float64, room labels) {
	p.x = linearAxis(label, max(most, 1e-9), room)
	p.x.max = max(p.x.max, most*1.22) // room for the figure at the end of the longest bar
	p.y = axis{min: -0.6, max: float64(len(p.bars)) - 0.4}
	for i, b := range p.bars {
		t := plot.Tick{Value: float64(len(p.bars) - 1 - i)}
		if p.named {
			t.Label = printable(b.system)
		}
		p.y.ticks = append(p.y.ticks, t)
	}
}

// barPlotter draws one bar and the figure at its end.
type barPlotter struct {
	at    float64 // its place on the y axis
	value float64
	color look
}

// Plot implements plot.Plotter.
func (b *barPlotter) Plot(c draw.Canvas, g *plot.Plot) {
	x, y := g.Transforms(&c)
	half := (y(1) - y(0)) * 0.34
	mid, from, to := y(b.at), x(0), x(b.value)
	fill(&c, b.color.color, vg.Point{X: from, Y: mid - half}, vg.Point{X: to, Y: mid - half},
		vg.Point{X: to, Y: mid + half}, vg.Point{X: from, Y: mid + half})
	style := words(9, ink, xfont.WeightNormal)
	style.YAlign = draw.YCenter
	c.FillText(style, vg.Point{X: to + vg.Points(3), Y: mid}, valueLabel(b.value))
}
