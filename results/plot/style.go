package plot

import (
	"image/color"
	"math"
	"slices"
	"strings"
	"unicode"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/trbench/trbench/results"
)

// look is how one system is drawn, everywhere: a colour, a glyph, so that no one needs to tell colours apart, and
// dashes where there are no glyphs.
type look struct {
	color  color.Color
	glyph  draw.GlyphDrawer
	dashes []vg.Length
}

// point is the style of a value on a line.
func (l look) point() draw.GlyphStyle {
	return draw.GlyphStyle{Color: l.color, Radius: vg.Points(3.3), Shape: l.glyph}
}

// looks is the palette of Okabe and Ito, which colour-blind readers can tell apart, in the order in which systems that
// have no look of their own take one.
var looks = [...]look{
	{rgb(0x00, 0x72, 0xb2), draw.CircleGlyph{}, nil},
	{rgb(0xd5, 0x5e, 0x00), draw.BoxGlyph{}, dashes(7, 2)},
	{rgb(0xe6, 0x9f, 0x00), draw.PyramidGlyph{}, dashes(2, 2)},
	{rgb(0xcc, 0x79, 0xa7), invertedGlyph{}, dashes(7, 2, 2, 2)},
	{rgb(0x56, 0xb4, 0xe9), draw.RingGlyph{}, dashes(4, 2)},
	{rgb(0x55, 0x55, 0x55), diamondGlyph{}, dashes(1, 1.5)},
	{rgb(0x00, 0x9e, 0x73), draw.PlusGlyph{}, dashes(5, 2, 1, 2, 1, 2)},
	{rgb(0x00, 0x00, 0x00), draw.CrossGlyph{}, dashes(10, 3)},
}

// systemLooks gives the usual systems the same look in every figure, whatever else is in it.
var systemLooks = [...]string{
	results.TokenRouter, "rpc:vllm-apc", "rpc:vllm-noapc", "rpc:sglang-radix", "step-sync", "large-only", "small-only",
}

// policyLooks gives the batching policies the same look in every figure.
var policyLooks = [...]look{
	looks[0], {looks[1].color, draw.BoxGlyph{}, nil}, {looks[6].color, draw.PyramidGlyph{}, nil},
}

// lookOf returns the look of a system; systems are those of the figure.
func lookOf(system string, systems []string) look {
	if i := slices.Index(systemLooks[:], system); i >= 0 {
		return looks[i]
	}
	// The others take what the usual systems of this figure leave, the last look first.
	var free []look
	for i := len(looks) - 1; i >= 0; i-- {
		if i >= len(systemLooks) || !slices.Contains(systems, systemLooks[i]) {
			free = append(free, looks[i])
		}
	}
	n := 0
	for _, s := range systems {
		if s == system {
			break
		}
		if !slices.Contains(systemLooks[:], s) {
			n++
		}
	}
	if len(free) == 0 {
		free = looks[:]
	}
	return free[n%len(free)]
}

func rgb(r, g, b uint8) color.Color { return color.NRGBA{r, g, b, 0xff} }

// faded is c, half as strong, for what stands behind a glyph.
func faded(c color.Color) color.Color {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	n.A = 0x88
	return n
}

func dashes(points ...float64) []vg.Length {
	lengths := make([]vg.Length, len(points))
	for i, p := range points {
		lengths[i] = vg.Points(p)
	}
	return lengths
}

var (
	ink   = rgb(0x22, 0x22, 0x22)
	muted = rgb(0x5f, 0x5f, 0x5f)
	rule  = rgb(0x8a, 0x8a, 0x8a)
	faint = rgb(0xe2, 0xe2, 0xe2)
	paper = rgb(0xff, 0xff, 0xff)

	shadow = color.NRGBA{0x88, 0x88, 0x88, 0x1c} // over what breaks a limit
	veil   = color.NRGBA{0xff, 0xff, 0xff, 0xc8} // under a word on a busy ground
)

// words is a text style in the figures' font, flush left and on its baseline.
func words(size float64, c color.Color, weight xfont.Weight) text.Style {
	return text.Style{
		Color:   c,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight, Size: vg.Points(size)},
		XAlign:  draw.XLeft,
		YAlign:  draw.YBottom,
		Handler: plot.DefaultTextHandler,
	}
}

// printable replaces what a font can't show and XML can't hold.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}

// invertedGlyph is a filled triangle on its tip.
type invertedGlyph struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (invertedGlyph) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	r := s.Radius * 1.15
	fill(c, s.Color, vg.Point{X: at.X, Y: at.Y - r}, vg.Point{X: at.X + r, Y: at.Y + r*0.75},
		vg.Point{X: at.X - r, Y: at.Y + r*0.75})
}

// diamondGlyph is a filled square on its tip.
type diamondGlyph struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (diamondGlyph) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	r := s.Radius * 1.2
	fill(c, s.Color, vg.Point{X: at.X, Y: at.Y - r}, vg.Point{X: at.X + r, Y: at.Y},
		vg.Point{X: at.X, Y: at.Y + r}, vg.Point{X: at.X - r, Y: at.Y})
}

// circleGlyph is a circle's outline.
type circleGlyph struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (circleGlyph) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	c.SetLineStyle(draw.LineStyle{Color: s.Color, Width: vg.Points(1.5)})
	var p vg.Path
	p.Move(vg.Point{X: at.X + s.Radius, Y: at.Y})
	p.Arc(at, s.Radius, 0, 2*math.Pi)
	p.Close()
	c.Stroke(p)
}

func fill(c *draw.Canvas, col color.Color, corners ...vg.Point) {
	c.SetColor(col)
	var p vg.Path
	p.Move(corners[0])
	for _, corner := range corners[1:] {
		p.Line(corner)
	}
	p.Close()
	c.Fill(p)
}
