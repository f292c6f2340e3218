package plot

import (
	"image/color"
	"math"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// oklab is a colour in Björn Ottosson's Oklab ("A perceptual color space for image processing", 2020), in which equal
// distances look equally large.
type oklab struct{ l, a, b float64 }

// lch is a colour of this lightness, chroma and hue in degrees.
func lch(l, c, h float64) oklab {
	sin, cos := math.Sincos(h * math.Pi / 180)
	return oklab{l, c * cos, c * sin}
}

// linear returns the shares of linear sRGB; outside [0, 1] a screen can't show them.
func (o oklab) linear() (rgb [3]float64) {
	l := math.Pow(o.l+0.3963377774*o.a+0.2158037573*o.b, 3)
	m := math.Pow(o.l-0.1055613458*o.a-0.0638541728*o.b, 3)
	s := math.Pow(o.l-0.0894841775*o.a-1.2914855480*o.b, 3)
	return [3]float64{
		4.0767416621*l - 3.3077115913*m + 0.2309699292*s,
		-1.2684380046*l + 2.6097574011*m - 0.3413193965*s,
		-0.0041960863*l - 0.7034186147*m + 1.7076147010*s,
	}
}

// color is the nearest that a screen shows.
func (o oklab) color() color.Color {
	var out [3]uint8
	for i, x := range o.linear() {
		x = min(max(x, 0), 1)
		if x <= 0.0031308 {
			x *= 12.92
		} else {
			x = 1.055*math.Pow(x, 1/2.4) - 0.055
		}
		out[i] = uint8(math.Round(255 * x))
	}
	return rgb(out[0], out[1], out[2])
}

// between is the colour a part t of the way from o to the other, in a straight line.
func (o oklab) between(other oklab, t float64) oklab {
	return oklab{o.l + t*(other.l-o.l), o.a + t*(other.a-o.a), o.b + t*(other.b-o.b)}
}

// rising runs from dark blue over teal and green to light yellow as t runs from 0 to 1. Lightness and hue change evenly
// at one chroma, so equal steps of t look equally large; that lightness always rises keeps the order for readers who
// can't tell the hues apart, and in print without colour.
func rising(t float64) oklab {
	return lch(0.33+0.6*t, 0.094, 272-164*t)
}

// diverging runs from vermilion (-1) over light grey (0) to blue (+1), evenly on both sides.
func diverging(t float64) oklab {
	middle := lch(0.94, 0, 0)
	if t < 0 {
		return middle.between(lch(0.6, 0.16, 45), -t)
	}
	return middle.between(lch(0.47, 0.13, 250), t)
}

// shades gives values colours.
type shades struct {
	scale       scale
	least, most float64 // placed: the ends
	signed      bool    // of a change: 0 is the middle, blue is better
	lessBetter  bool    // of a signed one
}

// shadesOf fits shades to values: logarithmic where they spread widely, like an axis.
func shadesOf(values []float64, signed, lessBetter bool) shades {
	s := shades{signed: signed, lessBetter: lessBetter, least: math.Inf(1), most: math.Inf(-1)}
	for _, v := range values {
		if _, ok := linear.place(v); ok {
			s.least, s.most = min(s.least, v), max(s.most, v)
		}
	}
	if s.most < s.least {
		s.least, s.most = 0, 1
	}
	if !signed && s.least > 0 && s.most >= wide*s.least {
		s.scale, s.least, s.most = log10, math.Log10(s.least), math.Log10(s.most)
	}
	return s
}

// of is the colour of a value; false where it has none.
func (s shades) of(v float64) (oklab, bool) {
	at, ok := s.scale.place(v)
	if !ok {
		return oklab{}, false
	}
	return s.at(at), true
}

// at is the colour of a placed value.
func (s shades) at(at float64) oklab {
	if s.signed {
		t := 0.
		if far := max(math.Abs(s.least), math.Abs(s.most)); far > 0 {
			t = at / far
		}
		if s.lessBetter {
			t = -t
		}
		return diverging(t)
	}
	if s.most <= s.least {
		return rising(0.5)
	}
	return rising((at - s.least) / (s.most - s.least))
}

// onto is the colour of words on a ground.
func (o oklab) onto() color.Color {
	if o.l < 0.66 {
		return paper
	}
	return ink
}

// colorBar is the scale of a map, to the right of the panels.
type colorBar struct {
	shades
	label string
}

const (
	barGap   = vg.Length(14)
	barWidth = vg.Length(12)
	barWords = vg.Length(50) // ticks and label
)

// room is the width that the bar takes from the panels.
func (*colorBar) room() vg.Length { return barGap + barWidth + barWords }

// draw draws the bar at the right edge of c, from bottom to top.
func (b *colorBar) draw(c draw.Canvas, bottom, top vg.Length) {
	left := c.Max.X - barWidth - barWords
	const bands = 96
	each := (top - bottom) / bands
	for i := range bands {
		t := (float64(i) + 0.5) / bands
		from := bottom + vg.Length(i)*each
		to := min(from+1.6*each, top) // over the next one's foot: no seams
		box(&c, b.at(b.least+t*(b.most-b.least)).color(), left, from, left+barWidth, to)
	}
	tick := words(9.5, ink, xfont.WeightNormal)
	tick.YAlign = draw.YCenter
	widest := vg.Length(0)
	for _, t := range b.ticks() {
		y := bottom
		if b.most > b.least {
			y += (top - bottom) * vg.Length((t.Value-b.least)/(b.most-b.least))
		} else {
			y = (bottom + top) / 2
		}
		c.StrokeLine2(draw.LineStyle{Color: rule, Width: vg.Points(0.8)}, left+barWidth, y, left+barWidth+3, y)
		c.FillText(tick, vg.Point{X: left + barWidth + 5, Y: y}, t.Label)
		widest = max(widest, tick.Width(t.Label))
	}
	label := words(10, muted, xfont.WeightNormal)
	label.Rotation = math.Pi / 2
	label.XAlign, label.YAlign = draw.XCenter, draw.YTop
	c.FillText(label, vg.Point{X: left + barWidth + 9 + widest, Y: (bottom + top) / 2}, printable(b.label))
}

// ticks are at most seven values within the ends.
func (b *colorBar) ticks() []plot.Tick {
	if b.most <= b.least {
		v := b.least
		if b.scale == log10 {
			v = math.Pow(10, v)
		}
		return []plot.Tick{{Value: b.least, Label: tickLabel(v)}}
	}
	var inside []plot.Tick
	if b.scale == log10 {
		for _, t := range logAxis("", math.Pow(10, b.least), math.Pow(10, b.most), 7).ticks {
			if t.Value >= b.least && t.Value <= b.most && t.Label != "" {
				inside = append(inside, t)
			}
		}
		if len(inside) == 0 { // not even a 1, 2 or 5 between the ends
			return []plot.Tick{{Value: b.most, Label: tickLabel(math.Pow(10, b.most))}}
		}
		return spread(inside, min(len(inside), 7))
	}
	step := roundStep(b.most-b.least, 6)
	for i := math.Ceil(b.least / step); i*step <= b.most; i++ {
		label := tickLabel(i * step)
		if b.signed && i > 0 {
			label = "+" + label
		}
		inside = append(inside, plot.Tick{Value: i * step, Label: label})
	}
	return inside
}

// box fills a rectangle.
func box(c *draw.Canvas, col color.Color, left, bottom, right, top vg.Length) {
	fill(c, col, vg.Point{X: left, Y: bottom}, vg.Point{X: right, Y: bottom},
		vg.Point{X: right, Y: top}, vg.Point{X: left, Y: top})
}
