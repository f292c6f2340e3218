package results

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func dist(mean, p50, p90, p99 float64) *Dist {
	return &Dist{mean, []Quantile{{50, p50}, {90, p90}, {99, p99}}}
}

// exampleSummary has every kind of value, present and missing.
func exampleSummary() *Summary {
	s := &Summary{
		Run: "0f3a", Clock: "virtual", Seed: math.MaxUint64,
		Points: []Point{
			{
				System: TokenRouter, Algorithm: "r2r", Workload: "gsm8k", Pair: "llama3-8b-70b", Concurrency: 16,
				Threshold: []int{1, 5}, Requests: 1000, OutputTokens: 123456, DurationS: F(12.3),
				OutputTokS: F(123456 / 12.3), SteadyTokS: F(1240.1), LargeShare: F(0.21), Hops: F(31.2),
				TTFT: dist(12, 11, 14, 20), TPOT: dist(8, 7.5, 9, 12),
				ITL:       &Dist{8, []Quantile{{50, 6}, {90, 6.5}, {99, 61}, {99.9, 80}}},
				E2E:       dist(900, 850, 1200, 1500),
				BatchMean: []Float{F(12.1), {}}, Busy: []Float{F(0.91), F(0.77)},
				Switch: &Switch{Enqueue: dist(1, 1, 1, 2), Transport: dist(3, 3, 3, 4)},
				Source: "simulated", Arrival: "closed", Batching: "threshold", Latency: "a100",
				Axes:    Axes{{"switch_rate", "0.1"}, {"kv_tokens", "4096"}},
				Repeats: 3, OutputCI95: F(1.5), Note: "few requests",
			},
			{
				System: "rpc:vllm-apc", Algorithm: "r2r", Workload: "gsm8k", Pair: "llama3-8b-70b", Concurrency: 16,
				Requests: 1000, Failed: 2, OutputTokens: 120000, OutputTokS: F(600), TTFT: dist(12, 11, 14, 25),
				TPOT: dist(16, 15, 18, 20), Arrival: "closed",
			},
			{System: "large-only"},
		},
		Claims: []Claim{
			{
				Source: "paper", ID: "ablation/n4/eager", Published: F(161.26), Ours: F(160.9),
				Difference: Change(F(160.9), F(161.26)), Kind: "fitted", Status: "reproduced", Why: "kappa was set on it",
			},
			{Source: "article", ID: "code", Kind: "predicted", Status: "not", Why: ""},
		},
		Warnings: []string{"a doubt"},
	}
	s.Comparisons = Comparisons(s.Points)
	return s
}

// The golden file shows the layout; that it says what the value says is the round trip's to check.
func TestSummaryIsWrittenAsBefore(t *testing.T) {
	got := AppendSummary(nil, exampleSummary())
	golden := filepath.Join("testdata", "summary.json")
	if os.Getenv("REWRITE") != "" {
		if err := os.WriteFile(golden, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestSummaryRoundTrip(t *testing.T) {
	want := exampleSummary()
	var buf bytes.Buffer
	if err := WriteSummary(&buf, want); err != nil {
		t.Fatal(err)
	}
	if !json.Valid(buf.Bytes()) || buf.Bytes()[buf.Len()-1] != '\n' {
		t.Fatalf("not JSON with a newline at its end:\n%s", buf.Bytes())
	}
	first := buf.String()
	got, err := ReadSummary("memory", &buf)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if again := string(AppendSummary(nil, got)); again != first {
		t.Errorf("written again:\n%s\nfirst:\n%s", again, first)
	}
}

// Every field of every struct is written under its key: the writer is by hand, the reader goes by the tags.
func TestSummaryWritesEveryField(t *testing.T) {
	written := map[string]any{}
	if err := json.Unmarshal(AppendSummary(nil, exampleSummary()), &written); err != nil {
		t.Fatal(err)
	}
	first := func(key string) map[string]any { return written[key].([]any)[0].(map[string]any) }
	for _, c := range []struct {
		value  any
		object map[string]any
		extra  int // keys that are not fields
	}{
		{Summary{}, written, 1}, // schema
		{Point{}, first("points"), 0},
		{Comparison{}, first("comparisons"), 0},
		{Claim{}, first("claims"), 0},
		{Switch{}, first("points")["switch_us"].(map[string]any), 0},
	} {
		typ := reflect.TypeOf(c.value)
		for i := range typ.NumField() {
			if _, ok := c.object[typ.Field(i).Tag.Get("json")]; !ok {
				t.Errorf("%s.%s is not written", typ.Name(), typ.Field(i).Name)
			}
		}
		if len(c.object) != typ.NumField()+c.extra {
			t.Errorf("%s: %d keys written for %d fields", typ.Name(), len(c.object), typ.NumField())
		}
	}
}

// An empty summary has lists that are empty, and values that are null where nothing is known.
func TestMissingIsNull(t *testing.T) {
	var got struct {
		Points      []map[string]any
		Comparisons []any
		Claims      []any
		Warnings    []any
	}
	s := &Summary{Points: []Point{{OutputTokS: F(math.NaN()), SteadyTokS: F(math.Inf(1)), TPOT: &Dist{Mean: math.NaN()}}}}
	if err := json.Unmarshal(AppendSummary(nil, s), &got); err != nil {
		t.Fatal(err)
	}
	if got.Comparisons == nil || got.Claims == nil || got.Warnings == nil {
		t.Error("an empty list is written as null")
	}
	for _, key := range []string{
		"algorithm", "concurrency", "threshold", "duration_s", "output_tok_s", "steady_tok_s", "goodput_req_s",
		"large_fraction", "hops_per_request", "ttft_ms", "itl_ms", "e2e_ms", "batch_mean", "busy", "switch_us",
		"cost_usd_per_mtok", "batching", "axes", "slo_attainment", "repeats", "percentile_note",
	} {
		if v, ok := got.Points[0][key]; !ok || v != nil {
			t.Errorf("%s: %v, want null", key, v)
		}
	}
	if mean := got.Points[0]["tpot_ms"].(map[string]any)["mean"]; mean != nil {
		t.Errorf("mean of NaN: %v, want null", mean)
	}
}

// A value inside another document is written as in summary.json.
func TestMarshalAgreesWithWrite(t *testing.T) {
	s := exampleSummary()
	byMarshal, err := json.Marshal(*s)
	if err != nil {
		t.Fatal(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, AppendSummary(nil, s)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(byMarshal, compact.Bytes()) {
		t.Errorf("got  %s\nwant %s", byMarshal, compact.Bytes())
	}
	for _, v := range []any{
		s.Points[0], &s.Points[0], s.Points[0].ITL, *s.Points[0].ITL, s.Points[0].Axes, s.Points[0].DurationS,
		s.Points[0].Switch, s.Comparisons[0], s.Claims[0], s.Claims,
	} {
		one, err := json.Marshal(v)
		if err != nil || !bytes.Contains(compact.Bytes(), one) {
			t.Errorf("%T: %v: %s is not part of the summary", v, err, one)
		}
	}
}

func TestReadSummaryIsStrictAboutTheSchema(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{``, "s.json: line 1: column 0: not JSON: unexpected end of JSON input"},
		{`[]`, "s.json: line 1: found array, want an object"},
		{`{}`, `s.json: field schema: missing: want "trbench.summary/1"`},
		{`{"schema":"trbench.run/1"}`, `s.json: field schema: found "trbench.run/1", want "trbench.summary/1"`},
		{`{"schema":"trbench.summary/2"}`, `s.json: field schema: found "trbench.summary/2", want "trbench.summary/1"`},
		{
			"{\"schema\":\"trbench.summary/1\",\n\"points\":[{\n\"requests\":\"many\"}]}",
			"s.json: line 3: field points.requests: found string, want int",
		},
		{
			`{"schema":"trbench.summary/1","points":[{"tpot_ms":{"p050":1}}]}`,
			`s.json: key "p050" in a distribution: want mean or a percentile such as p99.9`,
		},
		{
			`{"schema":"trbench.summary/1"} {}`,
			"s.json: line 1: column 32: not JSON: invalid character '{' after top-level value",
		},
	} {
		if _, err := ReadSummary("s.json", strings.NewReader(c.text)); err == nil || err.Error() != c.want {
			t.Errorf("%s\ngot  %v\nwant %s", c.text, err, c.want)
		}
	}
	s, err := ReadSummary("s.json", strings.NewReader(`{"schema":"trbench.summary/1","later":{},"seed":3}`))
	if err != nil || s.Seed != 3 {
		t.Errorf("a key that is not known yet: %+v, %v", s, err)
	}
}

func TestPercentileOfADist(t *testing.T) {
	d := &Dist{1, []Quantile{{50, 2}, {99.9, 3}}}
	if d.Percentile(99.9) != F(3) || !d.Percentile(99).IsNull() || !(*Dist)(nil).Percentile(50).IsNull() {
		t.Error("want p99.9 = 3, no p99, and nothing of nothing")
	}
	if d.MeanValue() != F(1) || !(*Dist)(nil).MeanValue().IsNull() {
		t.Error("want mean 1, and nothing of nothing")
	}
}

func TestFloat(t *testing.T) {
	if x, ok := F(2).Get(); x != 2 || !ok {
		t.Error("F(2) is not 2")
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if f := F(x); !f.IsNull() || f != (Float{}) || f.Or(7) != 7 {
			t.Errorf("F(%v) is not nothing", x)
		}
	}
	for _, c := range []struct{ got, want Float }{
		{Ratio(F(6), F(3)), F(2)},
		{Ratio(F(6), F(0)), Float{}},
		{Ratio(F(6), Float{}), Float{}},
		{Ratio(Float{}, F(6)), Float{}},
		{Change(F(6), F(10)), F(-0.4)},
		{Change(F(6), F(0)), Float{}},
	} {
		if c.got != c.want {
			t.Errorf("got %+v, want %+v", c.got, c.want)
		}
	}
	var f Float
	if err := json.Unmarshal([]byte(`"x"`), &f); err == nil {
		t.Error("a string was read as a number")
	}
}

func TestComparisons(t *testing.T) {
	s := exampleSummary()
	want := []Comparison{{
		Of: "tokenrouter", Against: "rpc:vllm-apc", Algorithm: "r2r", Workload: "gsm8k", Concurrency: 16,
		ThroughputRatio: Ratio(s.Points[0].OutputTokS, F(600)), TPOTP99Change: F(-0.4), TTFTP99Change: F(-0.2),
		Pair: "llama3-8b-70b", Arrival: "closed", Axes: Axes{{"switch_rate", "0.1"}, {"kv_tokens", "4096"}},
	}}
	if !reflect.DeepEqual(s.Comparisons, want) {
		t.Errorf("got  %+v\nwant %+v", s.Comparisons, want)
	}
}

func TestComparisonsPairTheSameWork(t *testing.T) {
	at := func(system, algorithm string, n int, axes ...Axis) Point {
		return Point{System: system, Algorithm: algorithm, Workload: "w", Concurrency: n, Axes: axes}
	}
	points := []Point{
		at(TokenRouter, "r2r", 4, Axis{"p", "1"}),
		at(TokenRouter, "r2r", 4, Axis{"p", "2"}),
		at(TokenRouter, "me", 8),
		at("rpc", "r2r", 4, Axis{"p", "1"}, Axis{"rtt", "5"}),
		at("rpc", "me", 4),
		at("large-only", "", 4),
		at("large-only", "", 8),
	}
	var got []string
	for _, c := range Comparisons(points) {
		p := ""
		for _, a := range c.Axes {
			p += a.Value
		}
		got = append(got, c.Algorithm+p+" "+c.Against)
	}
	want := []string{"r2r1 rpc", "r2r1 large-only", "r2r2 large-only", "me large-only"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Against itself a point is 1 and 0, and a ratio turned round is its inverse.
func TestCompareIsConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) *Point {
			x := rapid.Float64Range(1e-3, 1e6)
			return &Point{
				OutputTokS: F(x.Draw(t, name)), TPOT: dist(1, 1, 1, x.Draw(t, name)), TTFT: dist(1, 1, 1, x.Draw(t, name)),
			}
		}
		a, b := draw("a"), draw("b")
		if c := Compare(a, a); c.ThroughputRatio != F(1) || c.TPOTP99Change != F(0) || c.TTFTP99Change != F(0) {
			t.Fatalf("against itself: %+v", c)
		}
		there, back := Compare(a, b).ThroughputRatio.Or(0), Compare(b, a).ThroughputRatio.Or(0)
		if math.Abs(there*back-1) > 1e-12 {
			t.Fatalf("there %v, back %v", there, back)
		}
	})
}

func FuzzReadSummary(f *testing.F) {
	f.Add(AppendSummary(nil, exampleSummary()))
	f.Add([]byte(`{"schema":"trbench.summary/1","points":[{"axes":{"a":"b"},"busy":[null],"tpot_ms":{"p1":1}}]}`))
	f.Fuzz(func(t *testing.T, input []byte) {
		first, err := ReadSummary("fuzz", bytes.NewReader(input))
		if err != nil {
			return
		}
		once := AppendSummary(nil, first)
		second, err := ReadSummary("again", bytes.NewReader(once))
		if err != nil {
			t.Fatalf("%v:\n%s", err, once)
		}
		if twice := AppendSummary(nil, second); !bytes.Equal(once, twice) {
			t.Fatalf("once:\n%s\ntwice:\n%s", once, twice)
		}
	})
}
