package latency

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const goodFile = `schema: trbench.latency/1
source: a bench
models:
  - model: Llama-3.1-8B
    kind: constant
    origin: measured
    host_ms: 0.5
    constant: {step_ms: 12}
  - model: my-own
    kind: affine
    affine: {c0_ms: 27.6, c1_ms_per_seq: 0.098, c2_ms_per_context_token: 5.7e-5, p0_ms: 16.4, p2_ms_per_token2: -1e-6}
  - model: qwen3-0.6b
    kind: table
    table:
      decode:
        batch: [1, 2]
        context_tokens: [128, 1024, 2048]
        step_ms:
          - [1.84, 2.04, 2.1]
          - [2.26, 2.5]
      prefill:
        tokens: [16, 1024]
        step_ms: [2.08, 8.15]
        attention_ms: [0.3, 4]
`

func TestReadFile(t *testing.T) {
	f, err := Read("lat.yaml", strings.NewReader(goodFile))
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Spec("dir/lat.yaml", cards(t, "qwen3-0.6b", "llama3-8b")) // by name, whatever the order
	if err != nil {
		t.Fatal(err)
	}
	if got := s.New(0).StepTime(decodes(2, 1024)); got != 2500*time.Microsecond {
		t.Errorf("the table takes %v, want 2.5ms", got)
	}
	if got := s.New(1).StepTime(decodes(2, 1024)); got != 12500*time.Microsecond {
		t.Errorf("the constant takes %v, want 12.5ms", got)
	}
	label := "assumed, measured: file lat.yaml, a bench; host overhead 0s, 500µs a step (measured)"
	if got := s.Label(); got != label {
		t.Errorf("%q, want %q", got, label)
	}
	m := s.New(0)
	m.StepTime(decodes(3, 100))
	if got := fmt.Sprint(Extrapolated(m)); got != "[qwen3-0.6b in lat.yaml: batch 3 beyond the table's 2]" {
		t.Error(got)
	}
	_, err = f.Spec("lat.yaml", cards(t, "llama3-8b", "llama3-70b"))
	want := "lat.yaml: models has no latency for llama3-70b, only for Llama-3.1-8B, my-own, qwen3-0.6b"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	f.Models = []FileModel{{Kind: KindConstant, Constant: &FileConstant{1}}}
	_, err = f.Spec("lat.yaml", cards(t, "llama3-8b", "llama3-70b"))
	want = "lat.yaml: models has 1 latencies without a model's name, wanted 2, for llama3-8b, llama3-70b"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestWriteThenRead(t *testing.T) {
	first, err := Read("lat.yaml", strings.NewReader(goodFile))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Lookup("a100", "qwen3-0.6b", 1)
	if err != nil {
		t.Fatal(err)
	}
	steps := p.Steps()
	first.Models = append(first.Models,
		FileModel{Model: "qwen3-0.6b-again", Kind: KindTable, Origin: Measured, Table: &steps},
		FileModel{Model: "tiny", Kind: KindAffine, Affine: &Affine{C0: 1. / 3, C1: 1e-17, P2: -2.5e-9}})
	var text bytes.Buffer
	if err := Write(&text, first); err != nil {
		t.Fatal(err)
	}
	again, err := Read("lat.yaml", bytes.NewReader(text.Bytes()))
	if err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(text.String(), "step_ms:\n          - [1.84, 2.04, 2.1]\n") {
		t.Errorf("a grid does not look like one:\n%s", text.String())
	}
	first.Models[0].HostMS = -1
	want := "latency file: models[0].host_ms is -1, wanted 0 to 1e+09"
	if err := Write(&text, first); err == nil || err.Error() != want {
		t.Errorf("an unreadable file is written: %v", err)
	}
}

func TestReadErrors(t *testing.T) {
	swap := func(old, new string) string {
		if !strings.Contains(goodFile, old) {
			t.Fatalf("no %q to replace", old)
		}
		return strings.Replace(goodFile, old, new, 1)
	}
	for _, c := range []struct{ text, want string }{
		{"", "f: empty"},
		{"schema: [", "f:1: "},
		{"schema: trbench.latency/1\n---\nschema: x\n", "f: more than one YAML document"},
		{swap("latency/1", "latency/2"), `f:1: schema is "trbench.latency/2", wanted trbench.latency/1`},
		{"schema: trbench.latency/1\n", "f: models is empty, wanted a latency for each model"},
		{swap("host_ms", "hots_ms"), `f:7: unknown field "hots_ms"`},
		{swap("host_ms: 0.5", "host_ms: fast"), `f:7: models[0].host_ms is "fast", wanted a number`},
		{swap("kind: table\n    table:", "kind: table\n    table: 3\n    x:"),
			"f:14: models[2].table is 3, wanted a mapping"},
		{swap("batch: [1, 2]", "batch: {a: 1}"), "f:16: models[2].table.decode.batch is a mapping, wanted a list"},
		{swap("batch: [1, 2]", "batch: [1, 2.5]"), "f:16: models[2].table.decode.batch[1] is 2.5, wanted a whole number"},
		{swap("batch: [1, 2]", "batch: [1, 0.5]"), "f:16: models[2].table.decode.batch[1] is 0.5, wanted a whole number"},
		{swap("batch: [1, 2]", "batch: [1, [2]]"), `f: a count is "[2]", wanted a whole number`},
		{swap("source: a bench", "source: [a]"), "f:2: source is a list, wanted text"},
		{"3", "f:1: the document is 3, wanted a mapping"},
		{swap("source: a bench", "source: *bench"), `f:2: could not find alias "bench"`},
		{swap("host_ms: 0.5", "host_ms: -1"), "f:7: models[0].host_ms is -1, wanted 0 to 1e+09"},
		{swap("host_ms: 0.5", "host_ms: .nan"), "f:7: models[0].host_ms is NaN"},
		{swap("kind: constant", "kind: const"), `f:5: models[0].kind is "const", wanted constant, affine or table`},
		{swap("kind: constant", "kind: affine"), "f:8: models[0].constant is given, but kind is affine"},
		{swap("    constant: {step_ms: 12}\n", ""), "f:5: models[0].kind is constant, but there is no field constant"},
		{swap("origin: measured", "origin: guessed"),
			`f:6: models[0].origin is "guessed", wanted measured, fitted, article,`},
		{swap("step_ms: 12", "step_ms: 0"), "f:8: models[0].constant.step_ms is 0, wanted above 0 and at most 1e+09"},
		{swap("c1_ms_per_seq: 0.098", "c1_ms_per_seq: -1"),
			"f:11: models[1].affine.c1_ms_per_seq is -1, wanted a number from 0"},
		{swap("c0_ms: 27.6", "c0_ms: 0"), ""},
		{strings.Replace(swap("c0_ms: 27.6", "c0_ms: 0"), "16.4", "0", 1),
			"f:11: models[1].affine.c0_ms is 0, and so is p0_ms"},
		{swap("- [2.26, 2.5]", "- [2.26]"), "f:20: models[2].table.decode.step_ms[1] has 1 values, wanted 2 to 3"},
		{swap("tokens: [16, 1024]", "tokens: [16, 16]"), "f:22: models[2].table.prefill.tokens[1] is 16, wanted 17 to"},
		{swap("        attention_ms: [0.3, 4]", "        attention_ms: [0.3, 9]"),
			"f:24: models[2].table.prefill.attention_ms[1] is 9 ms, wanted 0 or more and less than the step's 8.15"},
		{swap("model: my-own", "model: llama3-8b"), `f:9: models[1].model is "llama3-8b", as is models[0]`},
		{swap("  - model: my-own\n    kind", "  - kind"), `f:9: models[1].model is "": name all models or none`},
		{swap("source: a bench", "schema: x"), "f:2: mapping key \"schema\" already defined"},
	} {
		_, err := Read("f", strings.NewReader(c.text))
		if c.want == "" && err == nil {
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
	if _, err := Read("f", strings.NewReader(strings.Repeat("#", maxFile+1))); err == nil {
		t.Error("a file of any length is read")
	}
}

// Whatever the text: an error, or a file that every model of it can be made of and that survives Write.
func FuzzRead(f *testing.F) {
	f.Add(goodFile)
	f.Add("schema: trbench.latency/1\nmodels: [{kind: constant, constant: {step_ms: 1e-300}}]")
	f.Add("schema: trbench.latency/1\nmodels: [{kind: affine, affine: {p0_ms: 1e9, p2_ms_per_token2: -1e9}}]")
	f.Add("models: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Read("f", strings.NewReader(text))
		if err != nil {
			return
		}
		for _, m := range file.Models {
			s, err := m.spec("f")
			if err != nil {
				t.Fatalf("Read accepts what can't be used: %v", err)
			}
			for _, shape := range []struct{ b, n int }{{1, 0}, {0, 1}, {300, 9000}} {
				d := s.Base().StepTime(plus(decodes(max(shape.b, 1), 9000), extend(max(shape.n, 1), shape.b)))
				if d < 1 || d > longest {
					t.Fatalf("a step of %v", d)
				}
			}
		}
		var out bytes.Buffer
		if err := Write(&out, file); err != nil {
			t.Fatal(err)
		}
		again, err := Read("f", bytes.NewReader(out.Bytes()))
		if err != nil {
			t.Fatalf("%v\n%s", err, out.String())
		}
		if diff := cmp.Diff(file, again); diff != "" {
			t.Fatalf("%s\n%s", diff, out.String())
		}
	})
}
