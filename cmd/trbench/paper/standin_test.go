package paper

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/trbench/trbench/models"
)

// source reads the table that parts.csv is an extract of, and skips the test in a clone without it.
func source(t *testing.T) map[partsKey]kernels {
	t.Helper()
	f, err := os.Open("../../../../shared/data/step-latency/decode_steps.csv") // beside the repository
	if err != nil {
		t.Skip("the step times are absent: ", err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	col := map[string]int{}
	for i, name := range lines[0] {
		col[name] = i
	}
	parts := map[partsKey]kernels{}
	for _, l := range lines[1:] {
		card, err := models.Lookup(l[col["model"]])
		if err != nil || !strings.HasPrefix(l[col["system"]], "a100") || l[col["context_tokens_per_seq"]] != "1024" {
			continue
		}
		tp, _ := strconv.Atoi(l[col["tp"]])
		batch, _ := strconv.Atoi(l[col["batch"]])
		var k kernels
		for i, name := range []string{"qkv_ms", "o_ms", "gate_up_ms", "down_ms", "attn_ms", "elem_ms", "allreduce_ms", "lm_head_ms"} {
			k[i], _ = strconv.ParseFloat(l[col[name]], 64)
		}
		parts[partsKey{card.Name, tp, batch}] = k
	}
	return parts
}

func TestPartsAreTheSources(t *testing.T) {
	parts, err := tabledParts()
	if err != nil {
		t.Fatal(err)
	}
	want := source(t)
	for k, p := range parts {
		if p != want[k] {
			t.Errorf("%+v: %v, the source has %v", k, p, want[k])
		}
	}
}

// Where a model is tabled on both tensor parallelisms, changing each kernel comes nearer than changing the whole step.
func TestStandIn(t *testing.T) {
	parts := source(t)
	var whole, byKernel, n float64
	for _, c := range []struct {
		model    string
		from, to int
		like     string
	}{
		{"qwen3-32b", 2, 4, "qwen2.5-72b"}, {"qwen2.5-32b", 2, 4, "qwen2.5-72b"},
		{"qwen3-32b", 1, 2, "llama3-8b"}, {"qwen2.5-32b", 1, 2, "llama3-8b"}, {"qwen2.5-14b", 1, 2, "llama3-8b"},
	} {
		own, _ := models.Lookup(c.model)
		like, _ := models.Lookup(c.like)
		for _, batch := range []int{1, 4} {
			base, truth := parts[partsKey{own.Name, c.from, batch}], parts[partsKey{own.Name, c.to, batch}].sum()
			before, after := parts[partsKey{like.Name, c.from, batch}], parts[partsKey{like.Name, c.to, batch}]
			if truth == 0 || before.sum() == 0 || after.sum() == 0 {
				t.Fatalf("%+v, batch %d: not in the source", c, batch)
			}
			whole += math.Abs(base.sum()*after.sum()/before.sum()/truth - 1)
			byKernel += math.Abs(estimate(base, before, after, float64(own.Layers)/float64(like.Layers)).sum()/truth - 1)
			n++
		}
	}
	t.Logf("mean error: whole steps %.1f %%, kernel by kernel %.1f %%", 100*whole/n, 100*byKernel/n)
	if byKernel/n > .03 || byKernel > whole/2 {
		t.Errorf("kernel by kernel %.1f %% off in the mean, whole steps %.1f %%", 100*byKernel/n, 100*whole/n)
	}
}

func TestCurve(t *testing.T) {
	c := curve{[]float64{1, 2, 4}, []float64{10, 20, 0}}
	for x, want := range map[float64]float64{0: 10, 1: 10, 1.5: 15, 3: 10, 4: 0, 99: 0} {
		if got := c.at(x); got != want {
			t.Errorf("at %g: %g, want %g", x, got, want)
		}
	}
	if _, err := scaled("qwen3-8b", 1, "llama3-8b", 16); err == nil || !strings.Contains(err.Error(), "not in parts.csv") {
		t.Errorf("got %v, want that it is not there", err)
	}
}
