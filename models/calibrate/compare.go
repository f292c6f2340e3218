package calibrate

import (
	"fmt"
	"strings"

	"github.com/trbench/trbench/results"
)

// BenchReport is what was measured, and beside it what was predicted.
type BenchReport struct {
	*Bench
	Against string   `json:"against"` // the predicted point, "" where there is none
	Check   []Figure `json:"check"`   // null where there is nothing to compare with
}

// Figure is one figure, measured and predicted.
type Figure struct {
	Name      string        `json:"name"` // ttft_ms, output_tok_s, ...
	Statistic string        `json:"statistic"`
	Measured  float64       `json:"measured"`
	Predicted float64       `json:"predicted"`
	Error     results.Float `json:"error"` // predicted / measured - 1
}

// CheckBench sets a benchmark beside a predicted point; nil is none.
func CheckBench(b *Bench, p *results.Point) *BenchReport {
	r := &BenchReport{Bench: b}
	if p == nil {
		return r
	}
	r.Against = describePoint(p)
	figure := func(name, statistic string, measured, predicted results.Float) {
		m, ok := measured.Get()
		q, both := predicted.Get()
		if !ok || !both {
			return
		}
		r.Check = append(r.Check, Figure{name, statistic, m, q, results.Change(predicted, measured)})
	}
	figure("output_tok_s", "", results.F(b.OutputTokS), p.OutputTokS)
	figure("finished_req_s", "", results.F(b.RequestRateS), p.RequestRate)
	ttft := p.TTFTFromSend
	if ttft == nil {
		ttft = p.TTFT
	}
	for _, m := range []struct {
		name                string
		measured, predicted *results.Dist
	}{
		{"ttft_ms", b.TTFT, ttft}, {"tpot_ms", b.TPOT, p.TPOT}, {"itl_ms", b.ITL, p.ITL}, {"icl_ms", b.ICL, p.ICL},
		{"e2e_ms", b.E2E, p.E2E},
	} {
		figure(m.name, "mean", m.measured.MeanValue(), m.predicted.MeanValue())
		if m.measured == nil {
			continue
		}
		for _, q := range m.measured.Quantiles {
			figure(m.name, q.Key(), results.F(q.Value), m.predicted.Percentile(q.P))
		}
	}
	if b.Requests != p.Requests-p.Failed-p.Cancelled {
		r.Warnings = append(r.Warnings, fmt.Sprintf("%d requests were measured and %d predicted", b.Requests,
			p.Requests-p.Failed-p.Cancelled))
	}
	if b.Concurrency > 0 && p.Concurrency > 0 && b.Concurrency != p.Concurrency {
		r.Warnings = append(r.Warnings, fmt.Sprintf("measured at a concurrency of %d, predicted at %d", b.Concurrency,
			p.Concurrency))
	}
	return r
}

// ChoosePoint returns the point of a summary that a benchmark is held against: the numbered one, from 1, or if number
// is 0 the only one, or the only one at the benchmark's concurrency. Else the error lists them.
func ChoosePoint(s *results.Summary, b *Bench, number int) (*results.Point, error) {
	switch {
	case len(s.Points) == 0:
		return nil, optionsErrorf("the summary has no points")
	case number < 0 || number > len(s.Points):
		return nil, optionsErrorf("point %d: the summary has %d", number, len(s.Points))
	case number > 0:
		return &s.Points[number-1], nil
	}
	fits := func(p *results.Point) bool { return b.Concurrency == 0 || p.Concurrency == b.Concurrency }
	var only *results.Point
	n := 0
	for i := range s.Points {
		if fits(&s.Points[i]) {
			only = &s.Points[i]
			n++
		}
	}
	switch {
	case n == 1:
		return only, nil
	case len(s.Points) == 1:
		return &s.Points[0], nil
	}
	const most = 20
	var list []string
	for i := range s.Points[:min(most, len(s.Points))] {
		list = append(list, fmt.Sprintf("%d: %s", i+1, describePoint(&s.Points[i])))
	}
	if more := len(s.Points) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return nil, optionsErrorf("the summary has %d points, %d of them at a concurrency of %d: choose "+
		"one (--point):\n  %s",
		len(s.Points), n, b.Concurrency, strings.Join(list, "\n  "))
}

func describePoint(p *results.Point) string {
	var parts []string
	for _, s := range []string{p.System, p.Algorithm, p.Workload, p.Pair} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if p.Concurrency > 0 {
		parts = append(parts, fmt.Sprintf("N=%d", p.Concurrency))
	}
	for _, a := range p.Axes {
		parts = append(parts, a.Key+"="+a.Value)
	}
	return strings.Join(parts, " ")
}
