package calibrate

import (
	"fmt"
	"image/color"
	"math"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// figures are the pictures of a report: for each model what its law leaves over, how far routing is from a chain, and
// the errors of a prediction.
func (r *Report) figures() []*figure {
	var all []*figure
	if s := r.Steps; s != nil {
		for _, m := range s.Models {
			all = append(all, m.figure(s.File))
		}
	}
	if t := r.Tokens; t != nil {
		all = append(all, t.figure())
	}
	if b := r.Bench; b != nil && len(b.Check) > 0 {
		all = append(all, b.figure())
	}
	return all
}

func (m *ModelReport) figure(file string) *figure {
	tr := &m.trace
	f := &figure{
		name:  "residuals-" + m.file,
		title: fmt.Sprintf("%s: what the %s law leaves over", m.Model, m.Law),
		subtitle: fmt.Sprintf("%s, %s steps; mean error %s, given the state %s, bias %s", filepath.Base(file),
			thousands(m.Steps), percent(m.Error.Mean), percent(m.Error.GivenState), signed(m.Error.Bias)),
	}
	split := func(values []float64, extends bool) []float64 {
		var out []float64
		for i, v := range values {
			if tr.extends[i] == extends {
				out = append(out, v)
			}
		}
		return out
	}

	fit := newPanel("Measured against the law", "law, ms", "measured, ms")
	predicted, measured := tr.predicted, tr.measured
	both := slices.Concat(predicted, measured)
	lo, hi := slices.Min(both), slices.Max(both)
	if hi > 20*lo {
		predicted, measured = logs(predicted), logs(measured)
		lo, hi = math.Log10(lo), math.Log10(hi)
		fit.X.Label.Text, fit.Y.Label.Text = "law, ms (log scale)", "measured, ms (log scale)"
		fit.X.Tick.Marker, fit.Y.Tick.Marker = powers{}, powers{}
	}
	fit.dots(split(predicted, false), split(measured, false), blue, "decodes")
	fit.dots(split(predicted, true), split(measured, true), red, "with extends")
	fit.line([]float64{lo, hi}, []float64{lo, hi}, ink, 1, "equal")
	fit.Legend.Left = true

	bottom, top := residualRange(tr.residual)
	level := func(p *panel) { p.Y.Min, p.Y.Max = bottom, top+.18*(top-bottom) } // the legend lies above the points
	time := newPanel("Residual over time", "step", "measured / law")
	time.dots(tr.at, clamped(tr.residual, bottom, top), blue, "")
	ends := []float64{0, float64(m.Steps)}
	for _, s := range m.Chain.States {
		time.line(ends, []float64{s.Multiplier.Value, s.Multiplier.Value}, red, 1, "", 4, 2)
	}
	time.line(tr.at, tr.smooth, ink, 1.2, "running mean")
	time.Legend.Add("states", &plotter.Line{LineStyle: draw.LineStyle{Color: red, Width: 1, Dashes: []vg.Length{4, 2}}})
	level(time)

	shape := newPanel("Residual by shape", "mean context, tokens", "measured / law")
	shape.dots(split(tr.context, false), clamped(split(tr.residual, false), bottom, top), blue, "decodes")
	shape.dots(split(tr.context, true), clamped(split(tr.residual, true), bottom, top), red, "with extends")
	level(shape)

	f.rows = [][]*panel{{fit, time}, {shape, m.histogram(bottom, top)}}
	return f
}

// residualRange holds all but the most extreme residuals, and 1.
func residualRange(values []float64) (lo, hi float64) {
	lo, hi = quantile(values, .002), quantile(values, .998)
	pad := max(.08*(hi-lo), .002)
	return min(lo, 1) - pad, max(hi, 1) + pad
}

// clamped moves what lies outside to the edge, where it is seen.
func clamped(values []float64, lo, hi float64) []float64 {
	out := slices.Clone(values)
	for i := range out {
		out[i] = min(max(out[i], lo), hi)
	}
	return out
}

func logs(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = math.Log10(v)
	}
	return out
}

func (m *ModelReport) histogram(lo, hi float64) *panel {
	const bins = 80
	p := newPanel("Distribution of the residual", "measured / law", "share of steps, %")
	counts := make([]float64, bins)
	for _, v := range m.trace.residual {
		b := int(float64(bins) * (v - lo) / (hi - lo))
		counts[min(max(b, 0), bins-1)]++
	}
	width := (hi - lo) / bins
	var x, y []float64
	most := 0.0
	for b, n := range counts {
		share := 100 * n / float64(len(m.trace.residual))
		x, y = append(x, lo+float64(b)*width, lo+float64(b+1)*width), append(y, share, share)
		most = max(most, share)
	}
	area := slices.Concat(plotter.XYs{{X: lo, Y: 0}}, points(x, y), plotter.XYs{{X: hi, Y: 0}})
	p.Add(&plotter.Polygon{XYs: []plotter.XYs{area}, Color: faded(blue)})
	for _, s := range m.Chain.States {
		p.line([]float64{s.Multiplier.Value, s.Multiplier.Value}, []float64{0, most * 1.05}, red, 1, "", 4, 2)
	}
	p.Legend.Add("states", &plotter.Line{LineStyle: draw.LineStyle{Color: red, Width: 1, Dashes: []vg.Length{4, 2}}})
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = lo, hi, 0, most*1.2
	return p
}

func (t *TokensReport) figure() *figure {
	last := len(t.Models) - 1
	f := &figure{
		name:  "routing",
		title: fmt.Sprintf("%s writes %s of the tokens", t.Models[last], percent(t.Share[last].Value)),
		subtitle: fmt.Sprintf("%s, %s tokens of %s request%s; lines are what a Markov chain of writers gives",
			filepath.Base(t.File), thousands(t.Tokens),
			thousands(t.Requests), plural(t.Requests)),
	}
	rate := newPanel("Share by position in the output", "output token", "share, %")
	var x, y, low, high []float64
	fewest := 0 // tokens of a window that is drawn: an interval over a handful would hide the others
	for _, w := range t.Phases {
		fewest = max(fewest, w.Tokens/20)
	}
	for i, w := range t.Phases {
		if w.Tokens < fewest {
			continue
		}
		middle := float64(w.From)
		if i+1 < len(t.Phases) {
			middle = (middle + float64(t.Phases[i+1].From)) / 2
		} else {
			middle += float64(t.longest-w.From) / 2
		}
		x, y = append(x, middle), append(y, 100*w.Rate.Value)
		low, high = append(low, 100*w.Rate.Low.Or(0)), append(high, 100*w.Rate.High.Or(1))
	}
	for i := range x {
		rate.line([]float64{x[i], x[i]}, []float64{low[i], high[i]}, blue, 1, "")
	}
	rate.dots(x, y, blue, "window, 95 % interval")
	mean := 100 * t.Share[last].Value
	rate.line([]float64{0, float64(t.longest)}, []float64{mean, mean}, red, 1, "one rate", 4, 2)
	rate.Y.Min, rate.Y.Max = 0, 1.2*max(slices.Max(high), 1)
	row := []*panel{rate}
	for _, i := range []int{0, last} {
		if len(row) == 1 || last > 0 {
			row = append(row, t.survival(i))
		}
	}
	f.rows = [][]*panel{row}
	return f
}

// survival is how many runs reach each length, beside a geometric law.
func (t *TokensReport) survival(model int) *panel {
	p := newPanel("Runs of "+clip(t.Models[model], 18), "tokens", "runs so long, % (log scale)")
	h := &t.hazards[model]
	if len(h.reached) == 0 {
		return p
	}
	stay := t.Transition[model][model].Value
	var x, y, g []float64
	alive, law := 1.0, 1.0 // Kaplan and Meier: runs that the log cuts off count as long as they are seen
	const least = 1e-4
	for l, n := range h.reached {
		if n == 0 || alive < least {
			break
		}
		x, y, g = append(x, float64(l+1)), append(y, 2+math.Log10(alive)), append(g, 2+math.Log10(max(law, least)))
		alive *= 1 - float64(h.ended[l])/float64(n)
		law *= stay
	}
	p.dots(x, y, blue, "log")
	p.line(x, g, red, 1, "geometric", 4, 2)
	p.Y.Tick.Marker = powers{}
	p.Y.Max = 2
	p.Y.Min = math.Floor(slices.Min(append(slices.Clone(y), 1)))
	return p
}

func (b *BenchReport) figure() *figure {
	f := &figure{
		name:     "bench",
		title:    "Predicted against measured",
		subtitle: fmt.Sprintf("%s against %s", filepath.Base(b.File), b.Against),
	}
	p := newPanel("", "error of the prediction, % of what was measured", "")
	marks := plot.ConstantTicks{}
	var x, y []float64
	for i, c := range b.Check {
		at := float64(len(b.Check) - 1 - i)
		marks = append(marks, plot.Tick{Value: at, Label: c.Name + " " + c.Statistic})
		e, ok := c.Error.Get()
		if !ok {
			continue
		}
		p.line([]float64{0, 100 * e}, []float64{at, at}, blue, 5, "")
		x, y = append(x, 100*e), append(y, at)
	}
	p.dots(x, y, blue, "")
	p.Add(zero{})
	p.Y.Tick.Marker = marks
	p.Y.Tick.Length = 0
	p.Y.Min, p.Y.Max = -.7, float64(len(b.Check))-.3
	p.X.Min, p.X.Max = 1.03*min(p.X.Min, -5), 1.03*max(p.X.Max, 5)
	f.rows = [][]*panel{{p}}
	f.tall = len(b.Check) > 10
	return f
}

// zero draws the line of no error.
type zero struct{}

// Plot implements plot.Plotter.
func (zero) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	c.StrokeLine2(draw.LineStyle{Color: color.Black, Width: 1}, x(0), c.Min.Y, x(0), c.Max.Y)
}
