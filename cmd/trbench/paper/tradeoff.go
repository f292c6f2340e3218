package paper

import (
	"fmt"
	"image/color"

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
