package calibrate

import (
	"cmp"
	"slices"
	"time"

	"github.com/trbench/trbench/engine/clock"
)

// overlaps is, for each step, how long of it a step of another model ran.
func overlaps(log *StepLog) []time.Duration {
	out := make([]time.Duration, len(log.Steps))
	for m := range log.Models {
		busy := union(log, m)
		at := 0
		for i := range log.Steps {
			s := &log.Steps[i]
			if s.Model != m {
				continue
			}
			end := s.Start.Add(s.Duration)
			for at < len(busy) && busy[at].to <= s.Start { // starts of a model never go back
				at++
			}
			for k := at; k < len(busy) && busy[k].from < end; k++ {
				out[i] += min(end, busy[k].to).Sub(max(s.Start, busy[k].from))
			}
		}
	}
	return out
}

// stretch is [from, to).
type stretch struct{ from, to clock.Instant }

// union is when any model but one ran a step: stretches that don't touch, ascending.
func union(log *StepLog, but int) []stretch {
	var all []stretch
	for i := range log.Steps {
		if s := &log.Steps[i]; s.Model != but {
			all = append(all, stretch{s.Start, s.Start.Add(s.Duration)})
		}
	}
	slices.SortFunc(all, func(a, b stretch) int { return cmp.Compare(a.from, b.from) })
	n := 0
	for _, s := range all {
		if n > 0 && s.from <= all[n-1].to {
			all[n-1].to = max(all[n-1].to, s.to)
			continue
		}
		all[n] = s
		n++
	}
	return all[:n]
}

// alone is how long a step would have taken by itself, ns: while a peer runs, each step is 1 + kappa times slower.
func alone(duration, overlap time.Duration, kappa float64) float64 {
	return float64(duration-overlap) + float64(overlap)/(1+kappa)
}
