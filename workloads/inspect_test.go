package workloads

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestInspect(t *testing.T) {
	path := file(t, "a.csv", "prompt_tokens,output_tokens,arrival_s\n"+
		"1,10,1\nx,1,1\n2,20,2\n3,30,4\n0,1,9\n4,-1,9\n4,40,5\n")
	got, err := Inspect(path, 1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{
		File: path, Bytes: 85, Format: "lengths", Sampler: "none", Entries: 7, Usable: 4, Malformed: 2,
		Skipped: []Skip{{Reason: "prompt of 0 tokens", Count: 1}},
		Prompt:  &Lengths{Mean: 2.5, Min: 1, P50: 2.5, P90: 3.7, P99: 3.97, Max: 4},
		Output:  &Lengths{Mean: 25, Min: 10, P50: 25, P90: 37, P99: 39.7, Max: 40},
		// Gaps 1, 2 and 1 s: mean 4/3, standard deviation sqrt(1/3).
		Arrivals: &Arrivals{First: time.Second, Last: 5 * time.Second, Rate: .75, CV: math.Sqrt(1./3) * .75},
		Problems: []*DataError{{
			File: path, Line: 3, Entry: 2, Field: "prompt_tokens",
			Msg: `found "x", wanted a whole number from 0 to 16777216`,
		}},
		Found: 2, Notes: []string{},
	}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0), cmpopts.IgnoreUnexported(DataError{})); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if got.Err() == nil {
		t.Error("a file with problems is valid")
	}
	if _, err := json.Marshal(got); err != nil {
		t.Error(err)
	}
}

func TestInspectWhole(t *testing.T) {
	good, err := Inspect(file(t, "a.csv", table(3)), 5, Options{})
	if err != nil || good.Err() != nil || good.Usable != 3 {
		t.Errorf("a good file: %+v, %v", good, err)
	}
	for name, text := range map[string]string{
		"nothing usable": "prompt_tokens,output_tokens\n0,1\n",
		"empty":          "",
		"no form":        "hello\n",
		"truncated":      `[{"question":"a","answer":"b"},{`,
	} {
		r, err := Inspect(file(t, "a", text), 0, Options{})
		if err != nil || r.Err() == nil || r.Found != 1 {
			t.Errorf("%s: %+v, %v, want a report with one problem", name, r, err)
		}
	}
	if r, err := Inspect("no such file", 1, Options{}); err != nil || r.Err() == nil {
		t.Errorf("missing file: %+v, %v", r, err)
	}
	if _, err := Inspect("x", 1, Options{Sampler: "x"}); err == nil {
		t.Error("wrong option taken")
	}
}

// numpy.percentile([1, 2, 4, 8], [0, 25, 50, 90, 100]).
func TestPercentile(t *testing.T) {
	for q, want := range map[float64]float64{0: 1, .25: 1.75, .5: 3, .9: 6.8, 1: 8} {
		if got := percentile([]int{1, 2, 4, 8}, q); math.Abs(got-want) > 1e-12 {
			t.Errorf("%g: %g, want %g", q, got, want)
		}
	}
	if got := percentile([]int{7}, .99); got != 7 {
		t.Errorf("of one value: %g", got)
	}
}
