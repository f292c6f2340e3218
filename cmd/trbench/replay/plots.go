package replay

import (
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/fidelity"
	"github.com/trbench/trbench/results/plot"
)

// picture is what the run's figures show.
func (r *Run) picture(p *prediction) *plot.Replay {
	name := r.Settings.GPU + " " + r.Settings.Model
	out := &plot.Replay{Name: name}
	for _, of := range []struct {
		label string
		value func(*fidelity.Sample) results.Float
	}{
		{"TTFT, ms", func(s *fidelity.Sample) results.Float { return s.TTFT }},
		{"TPOT, ms", func(s *fidelity.Sample) results.Float { return s.TPOT }},
		{"E2E, ms", func(s *fidelity.Sample) results.Float { return s.E2E }},
	} {
		d := plot.Distributions{Label: of.label}
		for i := range r.real {
			x, okX := of.value(&r.real[i]).Get()
			y, okY := of.value(&p.samples[i]).Get()
			if okX && okY {
				d.Real, d.Predicted = append(d.Real, x), append(d.Predicted, y)
			}
		}
		if len(d.Real) > 0 {
			out.Latencies = append(out.Latencies, d)
		}
	}
	for _, l := range r.running {
		out.RealRunning = append(out.RealRunning, plot.At{Second: l.second, Value: l.count})
	}
	// One value a second, at its end, as the server counts.
	next := 1.0
	for i := range p.Samples {
		s := &p.Samples[i]
		if t := s.At.Seconds(); t >= next || i == len(p.Samples)-1 {
			out.PredictedRunning = append(out.PredictedRunning, plot.At{Second: t, Value: float64(s.Running)})
			for next <= t {
				next++
			}
		}
	}
	return out
}
