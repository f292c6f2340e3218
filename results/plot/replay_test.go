package plot

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReplayFigures wants two figures a run, with both sides in them and names of their own, and files in each format.
func TestReplayFigures(t *testing.T) {
	run := Replay{
		Name: "GPU/any model-1.5",
		Latencies: []Distributions{
			{"TTFT, ms", []float64{1, 2, 900}, []float64{1, 3, 800}}, {"E2E, ms", []float64{5}, []float64{5}},
		},
		RealRunning: []At{{1, 5}, {2, 3}}, PredictedRunning: []At{{1, 4}, {2, 4}, {3, 0}},
	}
	alone := Replay{Name: run.Name, PredictedRunning: []At{{1, 4}}}
	dir := t.TempDir()
	files, err := SaveReplays(dir, []Replay{run, run, alone}, "svg", "png")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"latency-gpu-any-model-1.5.svg", "latency-gpu-any-model-1.5.png",
		"running-gpu-any-model-1.5.svg", "running-gpu-any-model-1.5.png",
		"latency-gpu-any-model-1.5-2.svg", "latency-gpu-any-model-1.5-2.png",
		"running-gpu-any-model-1.5-2.svg", "running-gpu-any-model-1.5-2.png",
		"running-gpu-any-model-1.5-3.svg", "running-gpu-any-model-1.5-3.png",
	}
	if !slices.Equal(files, want) {
		t.Errorf("files %q, want %q", files, want)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f, ".png") {
			if _, err := png.Decode(bytes.NewReader(data)); err != nil {
				t.Errorf("%s: %v", f, err)
			}
			continue
		}
		for _, word := range []string{"real", "predicted", "GPU/any model-1.5"} {
			if !strings.Contains(string(data), word) {
				t.Errorf("%s: no %q", f, word)
			}
		}
	}
	for _, f := range ReplayFigures([]Replay{run}) {
		if n := f.left(); n > 0 {
			t.Errorf("%s leaves %d values out", f.Name, n)
		}
	}
	if _, err := SaveReplays(dir, []Replay{run}, "gif"); err == nil {
		t.Error("no error for gif")
	}
}
