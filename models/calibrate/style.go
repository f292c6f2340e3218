package calibrate

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// The palette is that of Okabe and Ito, which colour-blind readers can tell apart.
var (
	blue  = rgb(0x00, 0x72, 0xb2)
	red   = rgb(0xd5, 0x5e, 0x00)
	ink   = rgb(0x22, 0x22, 0x22)
	muted = rgb(0x5f, 0x5f, 0x5f)
	faint = rgb(0xe2, 0xe2, 0xe2)
)

func rgb(r, g, b uint8) color.NRGBA { return color.NRGBA{r, g, b, 0xff} }

// faded is a colour through which dots behind it show.
func faded(c color.NRGBA) color.NRGBA {
	c.A = 0x70
	return c
}

func words(size float64, c color.Color, weight xfont.Weight) text.Style {
	return text.Style{
		Color:   c,
		Font:    font.Font{Typeface: "Liberation", Variant: "Sans", Weight: weight, Size: vg.Points(size)},
		XAlign:  draw.XCenter,
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

// panel is one plot, in the style of all.
type panel struct {
	*plot.Plot
}

func newPanel(title, x, y string) *panel {
	p := &panel{plot.New()}
	p.BackgroundColor = nil
	p.Title.Text = printable(title)
	p.Title.TextStyle = words(11, ink, xfont.WeightBold)
	p.Title.TextStyle.YAlign = draw.YTop
	p.Title.Padding = vg.Points(5)
	for _, a := range []struct {
		axis  *plot.Axis
		label string
	}{{&p.X, x}, {&p.Y, y}} {
		a.axis.Label.Text = printable(a.label)
		a.axis.Label.TextStyle = words(10, muted, xfont.WeightNormal)
		a.axis.Label.Padding = vg.Points(3)
		a.axis.LineStyle = draw.LineStyle{Color: muted, Width: vg.Points(.8)}
		a.axis.Tick.LineStyle = a.axis.LineStyle
		a.axis.Tick.Label = words(9.5, ink, xfont.WeightNormal)
		a.axis.Tick.Marker = ticks{}
		a.axis.Padding = 0
	}
	p.X.Tick.Label.YAlign = draw.YTop
	p.Y.Tick.Label.XAlign, p.Y.Tick.Label.YAlign = draw.XRight, draw.YCenter
	p.Legend.Top = true
	p.Legend.TextStyle = words(9, ink, xfont.WeightNormal)
	p.Legend.TextStyle.XAlign = draw.XLeft
	p.Legend.Padding = vg.Points(2)
	p.Legend.ThumbnailWidth = vg.Points(16)
	line := draw.LineStyle{Color: faint, Width: vg.Points(.6)}
	p.Add(&plotter.Grid{Vertical: line, Horizontal: line})
	return p
}

// ticks are gonum's, with labels of few digits and commas.
type ticks struct{}

// Ticks implements plot.Ticker.
func (ticks) Ticks(lo, hi float64) []plot.Tick {
	if !(hi > lo) {
		return []plot.Tick{{Value: lo, Label: tickLabel(lo)}}
	}
	all := plot.DefaultTicks{}.Ticks(lo, hi)
	for i := range all {
		if all[i].Label != "" {
			all[i].Label = tickLabel(all[i].Value)
		}
	}
	return all
}

// powers are ticks of an axis whose values are logarithms to base 10.
type powers struct{}

// Ticks implements plot.Ticker.
func (p powers) Ticks(lo, hi float64) []plot.Tick {
	var all []plot.Tick
	for e := math.Floor(lo); e <= math.Ceil(hi); e++ {
		for _, m := range []float64{1, 2, 5} {
			v := e + math.Log10(m)
			if v < lo || v > hi {
				continue
			}
			t := plot.Tick{Value: v}
			if m == 1 || hi-lo < 2 {
				t.Label = tickLabel(math.Pow(10, v))
			}
			all = append(all, t)
		}
	}
	return all
}

func tickLabel(v float64) string {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	if math.Abs(v) >= 1e4 {
		return strconv.FormatFloat(v/1e3, 'g', 4, 64) + "k"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// dots adds points; those that are no numbers are left out. Where they are many they are small, and show through.
func (p *panel) dots(x, y []float64, c color.NRGBA, name string) {
	points := points(x, y)
	if len(points) == 0 {
		return
	}
	const many = 120
	style := draw.GlyphStyle{Color: c, Radius: vg.Points(2.2), Shape: draw.CircleGlyph{}}
	if len(points) > many {
		style.Color, style.Radius = faded(c), vg.Points(1.4)
	}
	p.Add(&plotter.Scatter{XYs: points, GlyphStyle: style})
	if name != "" {
		p.Legend.Add(name, &plotter.Scatter{GlyphStyle: draw.GlyphStyle{Color: c, Radius: vg.Points(2.5),
			Shape: draw.CircleGlyph{}}})
	}
}

// line adds a line through points.
func (p *panel) line(x, y []float64, c color.NRGBA, width float64, name string, dashes ...vg.Length) {
	points := points(x, y)
	if len(points) == 0 {
		return
	}
	l := &plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: c, Width: vg.Points(width), Dashes: dashes}}
	p.Add(l)
	if name != "" {
		p.Legend.Add(name, l)
	}
}

func points(x, y []float64) plotter.XYs {
	var out plotter.XYs
	for i := range x {
		if finite(x[i]) && finite(y[i]) {
			out = append(out, plotter.XY{X: x[i], Y: y[i]})
		}
	}
	return out
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// figure is a title and rows of panels.
type figure struct {
	name     string // of the file, without its ending
	title    string
	subtitle string
	rows     [][]*panel
	tall     bool // panels are twice as high
}

const (
	figureWidth = vg.Length(720)
	panelHeight = vg.Length(250)
	margin      = vg.Length(14)
	heading     = vg.Length(44) // title and subtitle
	dpi         = 144           // of a PNG: sharp on today's screens
)

func (f *figure) height() vg.Length {
	each := panelHeight
	if f.tall {
		each *= 2
	}
	return 2*margin + heading + vg.Length(len(f.rows))*each
}

func (f *figure) draw(c draw.Canvas) {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	title, subtitle := words(14, ink, xfont.WeightBold), words(10, muted, xfont.WeightNormal)
	title.XAlign, title.YAlign, subtitle.XAlign, subtitle.YAlign = draw.XLeft, draw.YTop, draw.XLeft, draw.YTop
	c.FillText(title, vg.Point{X: c.Min.X + margin, Y: c.Max.Y - margin}, printable(f.title))
	c.FillText(subtitle, vg.Point{X: c.Min.X + margin, Y: c.Max.Y - margin - 20}, printable(f.subtitle))
	body := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
		Min: vg.Point{X: c.Min.X + margin, Y: c.Min.Y + margin},
		Max: vg.Point{X: c.Max.X - margin, Y: c.Max.Y - margin - heading},
	}}
	plots := make([][]*plot.Plot, len(f.rows))
	for i, row := range f.rows {
		for _, p := range row {
			plots[i] = append(plots[i], p.Plot)
		}
	}
	tiles := draw.Tiles{Rows: len(plots), Cols: len(plots[0]), PadX: 16, PadY: 16}
	for i, row := range plot.Align(plots, tiles, body) {
		for j, tile := range row {
			plots[i][j].Draw(tile)
		}
	}
}

func (f *figure) svg(w io.Writer) error {
	c := vgsvg.New(figureWidth, f.height())
	f.draw(draw.New(c))
	var buf bytes.Buffer
	if _, err := c.WriteTo(&buf); err != nil {
		return fmt.Errorf("%s.svg: %w", f.name, err)
	}
	// A reader without the Liberation fonts gets one of the same widths.
	out := strings.ReplaceAll(buf.String(), "font-family:Liberation Sans;",
		"font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")
	_, err := io.WriteString(w, out)
	return err
}

func (f *figure) png(w io.Writer) error {
	c := vgimg.NewWith(vgimg.UseWH(figureWidth, f.height()), vgimg.UseDPI(dpi))
	f.draw(draw.New(c))
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(w); err != nil {
		return fmt.Errorf("%s.png: %w", f.name, err)
	}
	return nil
}
