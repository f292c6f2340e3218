package latency

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trbench/trbench/models"
)

func cards(t testing.TB, names ...string) []models.Card {
	t.Helper()
	var out []models.Card
	for _, n := range names {
		c, err := models.Lookup(n)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

func TestParse(t *testing.T) {
	llama := cards(t, "llama3-8b", "llama3-70b")
	trio := cards(t, "qwen3-0.6b", "qwen3-8b", "qwen3-32b")
	path := filepath.Join(t.TempDir(), "lat.yaml")
	text := "schema: trbench.latency/1\nsource: a bench\nmodels:\n" +
		"  - {kind: constant, origin: measured, host_ms: 0.5, constant: {step_ms: 3}}\n" +
		"  - {kind: affine, affine: {c0_ms: 20, p1_ms_per_token: 0.1}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spec  string
		cards []models.Card
		tp    []int
		label string
		whole bool
		steps []time.Duration // of one decode at context 1024
	}{
		{"A100", llama, []int{1, 4},
			"measured: a100 kernel tables, vLLM 0.14.0 (ai-dynamo/aiconfigurator); " +
				"host overhead 3.94ms, 2.53ms a step (fitted)", false,
			[]time.Duration{11322500 + SmallHost, 27173400 + LargeHost}},
		{"article", llama, nil, "article: whole steps of 12ms, 55ms", true,
			[]time.Duration{12 * time.Millisecond, 55 * time.Millisecond}},
		{"Paper", llama, nil, "paper: appendix D, whole steps of 6ms, 27.9ms", true,
			[]time.Duration{6 * time.Millisecond, 27900 * time.Microsecond}},
		{"const:6.0ms, 27.9ms,55ms", trio, nil, "assumed: whole steps of 6ms, 27.9ms, 55ms", true,
			[]time.Duration{6 * time.Millisecond, 27900 * time.Microsecond, 55 * time.Millisecond}},
		{path, llama, nil, "measured, assumed: file lat.yaml, a bench; host overhead 500µs, 0s a step (measured)", false,
			[]time.Duration{3500 * time.Microsecond, 20 * time.Millisecond}},
	} {
		s, err := Parse(c.spec, c.cards, c.tp)
		if err != nil {
			t.Errorf("%s: %v", c.spec, err)
			continue
		}
		if s.Label() != c.label || s.Whole() != c.whole || s.Name != c.spec {
			t.Errorf("%s: name %q, label %q, whole %v, want %q, %v", c.spec, s.Name, s.Label(), s.Whole(), c.label, c.whole)
		}
		for i, want := range c.steps {
			if got := s.New(i).StepTime(decodes(1, 1024)); got != want {
				t.Errorf("%s: model %d takes %v, want %v", c.spec, i, got, want)
			}
		}
	}
}

func TestModelSpec(t *testing.T) {
	s, err := Parse("h200", cards(t, "llama3-8b", "llama3-70b"), []int{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Models[1].String(),
		"llama3-70b: table llama3-70b tp2 on h200 (measured) + host 2.53ms a step (fitted)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if s.GPU != "h200" || s.Models[1].TP != 2 {
		t.Errorf("GPU %q, TP %d", s.GPU, s.Models[1].TP)
	}
	for i := range s.Models {
		s.Models[i].Host, s.Models[i].HostOrigin = 0, Assumed
	}
	if got := s.Label(); strings.Contains(got, "host") {
		t.Errorf("a host overhead of 0 is in the label: %q", got)
	}
	a, b := s.New(0), s.New(0)
	a.StepTime(decodes(500, 100))
	if len(Extrapolated(a)) == 0 || len(Extrapolated(b)) > 0 {
		t.Error("two instances are one")
	}
}

func TestParseErrors(t *testing.T) {
	llama := cards(t, "llama3-8b", "llama3-70b")
	trio := cards(t, "qwen3-0.6b", "qwen3-8b", "qwen3-32b")
	for _, c := range []struct {
		spec  string
		cards []models.Card
		tp    []int
		want  string
	}{
		{"a10", llama, nil,
			`unknown latency "a10": did you mean a100? (a100, h100, h200, article, paper, cpu-demo, const:D,D or a YAML file)`},
		{"artcle", llama, nil, `unknown latency "artcle": did you mean article? (`},
		{"mi300x", llama, nil, `unknown latency "mi300x" (a100,`},
		{"a100", llama, []int{1}, "latency a100: 1 TP values for llama3-8b, llama3-70b: one for each model wanted"},
		{"a100", llama, []int{1, 1}, "latency a100: no step times for llama3-70b tp1 on a100: tabled on TP 2, 4, 8"},
		{"paper", trio, nil, "latency paper states 2 step times, 6ms and 27.9ms, not one for each of " +
			"qwen3-0.6b, qwen3-8b, qwen3-32b: give const:D,D,... instead"},
		{"const:6ms", llama, nil,
			"latency const:6ms: 1 step times for 2 models, llama3-8b, llama3-70b: one for each wanted"},
		{"const:6.0,27.9", llama, nil, `latency const:6.0,27.9: "6.0" is no duration with a unit, as in 6.0ms or 800us`},
		{"const:6ms,", llama, nil, `latency const:6ms,: "" is no duration`},
		{"const:6ms,-1ms", llama, nil, "latency const:6ms,-1ms: -1ms is not above 0"},
		{"missing.yaml", llama, nil, "latency file: open missing.yaml: no such file or directory"},
		{"a100", nil, nil, "latency a100: no models"},
	} {
		if _, err := Parse(c.spec, c.cards, c.tp); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v\nwant %s", err, c.want)
		}
	}
}
