package fidelity

import (
	"encoding/json"
	"io"

	"github.com/trbench/trbench/results"
)

// WriteJSON writes the report as one JSON document. Errors and MAPEs are fractions, times are in ms, and what is
// missing is null.
func (r *Report) WriteJSON(w io.Writer) error {
	doc := document{Schema: Schema, Runs: []run{}}
	for i := range r.Runs {
		doc.Runs = append(doc.Runs, r.Runs[i].encode())
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(doc)
}

type document struct {
	Schema string `json:"schema"`
	Runs   []run  `json:"runs"`
}

type run struct {
	Run       string     `json:"run"`
	Metrics   figures    `json:"metrics"`
	PerReq    perRequest `json:"per_request"`
	Requests  int        `json:"requests"`
	Real      string     `json:"real"`
	Predicted string     `json:"predicted"`
	Ablations []ablation `json:"ablations"`
	Warnings  []string   `json:"warnings"`
}

type ablation struct {
	Without string     `json:"without"`
	Metrics figures    `json:"metrics"`
	PerReq  perRequest `json:"per_request"`
}

type figures struct {
	TTFT       *dist `json:"ttft_ms"`
	TPOT       *dist `json:"tpot_ms"`
	E2E        *dist `json:"e2e_ms"`
	OutputTokS pair  `json:"output_tok_s"`
}

type dist struct {
	Mean pair `json:"mean"`
	P50  pair `json:"p50"`
	P90  pair `json:"p90"`
	P95  pair `json:"p95"`
	P99  pair `json:"p99"`
}

type pair struct {
	Real      results.Float `json:"real"`
	Predicted results.Float `json:"predicted"`
	Error     results.Float `json:"error"`
}

type perRequest struct {
	TPOTMAPE results.Float `json:"tpot_mape"`
	E2EMAPE  results.Float `json:"e2e_mape"`
}

func (r *Run) encode() run {
	out := run{
		Run: r.Name, Metrics: r.Figures.encode(), PerReq: perRequest{r.TPOTMAPE, r.E2EMAPE},
		Requests: r.Requests, Real: r.Real, Predicted: r.Predicted,
		Ablations: []ablation{}, Warnings: append([]string{}, r.Warnings...),
	}
	for i := range r.Ablations {
		a := &r.Ablations[i]
		out.Ablations = append(out.Ablations, ablation{a.Without, a.Figures.encode(), perRequest{a.TPOTMAPE, a.E2EMAPE}})
	}
	return out
}

func (f *Figures) encode() figures {
	return figures{f.TTFT.encode(), f.TPOT.encode(), f.E2E.encode(), f.OutputTokS.encode()}
}

func (d *Dist) encode() *dist {
	if d == nil {
		return nil
	}
	at := func(p float64) pair { return d.Percentile(p).encode() }
	return &dist{d.Mean.encode(), at(50), at(90), at(95), at(99)}
}

func (p Pair) encode() pair { return pair{p.Real, p.Predicted, p.Error()} }
