package experiment

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The simulator replays what the engine ran: the same requests, of the same tokens, whatever the router does. How near
// the times are is the machine's to say, and no test's.
func TestEngineFidelity(t *testing.T) {
	c := Defaults()
	for _, kv := range [][2]string{
		{"engine", "cpu"}, {"system", "tokenrouter"}, {"algorithm", "entropy,specdec,bild"}, {"concurrency", "3"}, {"requests", "12"}, {"warmup", "2"},
	} {
		if err := c.Set(kv[0], kv[1]); err != nil {
			t.Fatal(err)
		}
	}
	c.Workload = []string{DemoWorkload}
	p, err := NewPlan(context.Background(), "fidelity", c)
	if err != nil {
		t.Fatal(err)
	}
	dir, runs := t.TempDir(), 0
	report, err := p.EngineFidelity(context.Background(), FidelityOptions{Rounds: 2, Dir: dir, Progress: func() { runs++ }})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Runs) != 3 || runs != 12 {
		t.Fatalf("%d points, %d runs; want 3 and 12", len(report.Runs), runs)
	}
	for i, r := range report.Runs {
		if r.Name != []string{"entropy, N = 3", "specdec, N = 3", "bild, N = 3"}[i] || r.Requests != 24 {
			t.Errorf("run %q of %d requests", r.Name, r.Requests)
		}
		if !strings.HasPrefix(r.Real, "measured: gsm-s and gsm-l") || !strings.HasPrefix(r.Predicted, "simulated: ") {
			t.Errorf("%s: %q beside %q", r.Name, r.Real, r.Predicted)
		}
		for _, f := range append(r.Ablations, r.Ablations[0]) {
			if !(f.OutputTokS.Predicted.Or(0) > 0) {
				t.Errorf("%s without %s: nothing predicted", r.Name, f.Without)
			}
		}
		if real, predicted := r.TPOT.Percentile(50).Real.Or(0), r.TPOT.Percentile(50).Predicted.Or(0); !(real > 0 && predicted > 0) {
			t.Errorf("%s: P50 TPOT %g measured, %g simulated", r.Name, real, predicted)
		}
	}
	logs, _ := filepath.Glob(filepath.Join(dir, "steps.*.csv"))
	if len(logs) != 3 {
		t.Errorf("step logs %v, want one a point", logs)
	}
	if _, err := os.Stat(filepath.Join(dir, "steps.002.csv")); err != nil {
		t.Error(err)
	}
}
