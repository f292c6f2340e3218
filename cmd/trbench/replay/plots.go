package replay

import (
	"github.com/trbench/trbench/results/plot"
)

// picture is what the run's figures show.
func (r *Run) picture(p *prediction) *plot.Replay {
	name := r.Settings.GPU + " " + r.Settings.Model
	out := &plot.Replay{
		Name: name, About: "real: measured; predicted: simulated from the arrival trace, nothing fitted to the run",
		Latencies: plot.Latencies(r.real, p.samples),
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
