package results

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"pgregory.net/rapid"
)

var (
	exampleLabel   = Label{3, "rpc:vllm-apc", "r2r", "gsm8k", "llama3-8b-70b", 16}
	exampleRequest = Request{
		ID: 7, Arrival: 1_000_000, Sent: 1_000_500, First: 85_250_000, Last: 1_085_250_001,
		PromptTokens: 95, OutputTokens: 131, LargeTokens: 28, Hops: 41, MaxITL: 61_000_000,
		Agreement: F(0.75), NLL: F(1.5),
	}
)

func TestAppendJSON(t *testing.T) {
	for _, c := range []struct {
		name    string
		label   Label
		request Request
		want    string
	}{
		{
			"finished", exampleLabel, exampleRequest,
			`{"point":3,"system":"rpc:vllm-apc","algorithm":"r2r","workload":"gsm8k","pair":"llama3-8b-70b",` +
				`"concurrency":16,"id":7,"status":"finished","warmup":false,"prompt_tokens":95,"output_tokens":131,` +
				`"large_tokens":28,"hops":41,"agreement":0.75,"nll_nats_per_token":1.5,"arrival_ns":1000000,"sent_ns":1000500,"first_token_ns":85250000,` +
				`"last_token_ns":1085250001,"ttft_ms":84.25,"tpot_ms":7.6923077,"itl_max_ns":61000000,"e2e_ms":1084.250001}`,
		},
		{
			"one token has no TPOT", Label{}, Request{Arrival: 5, Sent: 5, First: 10, Last: 10, OutputTokens: 1, Warmup: true},
			`{"point":0,"system":"","algorithm":"","workload":"","pair":"","concurrency":null,"id":0,` +
				`"status":"finished","warmup":true,"prompt_tokens":0,"output_tokens":1,"large_tokens":0,"hops":0,` +
				`"agreement":null,"nll_nats_per_token":null,` +
				`"arrival_ns":5,"sent_ns":5,"first_token_ns":10,"last_token_ns":10,"ttft_ms":0.000005,"tpot_ms":null,` +
				`"itl_max_ns":null,"e2e_ms":0.000005}`,
		},
		{
			"no token has no latency", Label{}, Request{Arrival: 5, Status: Rejected, Error: "KV: need 3, have 2", Text: "\n"},
			`{"point":0,"system":"","algorithm":"","workload":"","pair":"","concurrency":null,"id":0,` +
				`"status":"rejected","warmup":false,"prompt_tokens":0,"output_tokens":0,"large_tokens":0,"hops":0,` +
				`"agreement":null,"nll_nats_per_token":null,` +
				`"arrival_ns":5,"sent_ns":0,"first_token_ns":null,"last_token_ns":null,"ttft_ms":null,"tpot_ms":null,` +
				`"itl_max_ns":null,"e2e_ms":null,"error":"KV: need 3, have 2","text":"\n"}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(AppendJSON(nil, &c.label, &c.request)); got != c.want+"\n" {
				t.Errorf("got  %swant %s", got, c.want)
			}
		})
	}
}

func TestLatenciesOfARequest(t *testing.T) {
	r := Request{Arrival: 2e6, Sent: 3e6, First: 10e6, Last: 40e6, OutputTokens: 4}
	if d, ok := r.TTFT(); d != 8*time.Millisecond || !ok {
		t.Errorf("TTFT: %v %v", d, ok)
	}
	if d, ok := r.TTFTFromSend(); d != 7*time.Millisecond || !ok {
		t.Errorf("TTFT from send: %v %v", d, ok)
	}
	if ms, ok := r.TPOT(); ms != 10 || !ok {
		t.Errorf("TPOT: %v %v", ms, ok)
	}
	if d, ok := r.E2E(); d != 38*time.Millisecond || !ok {
		t.Errorf("E2E: %v %v", d, ok)
	}
	r.OutputTokens = 1
	if ms, ok := r.TPOT(); ok {
		t.Errorf("TPOT of one token: %v, want undefined", ms)
	}
	r.OutputTokens = 0
	if _, ok := r.TTFT(); ok {
		t.Error("TTFT of no token: want undefined")
	}
	if _, ok := r.E2E(); ok {
		t.Error("E2E of no token: want undefined")
	}
}

// genRecord draws records that keep Request's invariant.
func genRecord(t *rapid.T) Record {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "r2r", "\u2028\x00\"\\"}))
	n := rapid.Int32Min(0)
	r := Request{
		ID: rapid.Int32().Draw(t, "id"), Arrival: clock.Instant(rapid.Int64Range(0, 1<<60).Draw(t, "arrival")),
		Sent:         clock.Instant(rapid.Int64Range(0, 1<<60).Draw(t, "sent")),
		PromptTokens: n.Draw(t, "prompt"), OutputTokens: n.Draw(t, "output"), LargeTokens: n.Draw(t, "large"),
		Hops: n.Draw(t, "hops"), Status: Status(rapid.IntRange(0, 3).Draw(t, "status")),
		Warmup: rapid.Bool().Draw(t, "warmup"), Error: text.Draw(t, "error"), Text: text.Draw(t, "text"),
	}
	if rapid.Bool().Draw(t, "judged") {
		r.Agreement = F(rapid.Float64Range(0, 1).Draw(t, "agreement"))
		r.NLL = F(rapid.Float64Range(0, 1e9).Draw(t, "NLL"))
	}
	if r.OutputTokens > 0 {
		span := rapid.Int64Range(0, 1<<60)
		r.First = r.Arrival + clock.Instant(span.Draw(t, "ttft"))
		r.Last = r.First + clock.Instant(span.Draw(t, "rest"))
	}
	if r.OutputTokens > 1 {
		r.MaxITL = time.Duration(rapid.Int64Range(0, 1<<60).Draw(t, "max itl"))
	}
	label := Label{
		Point: rapid.IntRange(0, 1e6).Draw(t, "point"), System: text.Draw(t, "system"),
		Algorithm: text.Draw(t, "algorithm"), Workload: text.Draw(t, "workload"), Pair: text.Draw(t, "pair"),
		Concurrency: rapid.IntRange(0, 1e6).Draw(t, "concurrency"),
	}
	return Record{label, r}
}

func TestRecordsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(genRecord), 0, 5).Draw(t, "records")
		var lines []byte
		for i := range want {
			start := len(lines)
			lines = AppendJSON(lines, &want[i].Label, &want[i].Request)
			line := lines[start:]
			if bytes.Count(line, []byte("\n")) != 1 || !json.Valid(line) {
				t.Fatalf("not one line of JSON: %q", line)
			}
		}
		i := 0
		for got, err := range ReadRequests("memory", bytes.NewReader(lines)) {
			if err != nil {
				t.Fatal(err)
			}
			if got != want[i] {
				t.Fatalf("record %d: got %+v, want %+v", i, got, want[i])
			}
			i++
		}
		if i != len(want) {
			t.Fatalf("%d records, want %d", i, len(want))
		}
	})
}

func TestReadRequestsSaysWhere(t *testing.T) {
	good := string(AppendJSON(nil, &exampleLabel, &exampleRequest))
	edit := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("%q is not in the example", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for _, c := range []struct{ line, want string }{
		{`{"point":`, "r.jsonl:2: column 9: not JSON: unexpected end of JSON input"},
		{`{}`, "r.jsonl:2: field point: missing: want the index of a point"},
		{edit(`"id":7,`, ``), "r.jsonl:2: field id: missing: want the request's number"},
		{edit(`"arrival_ns":1000000,`, ``), "r.jsonl:2: field arrival_ns: missing: want the scheduled arrival"},
		{edit(`"arrival_ns":1000000`, `"arrival_ns":-1`), "r.jsonl:2: field arrival_ns: -1: want 0 or more"},
		{edit(`"point":3`, `"point":-3`), "r.jsonl:2: field point: -3: want 0 or more"},
		{edit(`"hops":41`, `"hops":"41"`), "r.jsonl:2: field hops: found string, want int32"},
		{edit(`"hops":41`, `"hops":4100000000`), "r.jsonl:2: field hops: found number 4100000000, want int32"},
		{edit(`"output_tokens":131`, `"output_tokens":-1`), "r.jsonl:2: field output_tokens: -1: want 0 or more"},
		{
			edit(`"finished"`, `"done"`),
			`r.jsonl:2: field status: status "done": want one of ["finished" "cancelled" "rejected" "failed"]`,
		},
		{
			edit(`"first_token_ns":85250000`, `"first_token_ns":null`),
			"r.jsonl:2: field first_token_ns: null with 131 output tokens",
		},
		{
			edit(`"last_token_ns":1085250001`, `"last_token_ns":null`),
			"r.jsonl:2: field last_token_ns: null with 131 output tokens",
		},
		{
			edit(`"first_token_ns":85250000`, `"first_token_ns":10`),
			"r.jsonl:2: field first_token_ns: 10: want arrival_ns 1000000 or later",
		},
		{
			edit(`"last_token_ns":1085250001`, `"last_token_ns":20`),
			"r.jsonl:2: field last_token_ns: 20: want first_token_ns 85250000 or later",
		},
	} {
		n, last := 0, error(nil)
		for _, err := range ReadRequests("r.jsonl", strings.NewReader(good+c.line+"\n"+good)) {
			n, last = n+1, err
		}
		if n != 2 || last == nil || last.Error() != c.want {
			t.Errorf("%s: after %d records: %v\nwant: %s", c.line, n, last, c.want)
		}
	}
}

func TestReadRequestsStopsWhenAskedTo(t *testing.T) {
	line := string(AppendJSON(nil, &exampleLabel, &exampleRequest))
	n := 0
	for range ReadRequests("r.jsonl", strings.NewReader(line+"\n\n"+line+line)) { // blank lines are passed over
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

func FuzzReadRequests(f *testing.F) {
	f.Add(AppendJSON(nil, &exampleLabel, &exampleRequest))
	f.Add(AppendJSON(nil, &Label{}, &Request{Status: Failed, Error: "\u2028"}))
	f.Add([]byte("{}\n\n[1]\n"))
	f.Fuzz(func(t *testing.T, input []byte) {
		for first, err := range ReadRequests("fuzz", bytes.NewReader(input)) {
			if err != nil {
				return
			}
			again := AppendJSON(nil, &first.Label, &first.Request)
			for second, err := range ReadRequests("again", bytes.NewReader(again)) {
				if err != nil || second != first {
					t.Fatalf("%s: %v\ngot  %+v\nwant %+v", again, err, second, first)
				}
			}
		}
	})
}

func BenchmarkAppendJSON(b *testing.B) {
	buf := make([]byte, 0, 1024)
	for b.Loop() {
		buf = AppendJSON(buf[:0], &exampleLabel, &exampleRequest)
	}
	b.SetBytes(int64(len(buf)))
}
