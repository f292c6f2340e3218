package plot

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Figure is one picture: a title, where its figures come from, a legend, and panels.
type Figure struct {
	Name string // of the file, without its ending: throughput-gsm8k

	title    string
	subtitle string
	notes    []string  // below the panels
	systems  []string  // of all panels, TokenRouter first
	named    bool      // the panels name their systems: no legend
	dashed   bool      // the legend shows dashes, not glyphs
	legend   []sign    // instead of the systems; nil: those
	rows     [][]panel // of equal length
	bar      *colorBar // to the right of the panels; nil for none
	width    vg.Length
	height   vg.Length // of the panels; the words around them come on top
}

// dpi of a PNG: twice a screen's, so that it is sharp on today's.
const dpi = 144

// SVG writes the figure as SVG.
func (f *Figure) SVG(w io.Writer) error {
	c := vgsvg.New(f.width, f.layout().total)
	f.draw(draw.New(c))
	var buf bytes.Buffer
	if _, err := c.WriteTo(&buf); err != nil {
		return fmt.Errorf("%s.svg: %w", f.Name, err)
	}
	// A reader without the Liberation fonts gets one of the same widths, not the browser's serif.
	out := strings.ReplaceAll(buf.String(), "font-family:Liberation Sans;",
		"font-family:'Liberation Sans',Arial,Helvetica,sans-serif;")
	_, err := io.WriteString(w, out)
	return err
}

// PNG writes the figure as PNG.
func (f *Figure) PNG(w io.Writer) error {
	c := vgimg.NewWith(vgimg.UseWH(f.width, f.layout().total), vgimg.UseDPI(dpi))
	f.draw(draw.New(c))
	if _, err := (vgimg.PngCanvas{Canvas: c}).WriteTo(w); err != nil {
		return fmt.Errorf("%s.png: %w", f.Name, err)
	}
	return nil
}

const (
	margin    = vg.Length(14)
	panelGapX = vg.Length(16)
	panelGapY = vg.Length(16)
)

var (
	titleStyle    = words(14, ink, xfont.WeightBold)
	subtitleStyle = words(10, muted, xfont.WeightNormal)
	legendStyle   = words(10, ink, xfont.WeightNormal)
	noteStyle     = words(8.5, muted, xfont.WeightNormal)
)

// layout is the lines of words around the panels, and the height of it all.
type layout struct {
	title, subtitle, notes []string
	legend                 [][]sign
	total                  vg.Length
}

const sample = vg.Length(20) // the stroke before a name in the legend

// sign is one entry of a legend: a stroke, a glyph or both, and what they mean.
type sign struct {
	name   string
	stroke draw.LineStyle  // of width 0: none
	glyph  draw.GlyphStyle // without a shape: none
}

// signs are the entries of the legend.
func (f *Figure) signs() []sign {
	if f.named || f.legend != nil {
		return f.legend
	}
	var found []sign
	for _, system := range f.systems {
		l := lookOf(system, f.systems)
		s := sign{name: system, stroke: draw.LineStyle{Color: l.color, Width: vg.Points(2)}}
		if f.dashed {
			s.stroke.Dashes = l.dashes
		} else {
			s.glyph = l.point()
		}
		found = append(found, s)
	}
	return found
}

func (f *Figure) layout() layout {
	room := f.width - 2*margin
	l := layout{title: wrap(titleStyle, f.title, room), subtitle: wrap(subtitleStyle, f.subtitle, room)}
	for _, note := range f.notes {
		l.notes = append(l.notes, wrap(noteStyle, note, room)...)
	}
	x := vg.Length(0)
	for _, s := range f.signs() {
		w := entryWidth(s)
		if len(l.legend) == 0 || x+w > room {
			l.legend, x = append(l.legend, nil), 0
		}
		last := len(l.legend) - 1
		l.legend[last] = append(l.legend[last], s)
		x += w
	}
	l.total = 2*margin + f.height + lines(titleStyle, len(l.title)) + lines(subtitleStyle, len(l.subtitle)) +
		lines(noteStyle, len(l.notes)) + lines(legendStyle, len(l.legend)) + 3*8
	return l
}

func entryWidth(s sign) vg.Length {
	return sample + 5 + legendStyle.Width(printable(s.name)) + 13
}

// leading is the distance of two lines.
func leading(s text.Style) vg.Length { return s.Font.Size * 1.4 }

func lines(s text.Style, n int) vg.Length { return leading(s) * vg.Length(n) }

// wrap breaks words into lines that fit the room.
func wrap(s text.Style, paragraph string, room vg.Length) []string {
	var found []string
	for word := range strings.FieldsSeq(printable(paragraph)) {
		if n := len(found); n > 0 && s.Width(found[n-1]+" "+word) <= room {
			found[n-1] += " " + word
			continue
		}
		found = append(found, word)
	}
	return found
}

// draw draws the figure from top to bottom.
func (f *Figure) draw(c draw.Canvas) {
	c.SetColor(rgb(0xff, 0xff, 0xff))
	c.Fill(c.Rectangle.Path())
	l := f.layout()
	top := c.Max.Y - margin
	write := func(s text.Style, block []string) {
		for _, line := range block {
			top -= leading(s)
			c.FillText(s, vg.Point{X: c.Min.X + margin, Y: top + s.Font.Size*0.3}, line)
		}
	}
	write(titleStyle, l.title)
	write(subtitleStyle, l.subtitle)
	top -= 8
	for _, row := range l.legend {
		top -= leading(legendStyle)
		x := c.Min.X + margin
		for _, s := range row {
			s.draw(c, x, top+legendStyle.Font.Size*0.3)
			x += entryWidth(s)
		}
	}
	top -= 8
	f.drawPanels(draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
		Min: vg.Point{X: c.Min.X + margin, Y: top - f.height},
		Max: vg.Point{X: c.Max.X - margin, Y: top},
	}})
	top -= f.height + 8
	write(noteStyle, l.notes)
}

// draw draws the entry from x on.
func (s *sign) draw(c draw.Canvas, x, baseline vg.Length) {
	y := baseline + legendStyle.Font.Size*0.33
	if s.stroke.Width > 0 {
		c.StrokeLine2(s.stroke, x, y, x+sample, y)
	}
	if s.glyph.Shape != nil {
		c.DrawGlyphNoClip(s.glyph, vg.Point{X: x + sample/2, Y: y})
	}
	c.FillText(legendStyle, vg.Point{X: x + sample + 5, Y: baseline}, printable(s.name))
}

func (f *Figure) drawPanels(c draw.Canvas) {
	area := c
	if f.bar != nil {
		c = draw.Crop(c, 0, -f.bar.room(), 0, 0)
	}
	plots := make([][]*plot.Plot, len(f.rows))
	for i, row := range f.rows {
		for j := range row {
			if row[j].blank {
				plots[i] = append(plots[i], nil)
				continue
			}
			p, _ := row[j].plot(f.systems)
			plots[i] = append(plots[i], p)
		}
	}
	tiles := draw.Tiles{Rows: len(plots), Cols: len(plots[0]), PadX: panelGapX, PadY: panelGapY}
	var top, bottom vg.Length // of the data in the first column
	for i, row := range plot.Align(plots, tiles, c) {
		for j, tile := range row {
			if plots[i][j] == nil {
				continue
			}
			if data := plots[i][j].DataCanvas(tile); j == 0 {
				if bottom = data.Min.Y; i == 0 {
					top = data.Max.Y
				}
			}
			plots[i][j].Draw(tile)
		}
	}
	if f.bar != nil {
		f.bar.draw(area, bottom, top)
	}
}

// left is how many points of the figure have no place in it.
func (f *Figure) left() int {
	n := 0
	for _, row := range f.rows {
		for i := range row {
			if row[i].blank {
				continue
			}
			_, without := row[i].plot(f.systems)
			n += without
		}
	}
	return n
}
