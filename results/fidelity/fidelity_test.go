package fidelity

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/trbench/trbench/results"
)

// example is two requests: TPOT 10 % too long for one, exact for the other, and no TPOT of a third.
func example() *Report {
	real := []Sample{
		{results.F(100), results.F(10), results.F(1000)}, {results.F(200), results.F(20), results.F(2000)},
		{results.F(300), results.Float{}, results.F(300)},
	}
	predicted := []Sample{
		{results.F(100), results.F(11), results.F(900)}, {results.F(200), results.F(20), results.F(2000)},
		{results.F(300), results.Float{}, results.F(300)},
	}
	f := Compare(real, predicted, results.F(50), results.F(60))
	return &Report{Runs: []Run{{
		Name: "gpu/model", Real: "measured: a server", Predicted: "simulated: a model", Requests: 3, Figures: f,
		Ablations: []Ablation{{"prefix cache", f}}, Warnings: []string{"a doubt"},
	}}}
}

func TestCompare(t *testing.T) {
	f := example().Runs[0].Figures
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"TPOT mean real", f.TPOT.Mean.Real.Or(0), 15},
		{"TPOT mean predicted", f.TPOT.Mean.Predicted.Or(0), 15.5},
		{"TPOT mean error", f.TPOT.Mean.Error().Or(0), 15.5/15 - 1},
		{"TPOT MAPE", f.TPOTMAPE.Or(0), .05},
		{"E2E MAPE", f.E2EMAPE.Or(0), .1 / 3},
		{"TTFT P50", f.TTFT.Percentile(50).Real.Or(0), 200},
		{"tok/s error", f.OutputTokS.Error().Or(0), .2},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s: %g, want %g", c.what, c.got, c.want)
		}
	}
}

// TestCompareNothing wants nulls, not NaN or a panic, where nothing can be compared.
func TestCompareNothing(t *testing.T) {
	r := Report{Runs: []Run{{Name: "empty", Figures: Compare(nil, nil, results.Float{}, results.Float{})}}}
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"ttft_ms": null`, `"tpot_mape": null`, `"ablations": []`, `"warnings": []`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in %s", want, b.String())
		}
	}
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
}

// TestOutputs wants one JSON document with the keys that others rely on, lines that fit a terminal, and as many CSV
// cells in each line.
func TestOutputs(t *testing.T) {
	r := example()
	var b bytes.Buffer
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Schema string
		Runs   []struct {
			Run     string
			Metrics map[string]json.RawMessage
			Per     map[string]float64 `json:"per_request"`
		}
	}
	if err := json.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != Schema || len(doc.Runs) != 1 || doc.Runs[0].Per["tpot_mape"] != f64(r.Runs[0].TPOTMAPE) {
		t.Errorf("read back %+v", doc)
	}
	for _, key := range []string{"ttft_ms", "tpot_ms", "e2e_ms"} {
		var d map[string]struct{ Real, Predicted, Error *float64 }
		if err := json.Unmarshal(doc.Runs[0].Metrics[key], &d); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		for _, stat := range []string{"mean", "p50", "p90", "p95", "p99"} {
			if d[stat].Real == nil || d[stat].Predicted == nil || d[stat].Error == nil {
				t.Errorf("%s.%s: %+v", key, stat, d[stat])
			}
		}
	}
	b.Reset()
	if err := r.Table(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > Width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	b.Reset()
	if err := r.CSV(&b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "\n"); n != 1+2*18 {
		t.Errorf("%d lines of CSV:\n%s", n, b.String())
	}
	b.Reset()
	if err := r.Markdown(&b); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "| TPOT ms | real | 15.00 |") {
		t.Errorf("Markdown:\n%s", b.String())
	}
}

func f64(f results.Float) float64 { return f.Or(math.NaN()) }
