package experiment

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trbench/trbench/results"
)

// A run that was killed before it could write its summary has, once recovered, the figures that it would have written,
// but for what only the process knew.
func TestRecover(t *testing.T) {
	c := Defaults()
	for key, value := range map[string]string{
		"workload": "fixed:20,50", "requests": "40", "warmup": "4", "concurrency": "4", "repeat": "2", "plot": "none",
		"system": "tokenrouter,large-only", "slo": "tpot=60ms", "out": filepath.Join(t.TempDir(), "r"),
	} {
		if err := c.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	p, err := NewPlan(t.Context(), "headline", c)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := p.Run(t.Context(), RunOptions{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Recover(whole.Folder.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Finish(RunOptions{Now: time.Now}); err != nil {
		t.Fatal(err)
	}
	want := whole.Summary.Points
	for i := range want { // what is lost
		p := &want[i]
		p.Threshold, p.ITL, p.ICL, p.Switch, p.BatchMean, p.Busy, p.Batching = nil, nil, nil, nil, nil, nil, ""
	}
	for i := range got.Summary.Points { // estimated: tokens spread evenly within their requests
		if w, g := want[i].SteadyTokS.Or(0), got.Summary.Points[i].SteadyTokS.Or(0); g < .995*w || g > 1.005*w {
			t.Errorf("point %d: steady %g tok/s, was %g: want it within .5 %%", i, g, w)
		}
		want[i].SteadyTokS = got.Summary.Points[i].SteadyTokS
	}
	exact := cmp.AllowUnexported(results.Float{})
	if diff := cmp.Diff(want, got.Summary.Points, exact); diff != "" {
		t.Errorf("recovered points differ (-whole +recovered):\n%s", diff)
	}
	if diff := cmp.Diff(whole.Summary.Comparisons, got.Summary.Comparisons, exact); diff != "" {
		t.Errorf("recovered comparisons differ (-whole +recovered):\n%s", diff)
	}
}
