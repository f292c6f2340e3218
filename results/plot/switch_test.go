package plot

import (
	"slices"
	"strings"
	"testing"

	"github.com/trbench/trbench/results"
)

// A run on an engine has a figure of what a change of model takes; a simulation, which knows no enqueue part, has none.
func TestSwitchFigure(t *testing.T) {
	d := func(p50, p99 float64) *results.Dist {
		return &results.Dist{Mean: p50, Quantiles: []results.Quantile{{P: 50, Value: p50}, {P: 99, Value: p99}}}
	}
	s := &results.Summary{}
	for _, n := range []int{1, 4, 16} {
		x := float64(n)
		s.Points = append(s.Points, results.Point{
			System: "tokenrouter", Algorithm: "entropy", Workload: "demo", Concurrency: n, Requests: 10, Source: "measured",
			OutputTokS: results.F(x), Switch: &results.Switch{Enqueue: d(.7*x, 3*x), Transport: d(10*x, 90*x), Wait: d(x, 900*x), Extend: d(200*x, 3000*x)},
		})
	}
	named := func() bool {
		figures, _ := Figures(Data{Summary: s})
		i := slices.IndexFunc(figures, func(f Figure) bool { return f.Name == "switch-demo" })
		if i < 0 {
			return false
		}
		var b strings.Builder
		if err := figures[i].SVG(&b); err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"enqueue", "transport", "wait for the step", "the step that extends", "measured", "log scale"} {
			if !strings.Contains(b.String(), word) {
				t.Errorf("the figure lacks %q", word)
			}
		}
		return true
	}
	if !named() {
		t.Error("no figure")
	}
	for i := range s.Points {
		s.Points[i].Switch.Enqueue = nil
	}
	if named() {
		t.Error("a figure of a simulation")
	}
}
