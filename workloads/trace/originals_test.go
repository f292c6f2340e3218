package trace

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/trbench/trbench/internal/testutil"
)

// published is a row of the reference statistics, by column.
func published(t *testing.T, dataset string) map[string]float64 {
	t.Helper()
	f, err := os.Open(testutil.Reference(t, "lengths", "STATS.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows[1:] {
		if r[0] == dataset {
			m := map[string]float64{}
			for i, name := range rows[0][1:] {
				m[name], _ = strconv.ParseFloat(r[i+1], 64)
			}
			return m
		}
	}
	t.Fatalf("no statistics of %s", dataset)
	return nil
}

// Files of numbers give the published counts and means; files of text the published count of entries.
func TestOriginals(t *testing.T) {
	for _, c := range []struct {
		file, stats string
		format      Format
		skipped     int
		mean        bool
	}{
		{"AzureLLMInferenceTrace_code.csv", "azure2023_code", Azure, 0, true},
		{"AzureLLMInferenceTrace_conv.csv", "azure2023_conv", Azure, 0, true},
		{"mooncake_conversation.jsonl", "mooncake_conversation", Mooncake, 0, true},
		{"sharegpt_300_tokenids_llama31.jsonl", "sharegpt_lss_300.llama31", Lengths, 0, true},
		{"alpaca_5000.json", "alpaca_5000.llama31", Alpaca, 0, false},
		{"gsm8k_test.jsonl", "gsm8k_test.llama31", GSM8K, 0, false},
		{"gsm8k_train.jsonl", "gsm8k_train.llama31", GSM8K, 0, false},
		{"sharegpt_v3_1000.json", "sharegpt_mlenergy_1000_prompts.llama31", ShareGPT, 1000, false}, // prompts only
	} {
		t.Run(c.file, func(t *testing.T) {
			got, err := ReadFile(testutil.Reference(t, "datasets", c.file), Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := published(t, c.stats)
			if got.Format != c.format || got.Total != int(want["n"]) || got.Total-len(got.Entries) != c.skipped {
				t.Errorf("%s, %d entries, %d skipped; want %s, %v, %d", got.Format, got.Total,
					got.Total-len(got.Entries), c.format, want["n"], c.skipped)
			}
			if !c.mean {
				return
			}
			var prompt, output int
			for _, e := range got.Entries {
				prompt, output = prompt+e.Prompt, output+e.Output
			}
			n := float64(len(got.Entries))
			if p, o := float64(prompt)/n, float64(output)/n; math.Abs(p-want["prompt_mean"]) > .0501 ||
				math.Abs(o-want["output_mean"]) > .0501 {
				t.Errorf("means %.2f and %.2f, want %v and %v", p, o, want["prompt_mean"], want["output_mean"])
			}
		})
	}
}

// How far estimates are from the real tokenizers' counts: what the Estimator's documentation says, to a tenth.
func TestEstimatorAgainstTokenizers(t *testing.T) {
	for _, c := range []struct {
		file, counts            string
		tokenizer               Tokenizer
		promptTotal, promptEach float64 // per cent; 0 where the counts are of another text
		outputTotal, outputEach float64
	}{
		{"gsm8k_test.jsonl", "gsm8k_test", Llama31, -1.2, 3.2, -.1, 2.7},
		{"gsm8k_test.jsonl", "gsm8k_test", Qwen25, -1.2, 3.1, .2, 2.4},
		{"gsm8k_train.jsonl", "gsm8k_train", Llama31, -1.1, 3.2, -.1, 2.7}, // not in the fit
		{"gsm8k_train.jsonl", "gsm8k_train", Qwen25, -1.1, 3.1, .2, 2.4},
		{"alpaca_5000.json", "alpaca_5000", Llama31, 0, 0, -.3, 6.0}, // prompts were counted without the template
		{"alpaca_5000.json", "alpaca_5000", Qwen25, 0, 0, -.4, 6.0},
	} {
		t.Run(c.counts+"."+string(c.tokenizer), func(t *testing.T) {
			est, err := ReadFile(testutil.Reference(t, "datasets", c.file), Options{Tokenizer: c.tokenizer})
			if err != nil {
				t.Fatal(err)
			}
			exact, err := ReadFile(testutil.Reference(t, "lengths", c.counts+"."+string(c.tokenizer)+".csv"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			promptTotal, promptEach := errors100(est.Entries, exact.Entries, func(e Entry) int { return e.Prompt })
			outputTotal, outputEach := errors100(est.Entries, exact.Entries, func(e Entry) int { return e.Output })
			if c.promptEach != 0 {
				near(t, "prompts, total", promptTotal, c.promptTotal)
				near(t, "prompts, each", promptEach, c.promptEach)
			}
			near(t, "outputs, total", outputTotal, c.outputTotal)
			near(t, "outputs, each", outputEach, c.outputEach)
		})
	}
}

// errors100 is, in per cent, the error of the total and the mean absolute error of an entry.
func errors100(est, exact []Entry, of func(Entry) int) (total, each float64) {
	var sum, want, n int
	for i, e := range est {
		a, b := of(e), of(exact[i])
		if b == 0 {
			continue
		}
		sum, want, n = sum+a, want+b, n+1
		each += math.Abs(float64(a-b)) / float64(b)
	}
	return 100 * (float64(sum)/float64(want) - 1), 100 * each / float64(n)
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > .1 {
		t.Errorf("%s: %+.2f %%, documented %+.1f %%", what, got, want)
	}
}

// ShareGPT's first turns, of which only the mean of the real counts is known.
func TestEstimatorShareGPTMean(t *testing.T) {
	for _, tokenizer := range Tokenizers() {
		path := testutil.Reference(t, "datasets", "sharegpt_v3_1000.json")
		got, err := ReadFile(path, Options{Tokenizer: tokenizer, PromptsOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		sum := 0
		for _, e := range got.Entries {
			sum += e.Prompt
		}
		mean := float64(sum) / float64(len(got.Entries))
		want := published(t, "sharegpt_mlenergy_1000_prompts."+string(tokenizer))["prompt_mean"]
		if off := 100 * (mean/want - 1); len(got.Entries) != 1000 || math.Abs(off) > 1 {
			t.Errorf("%s: mean of %d prompts %.1f, want %.1f (%+.2f %%)", tokenizer, len(got.Entries), mean, want, off)
		}
	}
}
