package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/results/plot"
)

// swept runs a small sweep of the given axes, KEY=VALUES.
func swept(
	t *testing.T, policies []string, objective string, config map[string]string, axes ...string,
) *experiment.SweepReport {
	t.Helper()
	spec := experiment.SweepSpec{Policies: policies, Objective: objective, Config: map[string]string{
		"system": "tokenrouter", "latency": "paper", "switch_rate": "0.35",
		"workload": "fixed:8,24", "requests": "8", "repeat": "2",
	}}
	for key, value := range config {
		spec.Config[key] = value
	}
	for _, text := range axes {
		a, err := experiment.ParseAxis(text)
		if err != nil {
			t.Fatal(err)
		}
		spec.Axes = append(spec.Axes, a)
	}
	s, err := experiment.NewSweep(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	j, err := experiment.OpenJournal(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	points, err := s.Run(t.Context(), j, experiment.SweepOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := s.Report(t.Context(), points)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The figures' groups are the verdicts', with the same best points and the exact chain beside them.
func TestTuningOfASweep(t *testing.T) {
	const objective = "max output_tok_s s.t. tpot_p99_ms < 100"
	r := swept(t, experiment.Policies(), objective, nil, "concurrency=2,4", "threshold=1..4")
	d, err := tuning(r)
	if err != nil {
		t.Fatal(err)
	}
	if d.Metric != "output_tok_s" || d.Minimise || d.Objective != objective || d.Repeats != 2 ||
		len(d.Limits) != 1 || d.Limits[0].String() != "tpot_p99_ms < 100" {
		t.Errorf("%+v", d)
	}
	if len(d.Axes) != 2 || d.Axes[0].Delay || !d.Axes[1].Delay ||
		!slices.Equal(d.Axes[1].Values, []string{"1", "2", "3", "4"}) {
		t.Fatalf("axes %+v", d.Axes)
	}
	if len(d.Groups) != len(r.Verdicts) {
		t.Fatalf("%d groups, %d verdicts", len(d.Groups), len(r.Verdicts))
	}
	for i, g := range d.Groups {
		v := &r.Verdicts[i]
		if g.Points[g.Best].Point != &v.Best.Point || g.Points[g.Eager].Point != &v.Eager.Point {
			t.Errorf("%s: best %d and eager %d are others than the verdict's", g.Title, g.Best, g.Eager)
		}
		if e := g.Points[g.Eager]; e.Policy != "threshold" || e.Delay != 1 || e.Runs != 2 ||
			e.Value != e.Point.OutputTokS || e.CI95 != e.Point.OutputCI95 {
			t.Errorf("%s: eager %+v", g.Title, e)
		}
		eager := plot.Prediction{Threshold: 1, OutputTokS: v.Exact.Eager}
		if len(g.Predicted) != v.Concurrency || g.Predicted[0] != eager {
			t.Errorf("%s: predicted %v", g.Title, g.Predicted)
		}
		for _, p := range g.Points {
			want := sideBySide(experiment.Delay{Policy: p.Policy, K: p.Delay})
			if p.Values[1] != fmt.Sprint(want) {
				t.Errorf("%s: %s %v stands beside threshold %s", g.Title, p.Policy, p.Delay, p.Values[1])
			}
		}
	}
}

// A batching policy by name has a delay too; what runs none has not.
func TestDelayOf(t *testing.T) {
	r := swept(t, nil, "max output_tok_s", map[string]string{"system": "tokenrouter,large-only", "concurrency": "4"},
		"batching=threshold,gate:3,timer:12ms")
	d, err := tuning(r)
	if err != nil {
		t.Fatal(err)
	}
	// The small model's step takes 6 ms in the paper.
	want := map[string]float64{"threshold": 1, "gate": 3, "timer": 2, "": 0}
	seen := map[string]bool{}
	for _, p := range d.Groups[0].Points {
		if p.Delay != want[p.Policy] || (p.Policy == "") != (p.Point.System == "large-only") {
			t.Errorf("%s %s: policy %q, delay %v", p.Point.System, p.Point.Batching, p.Policy, p.Delay)
		}
		seen[p.Policy] = true
	}
	if len(seen) != 4 {
		t.Errorf("policies %v", seen)
	}
	if last := d.Axes[len(d.Axes)-1]; last.Key != "system" || len(last.Values) != 2 {
		t.Errorf("axes %+v: want the listed systems too", d.Axes)
	}
}

func TestPlotSweep(t *testing.T) {
	r := swept(t, experiment.Policies(), "max output_tok_s", nil, "concurrency=2,4", "threshold=1..2")
	for _, c := range []struct {
		formats string
		want    string
	}{
		{"svg,png", "delay.png delay.svg heatmap.png heatmap.svg pareto.png pareto.svg"},
		{"term,svg", "delay.svg heatmap.svg pareto.svg"}, {"term", ""}, {"none", ""},
	} {
		dir := t.TempDir()
		if err := plotSweep(dir, strings.Split(c.formats, ","), r); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.formats, got, c.want)
		}
	}
}

// Where a recorded pair is replayed, the points know their agreement, and the figure says which file it comes from.
func TestPlotSweepOnARecordedPair(t *testing.T) {
	const rows = 40
	var b strings.Builder
	b.WriteString("problem,pos,s_top1,l_top1,s_entropy,s_maxprob,s_margin,l_entropy,accept_prob\n")
	for i := range rows { // the less sure the small model is, the rarer it agrees
		sure := 1 - float64(i%10)/10
		agrees := 1 + (i%10)/7
		fmt.Fprintf(&b, "%d,%d,1,%d,%.2f,%.2f,%.2f,0.5,%.2f\n", i/20, 8+i%20, agrees, 3*(1-sure), sure, sure/2, sure)
	}
	path := filepath.Join(t.TempDir(), "made-up.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	const objective = "max output_tok_s s.t. agreement > 0.9"
	r := swept(t, nil, objective, map[string]string{"signal": "replay:" + path, "concurrency": "2"},
		"algorithm=entropy,query", "switch_rate=0.1,0.3,0.5")
	d, err := tuning(r)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(d.Traces, []string{"made-up.csv"}) {
		t.Errorf("traces %q", d.Traces)
	}
	for _, g := range d.Groups {
		for _, p := range g.Points {
			agreement, ok := p.Point.Agreement.Get()
			if !ok || p.Meets != (agreement > 0.9) {
				t.Errorf("%s %s: agreement %v (known %v), meets the limit: %v", g.Title, p.Point.Algorithm, agreement, ok, p.Meets)
			}
		}
		if g.Best >= 0 && !g.Points[g.Best].Meets {
			t.Errorf("%s: the best breaks the limit", g.Title)
		}
	}
	dir := t.TempDir()
	if err := plotSweep(dir, []string{"svg"}, r); err != nil {
		t.Fatal(err)
	}
	svg, err := os.ReadFile(filepath.Join(dir, "frontier.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(svg), "(made-up.csv)") {
		t.Error("the figure does not name the file")
	}
}
