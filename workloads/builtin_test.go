package workloads

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/trbench/trbench/internal/testutil"
)

// The built-in traces have the published counts, means and percentiles (rounded: means to a tenth, percentiles to a
// token), zero-token rows included.
func TestBuiltinStatistics(t *testing.T) {
	for _, c := range []struct {
		name, tokenizer                       string
		n                                     int
		promptMean, p50, p90, p99, max        float64
		outputMean, out50, out90, out99, omax float64
	}{
		{"gsm8k", "llama31", 1319, 59.0, 55, 89, 124, 185, 102.8, 95, 162, 234, 310},
		{"gsm8k", "qwen25", 1319, 61.3, 57, 92, 128, 188, 124.2, 115, 197, 282, 413},
		{"alpaca", "llama31", 5000, 17.2, 14, 29, 68, 239, 56.3, 42, 122, 248, 562},
		{"alpaca", "qwen25", 5000, 17.4, 14, 29, 70, 239, 56.9, 43, 122, 253, 571},
		{"sharegpt", "llama31", 300, 857.5, 732, 1460, 2765, 3998, 652.5, 632, 770, 784, 1021},
		{"sharegpt", "qwen25", 300, 881.0, 738, 1513, 2768, 4570, 666.3, 648, 785, 926, 1108},
	} {
		t.Run(c.name+"."+c.tokenizer, func(t *testing.T) {
			s, err := parseName(c.name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.builtin.read(Options{Tokenizer: c.tokenizer})
			if err != nil {
				t.Fatal(err)
			}
			var prompts, outputs []int
			for _, e := range got.Entries {
				prompts, outputs = append(prompts, e.Prompt), append(outputs, e.Output)
			}
			if len(prompts) != c.n || got.HasArrivals != (c.name == "sharegpt") {
				t.Errorf("%d entries, arrivals %t", len(prompts), got.HasArrivals)
			}
			for _, side := range []struct {
				what string
				got  *Lengths
				want [5]float64
			}{
				{"prompt", lengths(prompts), [5]float64{c.promptMean, c.p50, c.p90, c.p99, c.max}},
				{"output", lengths(outputs), [5]float64{c.outputMean, c.out50, c.out90, c.out99, c.omax}},
			} {
				have := [5]float64{side.got.Mean, side.got.P50, side.got.P90, side.got.P99, float64(side.got.Max)}
				for i, tolerance := range [5]float64{.0501, .501, .501, .501, 0} {
					if math.Abs(have[i]-side.want[i]) > tolerance {
						t.Errorf("%s: mean, p50, p90, p99, max %v, want %v", side.what, have, side.want)
						break
					}
				}
			}
		})
	}
}

// The table above is the reference's, where that is at hand.
func TestBuiltinAgainstReference(t *testing.T) {
	originals := map[string]string{"gsm8k": "gsm8k_test", "alpaca": "alpaca_5000", "sharegpt": "sharegpt_lss_300"}
	for name, original := range originals {
		for _, tokenizer := range []string{"llama31", "qwen25"} {
			f, err := os.Open(testutil.Reference(t, "lengths", original+"."+tokenizer+".csv"))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			rows, err := csv.NewReader(f).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			s, err := parseName(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.builtin.read(Options{Tokenizer: tokenizer})
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Entries) != len(rows)-1 {
				t.Fatalf("%s.%s: %d entries, want %d", name, tokenizer, len(got.Entries), len(rows)-1)
			}
			for i, e := range got.Entries {
				if r := rows[i+1]; r[0] != strconv.Itoa(e.Prompt) || r[1] != strconv.Itoa(e.Output) {
					t.Errorf("%s.%s: entry %d is %d,%d, want %v", name, tokenizer, i+1, e.Prompt, e.Output, r)
				}
			}
		}
	}
}
