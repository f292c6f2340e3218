package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trbench/trbench/internal/testutil"
	"github.com/trbench/trbench/models/latency/kernels"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/fidelity"
	"github.com/trbench/trbench/sim/serve"
)

// The files of a small run: steps take 2 ms, and 1 us a token; there are two requests, of which the second shares a block
// of 4 with the first.
var small = map[string]string{
	SettingsFile: `{"gpu": "any", "model": "Llama-3.1-8B", "max_num_seqs": 4, "token_budget": 64, "block_size": 4,
 "kv_blocks": 20, "trace": "trace.jsonl", "tables": "tables"}`,
	"trace.jsonl": `{"input_toks": 8, "output_toks": 3, "arrival_time_ns": 1e9, "input_tok_ids": [1, 2, 3, 4, 5, 6, 7, 8]}
{"input_toks": 6, "output_toks": 1, "arrival_time_ns": 2e9, "input_tok_ids": [1, 2, 3, 4, 9, 9]}
`,
	RequestsFile: `{"request_id": "bench-0", "input_toks": 8, "output_toks": 3, "arrival_time": 101.0, "queued_ts": 11.0, "scheduled_ts": 11.0, "first_token_ts": 11.002, "last_token_ts": 11.007}
{"request_id": "bench-1", "input_toks": 6, "output_toks": 1, "arrival_time": 102.0, "queued_ts": 12.0, "scheduled_ts": 12.0, "first_token_ts": 12.004, "last_token_ts": 12.004}
`,
	TimeseriesFile: "t,prompt_throughput,gen_throughput,running,waiting,kv_cache_pct\n1.0,8.0,3.0,1,0,10.0\n2.0,2.0,1.0,0,0,0.0\n",
	"tables/dense.csv": "layer,tokens,time_us\n" +
		"qkv_proj,1,10\no_proj,1,10\ngate_up_proj,1,10\ndown_proj,1,10\ndown_proj,64,10\nlayernorm,1,0\nrotary_emb,1,0\n" +
		"act_fn,1,0\n" +
		"embedding,1,1\nembedding,1001,1001\nfinal_layernorm,1,0\n",
	"tables/per_sequence.csv": "layer,sequences,time_us\nlm_head,1,400\nlm_head,4,400\nsampler,1,0\n",
	"tables/attention.csv": "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n" +
		"0,0,1,1,10\n0,0,1,99,10\n0,0,4,1,10\n1,0,0,0,10\n64,0,0,0,10\n",
	"tables/skew.csv": "n,ratio,pc,kp,kvs,t_mean_us,t_max_us,t_skew_us\n2,0.5,0,0,16,10,20,10\n",
}

// folder writes the small run, with changes, and returns its folder. An empty text leaves a file out.
func folder(t testing.TB, changes map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range small {
		if changed, ok := changes[name]; ok {
			text = changed
		}
		if text == "" {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestSmall wants figures that can be done by hand. The first request feeds 8 tokens (2.008 ms) and then one at a time
// (2.001 ms each); the second finds 4 of its 6 tokens, and feeds 2 (2.002 ms).
func TestSmall(t *testing.T) {
	r, err := Open(folder(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	f, picture, err := r.Compare(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Warnings) > 0 {
		t.Errorf("warnings %q", f.Warnings)
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"TTFT real", f.TTFT.Mean.Real.Or(0), 3},
		{"TTFT predicted", f.TTFT.Mean.Predicted.Or(0), (2.008 + 2.002) / 2},
		{"TPOT real", f.TPOT.Mean.Real.Or(0), 2.5},
		{"TPOT predicted", f.TPOT.Mean.Predicted.Or(0), 2.001},
		{"E2E predicted", f.E2E.Mean.Predicted.Or(0), (6.01 + 2.002) / 2},
		{"tok/s real", f.OutputTokS.Real.Or(0), 4 / 1.004},
		{"tok/s predicted", f.OutputTokS.Predicted.Or(0), 4 / 1.002002},
		{"TPOT MAPE", f.TPOTMAPE.Or(0), 1 - 2.001/2.5},
	} {
		if math.Abs(c.got-c.want) > 1e-6*c.want {
			t.Errorf("%s: %.9g, want %.9g", c.what, c.got, c.want)
		}
	}
	var off []string
	for _, a := range f.Ablations {
		off = append(off, a.Without)
		if want := (2.008 + 2.006) / 2; a.Without == "prefix cache" && math.Abs(a.TTFT.Mean.Predicted.Or(0)-want) > 1e-6 {
			t.Errorf("TTFT without prefix cache: %v, want %v", a.TTFT.Mean.Predicted, want)
		}
	}
	want := []string{"async scheduling", "prefix cache", "KV limit", "whole-prompt admission", "attention skew", "elementwise kernels"}
	if !slices.Equal(off, want) {
		t.Errorf("switched off: %q, want %q", off, want)
	}
	if len(picture.Latencies) != 3 || len(picture.RealRunning) != 2 || len(picture.PredictedRunning) != 1 {
		t.Errorf("picture %+v", picture)
	}
}

// TestLacking wants runs to be compared all the same where what they lack has a substitute, with a word about it where
// that can change the figures.
func TestLacking(t *testing.T) {
	less := func(file, text string) map[string]string {
		return map[string]string{file: strings.ReplaceAll(small[file], text, "")}
	}
	set := func(old, text string) map[string]string {
		return map[string]string{SettingsFile: strings.ReplaceAll(small[SettingsFile], old, text)}
	}
	for _, c := range []struct {
		what    string
		changes map[string]string
		warning string // "" for none
	}{
		{"no timeseries", map[string]string{TimeseriesFile: ""}, ""},
		{"no skew", map[string]string{"tables/skew.csv": ""}, "has no skew.csv"},
		{"no trace", set(`"trace": "trace.jsonl", `, ""), "names no trace"},
		{"no token ids", less("trace.jsonl", `, "input_tok_ids": [1, 2, 3, 4, 9, 9]`), "1 of 2 requests have no input_tok_ids"},
		{"no arrivals at the client", map[string]string{RequestsFile: strings.NewReplacer(`"arrival_time": 101.0, `, "",
			`"arrival_time": 102.0, `, "").Replace(small[RequestsFile])}, ""},
		{"no queued_ts", map[string]string{RequestsFile: strings.NewReplacer(`"queued_ts": 11.0, `, "", `"queued_ts": 12.0, `,
			"").Replace(small[RequestsFile])}, ""},
		{"no lengths", map[string]string{RequestsFile: strings.NewReplacer(`"input_toks": 8, "output_toks": 3, `, "",
			`"input_toks": 6, `, "").Replace(small[RequestsFile])}, ""},
		{"no ids of requests", map[string]string{RequestsFile: strings.NewReplacer(`"request_id": "bench-0", `, "",
			`"request_id": "bench-1", `, "").Replace(small[RequestsFile])}, ""},
		{"an unfinished request", less(RequestsFile, `, "first_token_ts": 12.004, "last_token_ts": 12.004`),
			"1 of 2 requests have no end"},
		{"no limit", set(`"kv_blocks": 20`, `"kv_blocks": null`), ""},
		{"async off", set(`"gpu"`, `"async_scheduling": false, "gpu"`), "the host's time between two steps"},
		{"another dtype", set(`"gpu"`, `"dtype": "fp8", "gpu"`), "dtype fp8"},
		{"an organisation's model", set(`"Llama-3.1-8B"`, `"meta-llama/Llama-3.1-8B"`), ""},
		{"two GPUs without all-reduce", set(`"gpu"`, `"tp": 2, "gpu"`), "without measured all-reduces"},
		{"caching and chunks off", set(`"gpu"`, `"prefix_caching": false, "chunked_prefill": false, "gpu"`), ""},
		{"a trace in one list", map[string]string{"trace.jsonl": "[" + strings.Replace(strings.TrimSpace(small["trace.jsonl"]),
			"\n", ",\n", 1) + "]"}, ""},
	} {
		r, err := Open(folder(t, c.changes))
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		f, _, err := r.Compare(context.Background())
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if got := strings.Join(f.Warnings, "\n"); c.warning == "" && got != "" || !strings.Contains(got, c.warning) {
			t.Errorf("%s: warnings %q, want %q", c.what, f.Warnings, c.warning)
		}
		if got := f.TTFT.Percentile(50).Real.Or(0); got < 1.9 || got > 3.1 {
			t.Errorf("%s: TTFT of %g ms", c.what, got)
		}
	}
}

// TestOpenErrors wants file, line and field of what is wrong, by kind.
func TestOpenErrors(t *testing.T) {
	set := func(file, old, text string) map[string]string {
		return map[string]string{file: strings.Replace(small[file], old, text, 1)}
	}
	for _, c := range []struct {
		changes map[string]string
		want    string
	}{
		{map[string]string{SettingsFile: ""}, "run.json: no such file"},
		{map[string]string{SettingsFile: "{\n\"gpu\": }"}, "run.json: line 2: invalid character"},
		{set(SettingsFile, `"max_num_seqs": 4`, `"max_num_seqs": "four"`), `run.json: line 1: field "max_num_seqs": a JSON string, want a whole number`},
		{set(SettingsFile, `"max_num_seqs": 4`, `"max_num_seqs": 0`), `field "max_num_seqs": 0: want at least 1`},
		{set(SettingsFile, `"kv_blocks": 20`, `"kv_blocks": 1`), `field "kv_blocks": 1: want at least 2, or null`},
		{set(SettingsFile, `, "tables": "tables"`, ""), `field "tables": missing`},
		{set(SettingsFile, `"tables": "tables"`, `"tables": "nowhere"`), "dense.csv: no such file"},
		{set(SettingsFile, `"trace": "trace.jsonl"`, `"trace": "nowhere.jsonl"`), "nowhere.jsonl: no such file"},
		{set(SettingsFile, `"gpu"`, `"tp": 2, "allreduce": "nowhere.csv", "gpu"`), "nowhere.csv: no such file"},
		{map[string]string{RequestsFile: ""}, "requests.jsonl: no such file"},
		{map[string]string{RequestsFile: "\n"}, "requests.jsonl: no request"},
		{set(RequestsFile, `"first_token_ts": 12.004`, `"first_token_ts": "soon"`), `requests.jsonl: line 2: field "first_token_ts": a JSON string, want a number`},
		{set(RequestsFile, `"output_toks": 1`, `"output_toks": 0`), `requests.jsonl: line 2: field "output_toks": 0: want at least 1`},
		{set(RequestsFile, `"input_toks": 6`, `"input_toks": 7`), `line 2: field "input_toks": 7, the trace has 6 in line 2`},
		{set(RequestsFile, `"last_token_ts": 11.007`, `"last_token_ts": 11`), `line 1: field "last_token_ts": 11: before the first token`},
		{set(RequestsFile, `"queued_ts": 11.0, "scheduled_ts": 11.0, `, ""), `line 1: field "queued_ts": missing, and so is scheduled_ts`},
		{map[string]string{RequestsFile: strings.NewReplacer(`"last_token_ts"`, `"end"`).Replace(small[RequestsFile])}, `"last_token_ts": no request has one`},
		{map[string]string{"trace.jsonl": strings.Split(small["trace.jsonl"], "\n")[0]}, `line 2: field "request_id": "bench-1": the trace`},
		{set("trace.jsonl", `[1, 2, 3, 4, 9, 9]`, `[1, 2]`), `trace.jsonl: line 2: field "input_tok_ids": 2 token ids, want the 6`},
		{set("trace.jsonl", `[1, 2, 3, 4, 9, 9]`, `"text"`), `field "input_tok_ids": "\"text\"": want a list of token ids`},
		{set("trace.jsonl", `"input_toks": 6`, `"input_toks": []`), `trace.jsonl: line 2: field "input_toks": a JSON array, want a whole number`},
		{set(TimeseriesFile, "running", "busy"), `timeseries.csv: line 1: field "running": no such column`},
		{set(TimeseriesFile, "1.0,8.0,3.0,1", "1.0,8.0,3.0,one"), `timeseries.csv: line 2: field "running": "one": want a number`},
	} {
		_, err := Open(folder(t, c.changes))
		var data *DataError
		var table *kernels.Error
		if err == nil || !errors.As(err, &data) && !errors.As(err, &table) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	_, err := Open(folder(t, set(SettingsFile, "Llama-3.1-8B", "Llama-9")))
	if !errors.Is(err, ErrSettings) || !strings.Contains(err.Error(), `field "model"`) {
		t.Errorf("an unknown model: %v", err)
	}
	r, err := Open(folder(t, set(SettingsFile, `"kv_blocks": 20`, `"kv_blocks": 2`)))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Compare(context.Background()); !errors.Is(err, serve.ErrTooLong) {
		t.Errorf("requests beyond KV: %v", err)
	}
}

// TestOwnPrediction writes what is predicted as if it had been measured, and wants no error then.
func TestOwnPrediction(t *testing.T) {
	dir := folder(t, nil)
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.predict(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for i, q := range r.requests {
		at := p.Requests[i]
		line, err := json.Marshal(map[string]any{
			"request_id": fmt.Sprintf("x-%d", i), "input_toks": q.Prompt, "output_toks": q.Output,
			"arrival_time": 1000 + q.Arrival.Seconds(), "queued_ts": 50 + q.Arrival.Seconds(),
			"first_token_ts": 50 + at.First.Seconds(), "last_token_ts": 50 + at.Last.Seconds(),
		})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	if err := os.WriteFile(filepath.Join(dir, RequestsFile), []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	if r, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	f, _, err := r.Compare(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for what, off := range map[string]results.Float{
		"TTFT": f.TTFT.Mean.Error(), "TPOT": f.TPOT.Percentile(99).Error(), "E2E": f.E2EMAPE, "tok/s": f.OutputTokS.Error(),
	} {
		if x, ok := off.Get(); !ok || math.Abs(x) > 1e-6 {
			t.Errorf("%s: error %g", what, x)
		}
	}
}

// measuredRuns are the folders of real runs outside the repository; the test is skipped where there are none.
func measuredRuns(t testing.TB) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(testutil.Reference(t, "vllm-runs"), "*", "*", SettingsFile))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skip("no reference data")
	}
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found
}

// TestMeasuredRuns wants every real run to be predicted within the bounds that make a simulator fit for use.
func TestMeasuredRuns(t *testing.T) {
	for _, dir := range measuredRuns(t) {
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		f, _, err := r.Compare(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Warnings) > 0 {
			t.Errorf("%s: warnings %q", dir, f.Warnings)
		}
		for _, c := range []struct {
			what                string
			dist                *fidelity.Dist
			mean, p50, p90, p99 float64
		}{
			{"TPOT", f.TPOT, .04, .04, .05, .05}, {"E2E", f.E2E, .04, .05, .05, .05}, {"TTFT", f.TTFT, .06, .10, .06, .06},
		} {
			for _, s := range []struct {
				what  string
				pair  fidelity.Pair
				bound float64
			}{
				{"mean", c.dist.Mean, c.mean}, {"P50", c.dist.Percentile(50), c.p50}, {"P90", c.dist.Percentile(90), c.p90},
				{"P99", c.dist.Percentile(99), c.p99},
			} {
				if off, ok := s.pair.Error().Get(); !ok || math.Abs(off) > s.bound {
					t.Errorf("%s: %s %s off by %+.1f %%, want %.0f %% at most", dir, c.what, s.what, 100*off, 100*s.bound)
				}
			}
		}
		for what, mape := range map[string]results.Float{"TPOT": f.TPOTMAPE, "E2E": f.E2EMAPE} {
			if x, ok := mape.Get(); !ok || x > .04 {
				t.Errorf("%s: %s of a request off by %.1f %%, want 4 %% at most", dir, what, 100*x)
			}
		}
	}
}

// TestTensorParallel serves the trace of a real run on two GPUs, with their tables and measured all-reduces: without
// collectives TPOT is about three tenths too short, as a real run of this kind showed (31 %).
func TestTensorParallel(t *testing.T) {
	var dir string
	for _, d := range measuredRuns(t) {
		if strings.Contains(d, "RTXPRO6000") {
			dir = d
		}
	}
	data := filepath.Join(dir, "..", "..", "..")
	tables := filepath.Join(data, "step-latency", "RTXPRO6000")
	if _, err := os.Stat(filepath.Join(tables, "Qwen3-32B-tp2")); dir == "" || err != nil {
		t.Skip("no reference data")
	}
	records, err := os.ReadFile(filepath.Join(dir, RequestsFile))
	if err != nil {
		t.Fatal(err)
	}
	settings, err := json.Marshal(map[string]any{
		"gpu": "RTXPRO6000", "model": "Qwen3-32B", "tp": 2, "max_num_seqs": 128, "token_budget": 2048, "kv_blocks": nil,
		"trace":  filepath.Join(data, "datasets", "sharegpt_300_tokenids_llama31.jsonl"),
		"tables": filepath.Join(tables, "Qwen3-32B-tp2"), "allreduce": filepath.Join(tables, "allreduce.csv"),
	})
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	for name, text := range map[string][]byte{SettingsFile: settings, RequestsFile: records} {
		if err := os.WriteFile(filepath.Join(own, name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(own)
	if err != nil {
		t.Fatal(err)
	}
	f, _, err := r.Compare(context.Background()) // what it is compared with is another model's run: only the predictions count
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range f.Ablations {
		if a.Without != "collectives" {
			continue
		}
		all, without := f.TPOT.Mean.Predicted.Or(0), a.TPOT.Mean.Predicted.Or(0)
		t.Logf("TPOT %.1f ms, without collectives %.1f ms: %+.1f %%", all, without, 100*(without/all-1))
		if share := 1 - without/all; share < .26 || share > .36 {
			t.Errorf("collectives are %.1f %% of TPOT, want 26 to 36 %%", 100*share)
		}
		return
	}
	t.Error("collectives were not switched off")
}

// FuzzTokens wants a list of token ids as encoding/json reads it, or an error.
func FuzzTokens(f *testing.F) {
	for _, text := range []string{"[1, 2,3]", "[]", "null", `["a"]`, "[1 2]", "[99999999999]", "[1,,2]", "[[1]]", "[-1]"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want []int32
		if !json.Valid([]byte(text)) {
			return
		}
		bad := json.Unmarshal([]byte(text), &want)
		got, err := tokens([]byte(text))
		if err == nil && bad != nil {
			t.Fatalf("%q: read as %d, encoding/json says %v", text, got, bad)
		}
		if err == nil && !slices.Equal(got, want) {
			t.Fatalf("%q: read as %d, want %d", text, got, want)
		}
	})
}

// FuzzOpen wants any content of a run's files to be read, or to give an error that names the file.
func FuzzOpen(f *testing.F) {
	for _, name := range []string{SettingsFile, RequestsFile, TimeseriesFile, "trace.jsonl"} {
		f.Add(name, small[name])
	}
	f.Add(RequestsFile, `{"request_id": "bench--1", "arrival_time": 1e308, "queued_ts": -1e308, "last_token_ts": 5}`)
	f.Fuzz(func(t *testing.T, name, text string) {
		if _, ok := small[name]; !ok || strings.HasPrefix(name, "tables") || len(text) > 1<<14 {
			return
		}
		_, err := Open(folder(t, map[string]string{name: text}))
		var data *DataError
		var table *kernels.Error
		if err != nil && !errors.As(err, &data) && !errors.As(err, &table) && !errors.Is(err, ErrSettings) {
			t.Fatalf("%T: %v", err, err)
		}
	})
}

// BenchmarkReplay reads a real run with its trace and tables, and simulates it.
func BenchmarkReplay(b *testing.B) {
	for _, dir := range measuredRuns(b) {
		name := filepath.Base(filepath.Dir(dir))
		b.Run("open/run="+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Open(dir); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("predict/run="+name, func(b *testing.B) {
			r, err := Open(dir)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := r.predict(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
