package calibrate

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models"
	"github.com/trbench/trbench/models/latency"
)

// full is a report of all three kinds of log.
func full(t testing.TB) *Report {
	t.Helper()
	c := simulation{algorithm: "r2r", rates: []float64{.2}, correlation: .2, requests: 25, seed: 4,
		modulation: quietOrBusy, noise: .02,
		laws: []latency.Affine{smallLaw, largeLaw}}
	logs := c.run(t)
	p := prediction("tokenrouter", 4)
	return &Report{
		Steps:  mustFit(t, mustSteps(t, logs.steps.String()), Options{}),
		Tokens: mustTokens(t, logs.tokens.String(), Options{Window: 64}),
		Bench:  CheckBench(mustBench(t, detailedBench), &p),
	}
}

// What is written is what `run --latency` and `run --modulation` read.
func TestSavedFilesAreReadBack(t *testing.T) {
	dir := t.TempDir()
	r := full(t)
	if err := CheckFolder(filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "out")
	if err := r.Save(dir, "svg", "png"); err != nil {
		t.Fatal(err)
	}
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			found = append(found, d.Name())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"bench.png", "bench.svg", "calibration.json", "latency.yaml", "modulation-qwen3-0.6b.yaml",
		"modulation-qwen3-8b.yaml",
		"modulation.yaml", "residuals-qwen3-0.6b.png", "residuals-qwen3-0.6b.svg",
		"residuals-qwen3-8b.png", "residuals-qwen3-8b.svg",
		"routing.png", "routing.svg", "routing.yaml",
	}
	if d := cmp.Diff(want, found); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(want, r.Files); d != "" {
		t.Error(d)
	}
	var cards []models.Card
	for _, name := range []string{"qwen3-0.6b", "qwen3-8b"} {
		c, err := models.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		cards = append(cards, c)
	}
	spec, err := latency.Parse(filepath.Join(dir, LatencyFile), cards, nil)
	if err != nil {
		t.Fatal(err)
	}
	shape := step.Shape{Decodes: 4, DecodeContext: 2000, Extends: 1, ExtendTokens: 50, ExtendWork: 2500,
		ExtendContext: 50}
	for i, m := range r.Steps.Models {
		if got, want := spec.New(i).StepTime(shape), m.affine.StepTime(shape); got != want {
			t.Errorf("%s: %v from the file, %v from the fit", m.Model, got, want)
		}
	}
	for _, name := range []string{"modulation.yaml", "modulation-qwen3-8b.yaml"} {
		m, err := latency.ParseModulation(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if mean, ok := m.Mean(); !ok || mean < 1 || mean > 1.5 {
			t.Errorf("%s: mean %g", name, mean)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, RoutingFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nswitch_rate: 0.", "\nsignal: bursty\n", "\nsignal.correlation: 0."} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestReportText(t *testing.T) {
	r := full(t)
	r.Tokens.Models[0] = "a model with a very long name indeed"
	r.Files = []string{"calibration.json"}
	var out strings.Builder
	if err := r.Text(&out); err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(out.String(), "\n") {
		if n := runes(line); n > width {
			t.Errorf("line %d has %d columns: %s", i+1, n, line)
		}
		if strings.Contains(line, "NaN") || strings.Contains(line, "Inf") || strings.Contains(line, "%!") {
			t.Errorf("line %d: %s", i+1, line)
		}
	}
	for _, want := range []string{"c1_ms_per_seq", "all models: one modulation", "P(1->1)", "against tokenrouter w N=4",
		"tpot_ms", "written"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// The same logs give the same bytes: document, text, files and pictures.
func TestReportIsDeterministic(t *testing.T) {
	var last [3]string
	for round := range 2 {
		r := full(t)
		var all [3]bytes.Buffer
		if err := errors.Join(r.JSON(&all[0]), r.Text(&all[1]), r.figures()[0].svg(&all[2])); err != nil {
			t.Fatal(err)
		}
		for i := range all {
			if round > 0 && all[i].String() != last[i] {
				t.Errorf("output %d differs", i)
			}
			last[i] = all[i].String()
		}
	}
	var doc map[string]any
	if err := json.Unmarshal([]byte(last[0]), &doc); err != nil {
		t.Fatal(err)
	}
	if doc["schema"] != Schema {
		t.Errorf("schema %v", doc["schema"])
	}
}

// A report of one log has nothing of the others; a table has its points in the document.
func TestReportOfOneLog(t *testing.T) {
	c := simulation{algorithm: "r2r", rates: []float64{.2}, requests: 10, seed: 4, modulation: steady,
		laws: []latency.Affine{smallLaw, largeLaw}}
	r := &Report{Steps: mustFit(t, mustSteps(t, c.run(t).steps.String()), Options{Law: latency.KindTable})}
	var doc, text bytes.Buffer
	if err := errors.Join(r.JSON(&doc), r.Text(&text)); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tokens, Bench *struct{}
		Steps         struct {
			Models []struct {
				Affine []struct{}
				Table  struct{ Decode, Prefill []TablePoint }
			}
		}
	}
	if err := json.Unmarshal(doc.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	m := got.Steps.Models[0]
	if got.Tokens != nil || got.Bench != nil || m.Affine != nil || len(m.Table.Decode) == 0 ||
		len(m.Table.Prefill) == 0 {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(text.String(), "law (table)") {
		t.Error(text.String())
	}
	if err := r.Save(t.TempDir(), "gif"); !errors.Is(err, ErrOptions) {
		t.Errorf("a picture format that there isn't: %v", err)
	}
	if err := r.Save(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that there isn't: %v", err)
	}
}

func TestFileNames(t *testing.T) {
	for name, want := range map[string]string{
		"qwen3-0.6b": "qwen3-0.6b", "org/Model v1": "org-Model-v1", "../../etc": "etc", "日本": "model", "": "model",
	} {
		if got := fileName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	steps := write("steps", plainHeader+"a,0,1,1,1,1\n")
	tokens := write("tokens", "\n"+TokenHeader+"\nr,0,a\n")
	bench := write("bench", detailedBench)
	if log, err := ReadFile(steps, ""); err != nil || log.Steps == nil || !log.Has("a") || log.Has("b") {
		t.Errorf("%+v, %v", log, err)
	}
	if log, err := ReadFile(bench, ""); err != nil || log.Bench == nil {
		t.Errorf("%+v, %v", log, err)
	}
	log, err := ReadFile(tokens, "")
	if err != nil || log.Tokens == nil {
		t.Fatalf("%+v, %v", log, err)
	}
	if err := log.Rename("a", "llama3-8b"); err != nil || !slices.Equal(log.Tokens.Models, []string{"llama3-8b"}) {
		t.Errorf("%v, %v", log.Tokens.Models, err)
	}
	for _, to := range []string{"", "llama3-8b"} {
		if err := log.Rename("llama3-8b", to); !errors.Is(err, ErrOptions) {
			t.Errorf("to %q: %v", to, err)
		}
	}
	if err := log.Rename("b", "c"); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
	for _, c := range []struct {
		path string
		kind Kind
		want string
	}{
		{filepath.Join(dir, "none"), "", "none: can't be opened: no such file or directory"},
		{dir, "", ": is a folder, wanted a file"},
		{write("empty", ""), "", "empty: empty, wanted a log"},
		{write("other", "a,b\n1,2\n"), "", `other:1: can't tell what it is a log of: found "a", "b"; wanted`},
		{steps, Tokens, `steps:1: column "request": missing`},
		{bench, Steps, `bench:1: column "model": missing`},
	} {
		_, err := ReadFile(c.path, c.kind)
		var data *DataError
		if !errors.As(err, &data) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := ReadFile(steps, "notes"); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
	if _, err := ReadFile(filepath.Join(dir, "none"), Steps); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not that a file is missing", err)
	}
	if err := CheckFolder(filepath.Join(steps, "sub")); !errors.Is(err, ErrOptions) {
		t.Errorf("a folder within a file: %v", err)
	}
}
