package paper

import (
	"bytes"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var (
	theirColour = color.RGBA{R: 0xb0, G: 0xb0, B: 0xb0, A: 0xff}
	ourColour   = color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}
	fitColour   = color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}
)

// picture is one plot with its size.
type picture struct {
	name          string
	plot          *plot.Plot
	width, height vg.Length
}

// Save draws the report's plots into dir, in the formats svg and png, and returns the files' names.
func (r *Report) Save(dir string, formats ...string) ([]string, error) {
	var files []string
	for _, draw := range []func() (*picture, error){r.ablation, r.scatter, r.tradeoff, r.combinations} {
		p, err := draw()
		if err != nil {
			return nil, err
		}
		if p == nil { // nothing of it was computed
			continue
		}
		for _, format := range formats {
			w, err := p.plot.WriterTo(p.width, p.height, format)
			if err != nil {
				return nil, fmt.Errorf("%s.%s: %w", p.name, format, err)
			}
			var b bytes.Buffer
			if _, err := w.WriteTo(&b); err != nil {
				return nil, fmt.Errorf("%s.%s: %w", p.name, format, err)
			}
			files = append(files, p.name+"."+format)
			if err := os.WriteFile(filepath.Join(dir, files[len(files)-1]), b.Bytes(), 0o666); err != nil {
				return nil, err
			}
		}
	}
	return files, nil
}

// sheet is an empty plot in the style of both.
func sheet(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = vg.Points(8)
	for _, f := range []*font.Font{
		&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font,
	} {
		f.Variant = "Sans"
	}
	return p
}

// ablation is bars, published and ours, of the ablation's rows at N = 8 and 4.
func (r *Report) ablation() (*picture, error) {
	p := sheet("Ablation: published and simulated (eager at N = 4 is fitted)", "", "output, tok/s")
	var theirs, ours plotter.Values
	var names []string
	for _, s := range r.Sections {
		for _, c := range s.Claims {
			n, row, _ := strings.Cut(strings.TrimPrefix(c.ID, "ablation/"), "/")
			if s.Name != "ablation" || n == "n1" {
				continue
			}
			theirs, ours = append(theirs, c.Published.Or(0)), append(ours, c.Ours.Or(0))
			names = append(names, row+"\nN = "+n[1:])
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	for i, v := range []plotter.Values{theirs, ours} {
		bars, err := plotter.NewBarChart(v, vg.Points(14))
		if err != nil {
			return nil, err
		}
		bars.LineStyle.Width = 0
		bars.Color = []color.Color{theirColour, ourColour}[i]
		bars.Offset = vg.Points(float64(14*i - 7))
		p.Add(bars)
		p.Legend.Add([]string{"published", "ours"}[i], bars)
	}
	p.Legend.Top = true
	p.NominalX(names...)
	p.Y.Min, p.X.Min, p.X.Max = 0, -.5, float64(len(names))-.5
	return &picture{"ablation", p, vg.Points(900), vg.Points(320)}, nil
}

// scatter is every throughput, ours over the published one, with the band of a tenth.
func (r *Report) scatter() (*picture, error) {
	p := sheet("Every throughput: ours over the published one, and the band of 10 %",
		"published, tok/s", "ours / published")
	var ticks plot.ConstantTicks
	for _, v := range []float64{30, 50, 100, 200, 400} {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprint(v)})
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, ticks
	for _, level := range []float64{1 - Near, 1, 1 + Near} {
		line := plotter.NewFunction(func(float64) float64 { return level })
		line.Color = theirColour
		if level != 1 {
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
		}
		p.Add(line)
	}
	any := false
	for i, kind := range []string{"predicted", "fitted"} {
		var points plotter.XYs
		for k := range r.Sections {
			for _, c := range r.Sections[k].Claims {
				d, ok := c.Difference.Get()
				if !ok || c.Kind != kind || r.Sections[k].unit(c.ID) != "tok/s" {
					continue
				}
				points = append(points, plotter.XY{X: c.Published.Or(1), Y: 1 + d})
			}
		}
		if len(points) == 0 {
			continue
		}
		any = true
		s, err := plotter.NewScatter(points)
		if err != nil {
			return nil, err
		}
		s.Shape, s.Radius = draw.CircleGlyph{}, vg.Points(3)
		s.Color = []color.Color{ourColour, fitColour}[i]
		p.Add(s)
		p.Legend.Add(kind, s)
	}
	if !any {
		return nil, nil
	}
	p.Legend.Top = true
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 25, 450, min(p.Y.Min, .8), max(p.Y.Max, 1.3)
	return &picture{"published", p, vg.Points(640), vg.Points(360)}, nil
}

// combinations is the ratio of each of the 15 jobs under both readings of the baseline's cost, on a log scale, with the
// published range.
func (r *Report) combinations() (*picture, error) {
	p := sheet("TokenRouter over rpc:sglang-radix, N = 4 (dashed: the published range)", "", "throughput, times")
	var preset, context plotter.XYs
	var names []string
	var least, most float64
	for _, s := range r.Sections {
		for _, c := range s.Claims {
			if x, ok := c.Ours.Get(); ok && s.Name == "combinations" {
				preset = append(preset, plotter.XY{X: float64(len(names)), Y: x})
				context = append(context, plotter.XY{X: float64(len(names)), Y: r.other[c.ID]})
				names = append(names, strings.Replace(s.short(c.ID), "/", "\n", 1))
				least, most = *s.cell(c.ID).Published, *s.cell(c.ID).Upto
			}
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	for _, level := range []float64{least, most} {
		line := plotter.NewFunction(func(float64) float64 { return level })
		line.Color, line.Dashes = theirColour, []vg.Length{vg.Points(4), vg.Points(3)}
		p.Add(line)
	}
	for i, points := range []plotter.XYs{preset, context} {
		s, err := plotter.NewScatter(points)
		if err != nil {
			return nil, err
		}
		s.Radius, s.Color = vg.Points(4), []color.Color{ourColour, fitColour}[i]
		s.Shape = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.TriangleGlyph{}}[i]
		p.Add(s)
		p.Legend.Add([]string{"as it is: cost by generated tokens", "cost by tokens of context"}[i], s)
	}
	p.NominalX(names...)
	var ticks plot.ConstantTicks
	for _, v := range []float64{1, 2, 5, 10, 20, 50, 100, 200} {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprint(v)})
	}
	p.Legend.Top = true
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, ticks
	p.Y.Min, p.Y.Max, p.X.Min, p.X.Max = 1, 250, -.6, float64(len(names))-.4
	return &picture{"combinations", p, vg.Points(900), vg.Points(320)}, nil
}
