package calibrate

import (
	"math"
	"time"

	"github.com/trbench/trbench/models/latency"
)

const (
	// mostContention bounds the search for kappa: beyond it, models in turn are faster than models at once.
	mostContention = 4
	// contentionSteps is how many steps of each model the search looks at, spread over the log.
	contentionSteps = 4000
	// leastOverlap is the share of steps that must lie at least half beside another model's for kappa to be told.
	leastOverlap = .01
)

// FitContention is the kappa at which steps beside another model's and steps alone agree best: it minimises the absolute
// log residuals of an affine law for each model, summed, which a few long stalls do not move. False where too few steps
// overlap, or too few do not.
func FitContention(log *StepLog) (kappa float64, ok bool) {
	overlap := overlaps(log)
	type one struct {
		steps []*Step
		share []float64
	}
	models := make([]one, len(log.Models))
	beside, alone := 0, 0
	for i := range log.Steps {
		s := &log.Steps[i]
		if !s.Split {
			continue
		}
		m := &models[s.Model]
		m.steps = append(m.steps, s)
		share := float64(overlap[i]) / float64(s.Duration)
		m.share = append(m.share, share)
		if share >= .5 {
			beside++
		} else {
			alone++
		}
	}
	least := leastOverlap * float64(beside+alone)
	if len(models) < 2 || float64(beside) < max(least, fewest) || float64(alone) < max(least, fewest) {
		return 0, false
	}
	cost := func(kappa float64) float64 {
		sum := 0.0
		for _, m := range models {
			var steps []observation
			stride := 1 + len(m.steps)/contentionSteps
			for i := 0; i < len(m.steps); i += stride {
				d := float64(m.steps[i].Duration)
				work := d * (1 - m.share[i] + m.share[i]/(1+kappa))
				steps = append(steps, observation{shape: m.steps[i].Shape, log: math.Log(work)})
			}
			if len(steps) < fewest {
				continue
			}
			law := fitAffine(steps)[0]
			for _, r := range residuals(steps, &law, nil) {
				sum += math.Abs(r)
			}
		}
		return sum
	}
	// Golden section.
	const ratio = 0.6180339887498949
	lo, hi := 0.0, float64(mostContention)
	a, b := hi-ratio*(hi-lo), lo+ratio*(hi-lo)
	fa, fb := cost(a), cost(b)
	for hi-lo > 1e-3 {
		if fa <= fb {
			hi, b, fb = b, a, fa
			a = hi - ratio*(hi-lo)
			fa = cost(a)
		} else {
			lo, a, fa = a, b, fb
			b = lo + ratio*(hi-lo)
			fb = cost(b)
		}
	}
	return (lo + hi) / 2, true
}

// Alone are the steps of each model of a log whose shape is known, in order, as long as they would have been without
// another model's beside them.
func Alone(log *StepLog, kappa float64) [][]latency.Timed {
	overlap := overlaps(log)
	out := make([][]latency.Timed, len(log.Models))
	for i := range log.Steps {
		if s := &log.Steps[i]; s.Split {
			out[s.Model] = append(out[s.Model], latency.Timed{At: s.Start, Shape: s.Shape, Time: time.Duration(math.Round(alone(s.Duration, overlap[i], kappa)))})
		}
	}
	return out
}

// Affine is the fitted affine law, less the host time that was split off; the zero law where a table was fitted.
func (m *ModelReport) Affine() latency.Affine { return m.affine }
