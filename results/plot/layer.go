package plot

import (
	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// layer is something that a panel draws on its axes, in data units.
type layer interface {
	// on adds the layer to g, whose axes stand for x and y, and says how many values have no place there.
	on(g *plot.Plot, x, y axis) (left int)
}

// addLayers adds the layers over the grid, or a grid of their own.
func (p *panel) addLayers(g *plot.Plot, grid plot.Plotter) (left int) {
	if _, ok := p.layers[0].(*cells); !ok {
		g.Add(grid)
	}
	for _, l := range p.layers {
		left += l.on(g, p.x, p.y)
	}
	return left
}

// strand is values under one policy or setting, with what is known of their noise.
type strand struct {
	look   look
	xs, ys []float64
	halves []float64 // half-widths of their 95 % intervals; NaN where there is none
	once   []bool    // ran once: drawn hollow
	loose  bool      // no line joins them
}

func (s *strand) on(g *plot.Plot, x, y axis) (left int) {
	var points plotter.XYs
	var bars [][2]float64
	var once []bool
	for i := range s.xs {
		px, okX := x.scale.place(s.xs[i])
		py, okY := y.scale.place(s.ys[i])
		if !okX || !okY {
			left++
			continue
		}
		points = append(points, plotter.XY{X: px, Y: py})
		once = append(once, s.once[i])
		bar := [2]float64{py, py}
		if half := s.halves[i]; half > 0 {
			bar[0], bar[1] = y.clip(s.ys[i]-half), y.clip(s.ys[i]+half)
		}
		bars = append(bars, bar)
	}
	if len(points) == 0 {
		return left
	}
	if !s.loose {
		g.Add(&plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: s.look.color, Width: vg.Points(1.4)}})
	}
	g.Add(&strandPlotter{s.look, points, bars, once})
	return left
}

// clip places a value, or the end of the axis that it lies beyond.
func (a axis) clip(v float64) float64 {
	at, ok := a.scale.place(v)
	if !ok {
		return a.min
	}
	return min(max(at, a.min), a.max)
}

// strandPlotter draws the intervals and glyphs of a strand.
type strandPlotter struct {
	look   look
	points plotter.XYs
	bars   [][2]float64
	once   []bool
}

// Plot implements plot.Plotter.
func (s *strandPlotter) Plot(c draw.Canvas, g *plot.Plot) {
	x, y := g.Transforms(&c)
	const half = vg.Length(2.4) // of a cap
	stroke := draw.LineStyle{Color: faded(s.look.color), Width: vg.Points(1)}
	for i, p := range s.points {
		if at, from, to := x(p.X), y(s.bars[i][0]), y(s.bars[i][1]); to > from {
			c.StrokeLine2(stroke, at, from, at, to)
			c.StrokeLine2(stroke, at-half, from, at+half, from)
			c.StrokeLine2(stroke, at-half, to, at+half, to)
		}
	}
	for i, p := range s.points {
		at := vg.Point{X: x(p.X), Y: y(p.Y)}
		glyph := s.look.point()
		glyph.Radius = vg.Points(2.9)
		c.DrawGlyphNoClip(glyph, at)
		if s.once[i] {
			c.DrawGlyphNoClip(hollow(glyph), at)
		}
	}
}

// hollow is what turns a glyph into its outline, drawn over it.
func hollow(glyph draw.GlyphStyle) draw.GlyphStyle {
	glyph.Color, glyph.Radius = paper, glyph.Radius*0.58
	return glyph
}

// path is a line without glyphs: what is computed, not simulated.
type path struct {
	xs, ys []float64
	style  draw.LineStyle
	steps  bool // level up to the next value
	edges  bool // from the bottom of the panel, and on to its right edge
}

func (p *path) on(g *plot.Plot, x, y axis) (left int) {
	var points plotter.XYs
	for i := range p.xs {
		px, okX := x.scale.place(p.xs[i])
		py, okY := y.scale.place(p.ys[i])
		if !okX || !okY {
			left++
			continue
		}
		points = append(points, plotter.XY{X: px, Y: py})
	}
	if len(points) > 0 {
		if p.edges {
			first, last := points[0], points[len(points)-1]
			points = append(plotter.XYs{{X: first.X, Y: y.min}}, points...)
			points = append(points, plotter.XY{X: x.max, Y: last.Y})
		}
		line := &plotter.Line{XYs: points, LineStyle: p.style}
		if p.steps {
			line.StepStyle = plotter.PostStep
		}
		g.Add(line)
	}
	return left
}

// level is one value on one axis, drawn as a thin line across the panel, with a word beside it. What lies on the wrong
// side of a limit is shaded.
type level struct {
	at      float64
	upright bool // a value on the x axis
	style   draw.LineStyle
	word    string
	shade   int // +1: more is wrong, -1: less is, 0: neither
}

func (l *level) on(g *plot.Plot, x, y axis) (left int) {
	a := y
	if l.upright {
		a = x
	}
	at, ok := a.scale.place(l.at)
	if !ok {
		return 1
	}
	g.Add(&levelPlotter{level: l, at: at, beyond: beyond(at, a)})
	return 0
}

// beyond says on which side of the axis a place lies: -1, 0 (on it) or +1.
func beyond(at float64, a axis) int {
	switch {
	case at < a.min:
		return -1
	case at > a.max:
		return 1
	}
	return 0
}

type levelPlotter struct {
	*level
	at     float64
	beyond int
}

// Plot implements plot.Plotter.
func (l *levelPlotter) Plot(c draw.Canvas, g *plot.Plot) {
	x, y := g.Transforms(&c)
	place, low, high := y(l.at), c.Min.Y, c.Max.Y
	if l.upright {
		place, low, high = x(l.at), c.Min.X, c.Max.X
	}
	place = min(max(place, low), high)
	if wrong := [2]vg.Length{place, high}; l.shade != 0 {
		if l.shade < 0 {
			wrong = [2]vg.Length{low, place}
		}
		if wrong[1] > wrong[0] {
			if l.upright {
				box(&c, shadow, wrong[0], c.Min.Y, wrong[1], c.Max.Y)
			} else {
				box(&c, shadow, c.Min.X, wrong[0], c.Max.X, wrong[1])
			}
		}
	}
	if l.beyond == 0 {
		if l.upright {
			c.StrokeLine2(l.style, place, c.Min.Y, place, c.Max.Y)
		} else {
			c.StrokeLine2(l.style, c.Min.X, place, c.Max.X, place)
		}
	}
	if l.word == "" {
		return
	}
	style := words(8, muted, xfont.WeightNormal)
	text := l.word
	switch {
	case l.beyond == 0:
	case !l.upright:
		text += [...]string{" ↓", "", " ↑"}[l.beyond+1]
	case l.beyond < 0:
		text = "← " + text
	default:
		text += " →"
	}
	width := style.Width(text)
	at := vg.Point{X: c.Max.X - width - 2, Y: place + 2}
	if l.upright {
		at = vg.Point{X: place + 3, Y: c.Min.Y + 3}
		if at.X+width > c.Max.X {
			at.X = place - 3 - width
		}
	} else if at.Y+style.Font.Size > c.Max.Y {
		at.Y = place - style.Font.Size - 1
	}
	tag(&c, style, at, text)
}

// ring marks the best point.
type ring struct{ x, y float64 }

func (r *ring) on(g *plot.Plot, x, y axis) (left int) {
	px, okX := x.scale.place(r.x)
	py, okY := y.scale.place(r.y)
	if okX && okY {
		g.Add(&ringPlotter{px, py})
	}
	return 0 // its strand has counted it
}

type ringPlotter struct{ x, y float64 }

// bestGlyph is that of the best point.
var bestGlyph = draw.GlyphStyle{Color: ink, Radius: vg.Points(6.2), Shape: circleGlyph{}}

// Plot implements plot.Plotter.
func (r *ringPlotter) Plot(c draw.Canvas, g *plot.Plot) {
	x, y := g.Transforms(&c)
	c.DrawGlyphNoClip(bestGlyph, vg.Point{X: x(r.x), Y: y(r.y)})
}

// tag writes a word over whatever lies below.
func tag(c *draw.Canvas, style draw.TextStyle, at vg.Point, word string) {
	width, height := style.Width(word), style.Font.Size
	box(c, veil, at.X-1.5, at.Y-1, at.X+width+1.5, at.Y+height)
	c.FillText(style, at, word)
}
