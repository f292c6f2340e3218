package table

import (
	"bytes"
	"strings"
	"testing"

	"github.com/trbench/trbench/results"
)

func dist(p50, p99 float64) *results.Dist {
	return &results.Dist{Mean: p50, Quantiles: []results.Quantile{{P: 50, Value: p50}, {P: 90, Value: p50}, {P: 99, Value: p99}}}
}

// The table stands where an engine measured all parts, and only there.
func TestSwitchTable(t *testing.T) {
	s := &results.Summary{Points: []results.Point{{
		System: "tokenrouter", Algorithm: "entropy", Workload: "demo", Concurrency: 4, Requests: 10, Source: "measured",
		Switch: &results.Switch{Enqueue: dist(.8, 5), Transport: dist(11, 200), Wait: dist(6, 4900), Extend: dist(270, 7200)},
	}}}
	text := func() string {
		var b bytes.Buffer
		if err := Summary(&b, s, Options{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	out := text()
	if !strings.Contains(out, "What a change of model takes in TokenRouter.") || !strings.Contains(out, "0.80  5.00") ||
		!strings.Contains(out, "270.0  7,200") {
		t.Error(out)
	}
	for line := range strings.Lines(out) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > Width {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	s.Points[0].Switch.Enqueue = nil // as a simulation has it
	if out := text(); strings.Contains(out, "change of model") {
		t.Error(out)
	}
}
