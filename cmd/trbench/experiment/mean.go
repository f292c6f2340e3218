package experiment

import (
	"math"

	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/metrics"
)

// mean is the point that repeats of one point under several seeds are reported as: the mean of each figure, and the
// half-width of the throughput's 95 % interval.
func mean(repeats []*done) *done {
	if len(repeats) == 1 {
		return repeats[0]
	}
	out := *repeats[0]
	p := &out.point
	p.Repeats = len(repeats)
	at := func(field func(*results.Point) results.Float) results.Float {
		var v []float64
		for _, d := range repeats {
			if x, ok := field(&d.point).Get(); ok {
				v = append(v, x)
			}
		}
		if len(v) == 0 {
			return results.Float{}
		}
		return results.F(metrics.Mean(v))
	}
	var rates []float64
	out.ttft, out.tokens = nil, 0
	tokens, preempted, dropped := 0., 0., 0.
	for _, d := range repeats {
		out.ttft = append(out.ttft, d.ttft...)
		out.tokens += d.tokens
		rates = append(rates, d.point.OutputTokS.Or(math.NaN()))
		tokens += float64(d.point.OutputTokens) / float64(len(repeats))
		preempted += float64(d.point.Preempted) / float64(len(repeats))
		dropped += float64(d.point.KVDropped) / float64(len(repeats))
		if d != repeats[0] {
			out.warnings = append(out.warnings, d.warnings...)
			p.Failed += d.point.Failed
		}
	}
	p.OutputTokens, p.Preempted, p.KVDropped = int64(math.Round(tokens)), int64(math.Round(preempted)), int64(math.Round(dropped))
	_, half := metrics.MeanCI(rates)
	p.OutputCI95 = results.F(half)
	for _, field := range []func(*results.Point) *results.Float{
		func(p *results.Point) *results.Float { return &p.DurationS },
		func(p *results.Point) *results.Float { return &p.OutputTokS },
		func(p *results.Point) *results.Float { return &p.SteadyTokS },
		func(p *results.Point) *results.Float { return &p.GoodputReqS },
		func(p *results.Point) *results.Float { return &p.LargeShare },
		func(p *results.Point) *results.Float { return &p.Hops },
		func(p *results.Point) *results.Float { return &p.Agreement },
		func(p *results.Point) *results.Float { return &p.NLL },
		func(p *results.Point) *results.Float { return &p.SLOAttainment },
		func(p *results.Point) *results.Float { return &p.RequestRate },
		func(p *results.Point) *results.Float { return &p.CostPerMTok },
	} {
		*field(p) = at(func(p *results.Point) results.Float { return *field(p) })
	}
	for i := range p.BatchMean {
		p.BatchMean[i] = at(func(p *results.Point) results.Float { return p.BatchMean[i] })
		p.Busy[i] = at(func(p *results.Point) results.Float { return p.Busy[i] })
	}
	for _, field := range []func(*results.Point) **results.Dist{
		func(p *results.Point) **results.Dist { return &p.TTFT },
		func(p *results.Point) **results.Dist { return &p.TPOT },
		func(p *results.Point) **results.Dist { return &p.ITL },
		func(p *results.Point) **results.Dist { return &p.ICL },
		func(p *results.Point) **results.Dist { return &p.E2E },
		func(p *results.Point) **results.Dist { return &p.TTFTFromSend },
	} {
		*field(p) = meanDist(repeats, func(p *results.Point) *results.Dist { return *field(p) })
	}
	p.Switch = meanSwitch(repeats)
	return &out
}

// meanDist averages a distribution's mean and percentiles over the repeats that have it.
func meanDist(repeats []*done, field func(*results.Point) *results.Dist) *results.Dist {
	var out *results.Dist
	n := 0.
	for _, d := range repeats {
		x := field(&d.point)
		if x == nil {
			continue
		}
		if n++; out == nil {
			out = &results.Dist{Quantiles: make([]results.Quantile, len(x.Quantiles))}
		}
		out.Mean += x.Mean
		for i, q := range x.Quantiles {
			out.Quantiles[i].P = q.P
			out.Quantiles[i].Value += q.Value
		}
	}
	if out == nil {
		return nil
	}
	out.Mean /= n
	for i := range out.Quantiles {
		out.Quantiles[i].Value /= n
	}
	return out
}

func meanSwitch(repeats []*done) *results.Switch {
	part := func(field func(*results.Switch) *results.Dist) *results.Dist {
		return meanDist(repeats, func(p *results.Point) *results.Dist {
			if p.Switch == nil {
				return nil
			}
			return field(p.Switch)
		})
	}
	s := results.Switch{
		Enqueue:   part(func(s *results.Switch) *results.Dist { return s.Enqueue }),
		Transport: part(func(s *results.Switch) *results.Dist { return s.Transport }),
		Wait:      part(func(s *results.Switch) *results.Dist { return s.Wait }),
		Extend:    part(func(s *results.Switch) *results.Dist { return s.Extend }),
	}
	if s == (results.Switch{}) {
		return nil
	}
	return &s
}
