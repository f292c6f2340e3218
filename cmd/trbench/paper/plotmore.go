package paper

import (
	"fmt"
	"image/color"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// value is ours of a claim, if it was computed.
func (r *Report) value(id string) (float64, bool) {
	for i := range r.Sections {
		for _, c := range r.Sections[i].Claims {
			if c.ID == id {
				return c.Ours.Get()
			}
		}
	}
	return 0, false
}

// tradeoff is throughput over what one user sees, from 1 to 16 requests, and the published ends.
func (r *Report) tradeoff() (*picture, error) {
	p := sheet("From 1 to 16 requests at a time (R2R, simulated; squares: N = 16 as published)", "output a user, tok/s", "output, tok/s")
	drawn := false
	for i, system := range []string{"tokenrouter", "official"} {
		var points plotter.XYs
		var names []string
		for _, n := range []int{1, 2, 4, 8, 16} {
			if t, ok := r.value(fmt.Sprintf("scaling/%s/n%d", system, n)); ok {
				points = append(points, plotter.XY{X: t / float64(n), Y: t})
				names = append(names, fmt.Sprintf(" %d", n))
			}
		}
		if len(points) == 0 {
			continue
		}
		drawn = true
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, err
		}
		line.Color, dots.Color = []color.Color{ourColour, fitColour}[i], []color.Color{ourColour, fitColour}[i]
		dots.Shape, dots.Radius = draw.CircleGlyph{}, vg.Points(3)
		labels, err := plotter.NewLabels(plotter.XYLabels{XYs: points, Labels: names})
		if err != nil {
			return nil, err
		}
		for k := range labels.TextStyle {
			labels.TextStyle[k].Font.Variant = "Sans"
		}
		p.Add(line, dots, labels)
		p.Legend.Add(system, line, dots)
		if end, ok := r.publishedEnd(system); ok {
			s, err := plotter.NewScatter(plotter.XYs{end})
			if err != nil {
				return nil, err
			}
			s.Shape, s.Radius, s.Color = draw.BoxGlyph{}, vg.Points(4), line.Color
			p.Add(s)
		}
	}
	if !drawn {
		return nil, nil
	}
	p.Legend.Top = true
	p.X.Min, p.Y.Min = 0, 0
	p.X.Max *= 1.05 // room for the last label
	return &picture{"tradeoff", p, vg.Points(640), vg.Points(360)}, nil
}

// publishedEnd is a system at N = 16 as the ratios to the ablation's cell at N = 1 say.
func (r *Report) publishedEnd(system string) (plotter.XY, bool) {
	ratio := map[string]string{"tokenrouter": "scaling/n16-over-n1", "official": "scaling/official-n16-over-n1"}[system]
	of := map[string]float64{}
	for _, s := range r.Sections {
		for _, c := range s.Cells {
			if c.Published != nil {
				of[c.ID] = *c.Published
			}
		}
	}
	one, times := of["ablation/n1/"+system], of[ratio]
	return plotter.XY{X: one * times / 16, Y: one * times}, one*times > 0
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
