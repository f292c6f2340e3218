package calibrate

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trbench/trbench/results"
)

// A result with three requests, one of them failed: the second's three last tokens came in one chunk.
const detailedBench = `{
  "date": "20260101-000000", "endpoint_type": "openai", "backend": "vllm", "model_id": "m", "request_rate": "inf",
  "max_concurrency": 4, "duration": 99.0, "completed": 2, "total_input_tokens": 30, "total_output_tokens": 9,
  "input_lens": [10, 20, 7], "output_lens": [4, 5, 0],
  "ttfts": [0.1, 0.3, 0.0], "itls": [[0.02, 0.03, 0.01], [0.04, 0.06], []],
  "start_times": [1000.0, 1000.5, 1001.0],
  "generated_texts": ["a \"quoted\" text", "b", ""], "errors": ["", "", "timeout"],
  "mean_ttft_ms": 1.0, "spec_decode_acceptance_rate": 73.2}`

func mustBench(t testing.TB, text string) *Bench {
	t.Helper()
	b, err := ReadBench("bench.json", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestDetailedBench(t *testing.T) {
	b := mustBench(t, detailedBench)
	if b.Model != "m" || b.Backend != "vllm" || b.RequestRate != "inf" || b.Concurrency != 4 || !b.Detailed {
		t.Errorf("%+v", b)
	}
	if b.Requests != 2 || b.Failed != 1 || b.InputTokens != 30 || b.OutputTokens != 9 {
		t.Errorf("%d requests, %d failed, %d in, %d out", b.Requests, b.Failed, b.InputTokens, b.OutputTokens)
	}
	const end = 1000.5 + .3 + .1 // of the second request
	nearly(t, "duration", b.DurationS, end-1000, 1e-9)
	nearly(t, "throughput", b.OutputTokS, 9/b.DurationS, 1e-9)
	nearly(t, "acceptance", b.Acceptance.Or(0), .732, 1e-12)
	for _, c := range []struct {
		name      string
		d         *results.Dist
		mean, p50 float64
	}{
		{"ttft", b.TTFT, 200, 200}, {"tpot", b.TPOT, (20 + 25) / 2., 22.5}, {"e2e", b.E2E, (160 + 400) / 2., 280},
		{"icl", b.ICL, 32, 30}, {"itl", b.ITL, 160 / 7., 20}, // two zeros more
	} {
		nearly(t, c.name+" mean", c.d.Mean, c.mean, 1e-9)
		nearly(t, c.name+" p50", c.d.Percentile(50).Or(-1), c.p50, 1e-9)
	}
	if len(b.Warnings) != 2 || !mentions(b.Warnings, "2 of 9 tokens came in a chunk with others") {
		t.Errorf("%q", b.Warnings)
	}
}

func TestSummarisedBench(t *testing.T) {
	b := mustBench(t, `{"backend":"vllm","completed":10,"total_input_tokens":100,"total_output_tokens":500,"duration":5,
		"request_rate":2.5,"mean_ttft_ms":50,"median_ttft_ms":40,"p99_ttft_ms":90,"p90_ttft_ms":80,"std_ttft_ms":5,
		"mean_tpot_ms":10,"median_tpot_ms":9,
		"mean_itl_ms":11,"p99_itl_ms":30,"mean_e2el_ms":null}`)
	if b.Detailed || b.OutputTokS != 100 || b.RequestRateS != 2 || b.RequestRate != "2.5" || b.E2E != nil ||
		b.ITL != nil {
		t.Errorf("%+v", b)
	}
	want := &results.Dist{Mean: 50, Quantiles: []results.Quantile{{P: 50, Value: 40}, {P: 90, Value: 80},
		{P: 99, Value: 90}}}
	if d := cmp.Diff(want, b.TTFT); d != "" {
		t.Error(d)
	}
	if b.ICL == nil || b.ICL.Mean != 11 {
		t.Errorf("gaps of chunks %+v", b.ICL)
	}
}

func TestReadBenchSaysWhereAndWhat(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "f: empty, wanted a benchmark's result"},
		{"a list", "[]", "f:1: found an array, wanted an object"},
		{"cut", "{\n\"ttfts\": [1,", "f:2: truncated: the text ends inside the object"},
		{"no number", "{\n\"duration\": NaN}", "f:2: not JSON: invalid character 'N' looking for beginning of value"},
		{"twice", `{"duration":1,"duration":2}`,
			`f:1: column "duration": found it twice in one object, wanted it once`},
		{"behind", `{"completed":1} {}`, "f:1: found an object behind the object, wanted nothing"},
		{"something else", `{"completed":1}`,
			`f: column "total_output_tokens": missing, and so are ttfts and itls: not a result of vllm bench serve?`},
		{"half", `{"ttfts":[1]}`, "f: has one of ttfts and itls without the other"},
		{"text", "{\"itls\":[[1]],\n\"ttfts\":[\"1\"],\"output_lens\":[1]}",
			`f:2: column "ttfts": found "[\"1\"]", wanted a list of seconds`},
		{"no lengths", `{"itls":[],"ttfts":[]}`, `f: column "output_lens": missing beside ttfts and itls`},
		{"uneven", `{"itls":[[]],"ttfts":[1,2],"output_lens":[1,1]}`,
			`f:1: column "itls": has 1 entries, wanted 2, as many as ttfts`},
		{"negative", `{"itls":[[-1]],"ttfts":[1],"output_lens":[2],"duration":1}`,
			`f:1: column "itls": entry 1 holds -1, wanted seconds from 0 to 1e9`},
		{"none done", `{"itls":[[]],"ttfts":[1],"output_lens":[0]}`, "f: no request completed, of 1"},
		{"no duration", `{"itls":[[]],"ttfts":[1],"output_lens":[1]}`,
			`f: column "duration": missing or 0, and there are no start_times: wanted one of them`},
		{"a rate of words", `{"request_rate":"fast"}`,
			`f:1: column "request_rate": found "\"fast\"", wanted a number or "inf"`},
		{"a negative figure", `{"completed":1,"total_output_tokens":1,"duration":1,"mean_ttft_ms":-1}`,
			`f:1: column "mean_ttft_ms": found -1, wanted a number from 0 to 1e15`},
		{"part of a request", `{"completed":1.5,"total_output_tokens":1}`,
			`f:1: column "completed": found 1.5, wanted a whole number`},
	} {
		_, err := ReadBench("f", strings.NewReader(c.text))
		var data *DataError
		if !errors.As(err, &data) || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
}

func prediction(system string, n int) results.Point {
	dist := func(mean float64) *results.Dist {
		return &results.Dist{Mean: mean, Quantiles: []results.Quantile{{P: 50, Value: mean}, {P: 90, Value: 2 * mean},
			{P: 99, Value: 3 * mean}}}
	}
	return results.Point{System: system, Workload: "w", Concurrency: n, Requests: 2, OutputTokS: results.F(12),
		RequestRate: results.F(2),
		TTFT:        dist(220), TPOT: dist(18), E2E: dist(300), ITL: dist(20)}
}

func TestCheckBench(t *testing.T) {
	b := mustBench(t, detailedBench)
	p := prediction("tokenrouter", 4)
	r := CheckBench(b, &p)
	if r.Against != "tokenrouter w N=4" {
		t.Errorf("against %q", r.Against)
	}
	found := map[string]Figure{}
	for _, f := range r.Check {
		found[strings.TrimSpace(f.Name+" "+f.Statistic)] = f
	}
	for name, want := range map[string]float64{
		"ttft_ms mean": .1, "tpot_ms mean": 18/22.5 - 1, "output_tok_s": 12/b.OutputTokS - 1, "itl_ms p50": 0,
		"e2e_ms mean": 300./280 - 1,
	} {
		e, ok := found[name].Error.Get()
		if !ok || math.Abs(e-want) > 1e-9 {
			t.Errorf("%s: %+v, want an error of %g", name, found[name], want)
		}
	}
	if CheckBench(b, nil).Check != nil {
		t.Error("nothing predicted, and a check")
	}
	p = prediction("tokenrouter", 8)
	p.Requests = 7
	if r := CheckBench(mustBench(t, detailedBench), &p); !mentions(r.Warnings,
		"2 requests were measured and 7 predicted") ||
		!mentions(r.Warnings, "at a concurrency of 4, predicted at 8") {
		t.Errorf("%q", r.Warnings)
	}
}

func TestChoosePoint(t *testing.T) {
	s := &results.Summary{Points: []results.Point{prediction("a", 1), prediction("a", 4), prediction("b", 8),
		prediction("a", 8)}}
	b := &Bench{Concurrency: 4}
	if p, err := ChoosePoint(s, b, 0); err != nil || p.Concurrency != 4 {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := ChoosePoint(s, b, 3); err != nil || p.System != "b" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := ChoosePoint(&results.Summary{Points: s.Points[:1]}, b, 0); err != nil || p.Concurrency != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, c := range []struct {
		s      *results.Summary
		n      int
		number int
		want   string
	}{
		{s, 8, 0, "the summary has 4 points, 2 of them at a concurrency of 8: choose one (--point):\n  1: a w N=1"},
		{s, 0, 0, "the summary has 4 points"}, {s, 4, 5, "point 5: the summary has 4"}, {&results.Summary{}, 4, 0,
			"the summary has no points"},
	} {
		_, err := ChoosePoint(c.s, &Bench{Concurrency: c.n}, c.number)
		if !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

func FuzzReadBench(f *testing.F) {
	f.Add(detailedBench)
	f.Add(`{"completed":10,"total_output_tokens":500,"duration":5,"request_rate":2.5,"p99.9_ttft_ms":90}`)
	f.Add(`{"itls":[[]],"ttfts":[1],"output_lens":[9],"start_times":[0],"errors":[""]}`)
	f.Fuzz(func(t *testing.T, text string) {
		b, err := ReadBench("f", strings.NewReader(text))
		if err != nil {
			var data *DataError
			if !errors.As(err, &data) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if !(b.DurationS > 0) || math.IsNaN(b.OutputTokS) || b.Requests < 0 {
			t.Fatalf("%+v", b)
		}
		report := Report{Bench: CheckBench(b, nil)}
		if err := report.JSON(&strings.Builder{}); err != nil {
			t.Fatal(err)
		}
	})
}
