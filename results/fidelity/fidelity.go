// Package fidelity is the record of how well something is predicted: figures of a real run beside those of a simulation
// of it, request by request and as distributions. It simulates nothing and reads no real run.
//
// Read fidelity.go (the record and its definitions), then encode.go (JSON), table.go (a terminal, Markdown) and csv.go.
package fidelity

import (
	"fmt"
	"math"

	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/metrics"
)

// Schema names the version of the JSON document.
const Schema = "trbench.fidelity/1"

// Report is several real runs beside their predictions.
type Report struct {
	Runs []Run
}

// Run is one real run beside its prediction.
type Run struct {
	Name      string // "RTX4090/Llama-3.1-8B"
	Real      string // where the real figures come from, with the kind of number: "measured: vllm 0.19 on ..."
	Predicted string // where the predicted ones come from: "simulated: ..."
	Requests  int    // requests that both have
	Figures
	// Ablations are the same figures predicted with one mechanism switched off.
	Ablations []Ablation
	Warnings  []string // doubts about the figures, in plain words
}

// Figures are what is compared. A distribution that is undefined (TPOT where every answer has one token) is null.
type Figures struct {
	TTFT       *Dist // ms, from the arrival at the client
	TPOT       *Dist // ms
	E2E        *Dist // ms
	OutputTokS Pair  // output tokens / (last completion - first arrival)
	TPOTMAPE   results.Float
	E2EMAPE    results.Float // mean over requests of |predicted / real - 1|, a fraction
}

// Ablation is a prediction without one mechanism.
type Ablation struct {
	Without string // the mechanism: "attention skew"
	Figures
}

// Pair is a figure, real and predicted.
type Pair struct{ Real, Predicted results.Float }

// Error is predicted / real - 1, a fraction; null where either is.
func (p Pair) Error() results.Float { return results.Change(p.Predicted, p.Real) }

// Dist is a distribution's mean and percentiles, real and predicted.
type Dist struct {
	Mean      Pair
	Quantiles []Quantile // Percentiles, in order
}

// Quantile is one percentile, real and predicted.
type Quantile struct {
	P float64
	Pair
}

// Percentiles are those of every Dist.
var Percentiles = [...]float64{50, 90, 95, 99}

// Sample is one request's latencies in ms; null where undefined.
type Sample struct{ TTFT, TPOT, E2E results.Float }

// Compare sets requests beside their predictions: real[i] and predicted[i] are the same request. A latency that either
// lacks is left out of both sides. The throughputs are in tok/s. It panics where the lengths differ.
func Compare(real, predicted []Sample, realTokS, predictedTokS results.Float) Figures {
	if len(real) != len(predicted) {
		panic(fmt.Sprintf("fidelity: %d real requests and %d predicted", len(real), len(predicted)))
	}
	f := Figures{OutputTokS: Pair{realTokS, predictedTokS}}
	column := func(of func(*Sample) results.Float) (d *Dist, mape results.Float) {
		var a, b []float64
		off := 0.0
		for i := range real {
			x, okX := of(&real[i]).Get()
			y, okY := of(&predicted[i]).Get()
			if okX && okY {
				a, b = append(a, x), append(b, y)
				off += math.Abs(y/x - 1)
			}
		}
		return distribution(a, b), results.F(off / float64(len(a)))
	}
	f.TTFT, _ = column(func(s *Sample) results.Float { return s.TTFT })
	f.TPOT, f.TPOTMAPE = column(func(s *Sample) results.Float { return s.TPOT })
	f.E2E, f.E2EMAPE = column(func(s *Sample) results.Float { return s.E2E })
	return f
}

// distribution describes both sides; nil of nothing. It sorts them.
func distribution(real, predicted []float64) *Dist {
	if len(real) == 0 {
		return nil
	}
	a, b := metrics.Describe(real, Percentiles[:]), metrics.Describe(predicted, Percentiles[:])
	d := &Dist{Mean: Pair{a.MeanValue(), b.MeanValue()}}
	for _, p := range Percentiles {
		d.Quantiles = append(d.Quantiles, Quantile{p, Pair{a.Percentile(p), b.Percentile(p)}})
	}
	return d
}

// Percentile is percentile p; null where there is none.
func (d *Dist) Percentile(p float64) Pair {
	if d != nil {
		for _, q := range d.Quantiles {
			if q.P == p {
				return q.Pair
			}
		}
	}
	return Pair{}
}

// MeanPair is the mean; null where d is nil.
func (d *Dist) MeanPair() Pair {
	if d == nil {
		return Pair{}
	}
	return d.Mean
}

// metric is a distribution with its names.
type metric struct {
	key  string // in JSON and CSV
	name string // in a table
	dist *Dist
}

// metrics lists the distributions in the order of every output.
func (f *Figures) metrics() []metric {
	return []metric{{"ttft_ms", "TTFT ms", f.TTFT}, {"tpot_ms", "TPOT ms", f.TPOT}, {"e2e_ms", "E2E ms", f.E2E}}
}
