package plot

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/fidelity"
)

// Replay is a real run beside its prediction.
type Replay struct {
	Name                          string // "RTX4090 Llama-3.1-8B"
	About                         string // what real and predicted are
	Latencies                     []Distributions
	RealRunning, PredictedRunning []At // requests running over time; empty where nobody counted
}

// Distributions are one latency of all requests.
type Distributions struct {
	Label           string // "TTFT, ms"
	Real, Predicted []float64
}

// Latencies are the distributions of requests that both sides have: real[i] and predicted[i] are the same one. What
// either lacks is left out of both.
func Latencies(real, predicted []fidelity.Sample) (out []Distributions) {
	for _, of := range []struct {
		label string
		value func(*fidelity.Sample) results.Float
	}{
		{"TTFT, ms", func(s *fidelity.Sample) results.Float { return s.TTFT }},
		{"TPOT, ms", func(s *fidelity.Sample) results.Float { return s.TPOT }},
		{"E2E, ms", func(s *fidelity.Sample) results.Float { return s.E2E }},
	} {
		d := Distributions{Label: of.label}
		for i := range real {
			x, okX := of.value(&real[i]).Get()
			y, okY := of.value(&predicted[i]).Get()
			if okX && okY {
				d.Real, d.Predicted = append(d.Real, x), append(d.Predicted, y)
			}
		}
		if len(d.Real) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// At is a value at a time.
type At struct{ Second, Value float64 }

var (
	realStyle      = draw.LineStyle{Color: rgb(0x00, 0x00, 0x00), Width: vg.Points(2.2)}
	predictedStyle = draw.LineStyle{Color: rgb(0xd5, 0x5e, 0x00), Width: vg.Points(1.5), Dashes: dashes(5, 2)}
)

// ReplayFigures are the distributions over each other, and running requests over time, of each run.
func ReplayFigures(runs []Replay) []Figure {
	var figures []Figure
	for i := range runs {
		r := &runs[i]
		name := slug(r.Name)
		if slices.ContainsFunc(figures, func(f Figure) bool { return f.Name == "latency-"+name }) {
			name = fmt.Sprintf("%s-%d", name, i+1)
		}
		if len(r.Latencies) > 0 {
			figures = append(figures, r.distributions("latency-"+name))
		}
		if len(r.RealRunning)+len(r.PredictedRunning) > 0 {
			figures = append(figures, r.running("running-"+name))
		}
	}
	return figures
}

// SaveReplays draws the figures into dir in every format, "svg" or "png", and returns the names of the files.
func SaveReplays(dir string, runs []Replay, formats ...string) ([]string, error) {
	if err := checkFormats(formats); err != nil {
		return nil, err
	}
	return save(dir, ReplayFigures(runs), formats)
}

// figure is one without panels.
func (r *Replay) figure(name, title string) Figure {
	return Figure{
		Name: name, title: r.Name + ": " + title,
		subtitle: r.About,
		legend:   []sign{{name: "real", stroke: realStyle}, {name: "predicted", stroke: predictedStyle}},
		width:    10 * vg.Inch, height: 3.2 * vg.Inch,
	}
}

func (r *Replay) distributions(name string) Figure {
	f := r.figure(name, "requests by latency")
	var row []panel
	for i := range r.Latencies {
		d := &r.Latencies[i]
		most := 0.0
		p := panel{y: percentAxis("requests, %")}
		if i > 0 {
			p.y.label = ""
		}
		for k, values := range [][]float64{d.Real, d.Predicted} {
			c := distribution(values)
			most = max(most, slices.Max(c.xs))
			p.layers = append(p.layers, &path{
				xs: c.xs, ys: c.ys, style: []draw.LineStyle{realStyle, predictedStyle}[k], steps: true, edges: true,
			})
		}
		p.x = linearAxis(d.Label, most, along(f.width, len(r.Latencies)))
		row = append(row, p)
	}
	f.rows = [][]panel{row}
	return f
}

func (r *Replay) running(name string) Figure {
	f := r.figure(name, "requests running")
	var last, most float64
	var p panel
	for k, values := range [][]At{r.RealRunning, r.PredictedRunning} {
		line := &path{style: []draw.LineStyle{realStyle, predictedStyle}[k]}
		for _, v := range values {
			line.xs, line.ys = append(line.xs, v.Second), append(line.ys, v.Value)
			last, most = max(last, v.Second), max(most, v.Value)
		}
		p.layers = append(p.layers, line)
	}
	p.x = linearAxis("time since the first arrival, s", last, along(f.width, 1))
	p.y = linearAxis("requests running", math.Max(most, 1), upright)
	f.rows = [][]panel{{p}}
	if len(r.RealRunning) == 0 {
		f.notes = append(f.notes, "Nobody counted the real requests.")
	}
	return f
}
