package workloads

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trbench/trbench/workloads/arrival"
)

func load(t testing.TB, name string, o Options) *Set {
	t.Helper()
	s, err := Load(name, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// file is a dataset file with the given text.
func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func loadFile(t testing.TB, path string, o Options) *Set {
	t.Helper()
	s, err := LoadFile(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// table is a lengths file of n different requests, i+1 prompt tokens and 10 (i+1) output tokens each.
func table(n int) string {
	var b strings.Builder
	b.WriteString("prompt_tokens,output_tokens\n")
	for i := range n {
		fmt.Fprintf(&b, "%d,%d\n", i+1, 10*(i+1))
	}
	return b.String()
}

func TestFixed(t *testing.T) {
	s := load(t, " Fixed:512, 128 ", Options{N: 3, Warmup: 1, Seed: 9, Sampler: "vllm"})
	want := &Set{
		Name: "fixed:512,128", Source: "equal requests", Sampler: "none", Skipped: []Skip{}, Notes: []string{},
		Requests: []Request{{Prompt: 512, Output: 128}, {Prompt: 512, Output: 128}, {Prompt: 512, Output: 128}},
		Warmup:   []Request{{Prompt: 512, Output: 128}},
		SHA256:   fmt.Sprintf("%x", sha256.Sum256([]byte("trbench.requests/1\n512,128,0\n512,128,0\n512,128,0\n"))),
	}
	if d := cmp.Diff(want, s); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestLoadErrors(t *testing.T) {
	const (
		form  = "fixed:PROMPT,OUTPUT (for example fixed:512,512)"
		bound = "wanted a whole number of tokens from 1 to 16777216: " + form
		known = "(known: gsm8k, alpaca, sharegpt, fixed:PROMPT,OUTPUT)"
		huge  = "99999999999999999999"
	)
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"", Options{}, "workload: found no name, wanted one of gsm8k, alpaca, sharegpt, fixed:PROMPT,OUTPUT"},
		{"shargpt", Options{}, `unknown workload "shargpt"; did you mean sharegpt? ` + known},
		{"fixd:3,4", Options{}, `unknown workload "fixd:3,4"; did you mean fixed:PROMPT,OUTPUT? ` + known},
		{"mmlu", Options{}, `unknown workload "mmlu" ` + known},
		{"fixed", Options{N: 1}, `workload "fixed": found "", wanted two lengths: ` + form},
		{"fixed:512", Options{N: 1}, `workload "fixed:512": found "512", wanted two lengths: ` + form},
		{"fixed:0,1", Options{N: 1}, `workload "fixed:0,1": found the prompt "0", ` + bound},
		{"fixed:1,-2", Options{N: 1}, `workload "fixed:1,-2": found the output "-2", ` + bound},
		{"fixed:1,2,3", Options{N: 1}, `workload "fixed:1,2,3": found the output "2,3", ` + bound},
		{"fixed:1e3,2", Options{N: 1}, `workload "fixed:1e3,2": found the prompt "1e3", ` + bound},
		{"fixed:1," + huge, Options{N: 1}, `workload "fixed:1,` + huge + `": found the output "` + huge + `", ` +
			bound},
		{"fixed:1,2", Options{}, "workload fixed:1,2: equal requests have no end: wanted a number of them"},
		{"gsm8k", Options{N: -1}, "workload gsm8k: requests: found -1, wanted 0 to 10000000"},
		{"gsm8k", Options{Warmup: 1e7 + 1}, "workload gsm8k: warm-up requests: found 10000001, wanted 0 to 10000000"},
		{"gsm8k", Options{Sampler: "vlm"}, `workload gsm8k: unknown sampler "vlm"; did you mean vllm? ` +
			`(known: vllm, sglang, seeded, none)`},
		{"gsm8k", Options{Tokenizer: "qwen"}, `workload gsm8k: unknown tokenizer "qwen"; did you mean qwen25? ` +
			`(known: llama31, qwen25)`},
		{"gsm8k", Options{KeepText: true}, "workload gsm8k: it has token counts and no text: wanted a dataset file"},
		{"gsm8k", Options{MaxPrompt: 3}, "workload gsm8k: found no usable request among 1319 entries, wanted at " +
			"least one (sampler seeded left out 1319: prompt > 3 tokens)"},
	} {
		_, err := Load(c.name, c.o)
		if err == nil || err.Error() != c.want {
			t.Errorf("%q %+v:\n     %v\nwant %s", c.name, c.o, err, c.want)
		}
		var data *DataError
		if errors.As(err, &data) {
			t.Errorf("%q: %v is a DataError; it is the caller's mistake", c.name, err)
		}
	}
}

func TestParseList(t *testing.T) {
	got, err := ParseList("GSM8K, fixed:512,128,alpaca,Fixed: 1,2")
	if want := []string{"gsm8k", "fixed:512,128", "alpaca", "fixed:1,2"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	for list, want := range map[string]string{
		"":                "found no name",
		"gsm8k,,alpaca":   "found no name",
		"gsm8k,gsm8k":     "found it twice",
		"gsm8k,fixed:512": "wanted two lengths",
		"fixed:512,gsm8k": `found the output "gsm8k"`,
		"gsm8k,alpacca":   "did you mean alpaca?",
	} {
		if _, err := ParseList(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", list, err, want)
		}
	}
	for _, name := range Names() {
		if _, err := Describe(strings.NewReplacer("PROMPT", "1", "OUTPUT", "2").Replace(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Seeded choice, for any sampler, length, warm-up and seed: what is promised of it.
func TestChoice(t *testing.T) {
	const usable = 40
	path := file(t, "a.csv", table(usable))
	rapid.Check(t, func(t *rapid.T) {
		o := Options{
			N: rapid.IntRange(1, 100).Draw(t, "n"), Warmup: rapid.IntRange(0, 50).Draw(t, "warmup"),
			Seed:    rapid.Uint64().Draw(t, "seed"),
			Sampler: rapid.SampledFrom([]string{"seeded", "none"}).Draw(t, "sampler"),
		}
		s, err := LoadFile(path, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Requests) != o.N || len(s.Warmup) != o.Warmup || s.Total != usable || s.Usable != usable {
			t.Fatalf("%d requests, %d for warm-up, %d of %d usable", len(s.Requests), len(s.Warmup), s.Usable, s.Total)
		}
		// Each request is replayed as often as any other, give or take one.
		counts := map[int]int{}
		for _, r := range s.Requests {
			if r.Output != 10*r.Prompt || r.Prompt < 1 || r.Prompt > usable {
				t.Fatalf("request %+v isn't in the file", r)
			}
			counts[r.Prompt]++
		}
		if len(counts) != min(o.N, usable) {
			t.Fatalf("%d different requests of %d", len(counts), o.N)
		}
		for p, c := range counts {
			if c < o.N/usable || c > (o.N+usable-1)/usable {
				t.Fatalf("request %d comes %d times of %d", p, c, o.N)
			}
		}
		// Warm-up reuses a measured request only where there is no other, and that is noted, like a wrap-around.
		reused := 0
		for _, r := range s.Warmup {
			if counts[r.Prompt] > 0 {
				reused++
			}
		}
		notes := strings.Join(s.Notes, "\n")
		if enough := o.N+o.Warmup <= usable; enough == (reused > 0) && o.Warmup > 0 ||
			strings.Contains(notes, "reuses measured") != (reused > 0) {
			t.Fatalf("%d warm-up requests reuse measured ones; notes %q", reused, notes)
		}
		if strings.Contains(notes, "wraps around") != (o.N > usable) {
			t.Fatalf("notes %q", notes)
		}
		// The list is a function of the seed, and a longer one begins with a shorter one.
		more := o
		more.N, more.Warmup = o.N+7, 0
		longer, err := LoadFile(path, more)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(longer.Requests[:o.N], s.Requests) || longer.SHA256 == s.SHA256 {
			t.Fatal("a longer list doesn't begin with the shorter")
		}
		if o.Sampler == "none" && s.Requests[0].Prompt != 1 {
			t.Fatalf("in the order of the file, the first request is %+v", s.Requests[0])
		}
	})
}

func TestSeeds(t *testing.T) {
	a, b := load(t, "gsm8k", Options{N: 100, Seed: 1}), load(t, "GSM8K", Options{N: 100, Seed: 1})
	c := load(t, "gsm8k", Options{N: 100, Seed: 2})
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("one seed, two lists:\n%s", d)
	}
	if a.SHA256 == c.SHA256 {
		t.Error("two seeds, one list")
	}
	// Recorded results name this hash: the choice must not change between releases.
	if want := "ec704c6cf39650eb15b27fe3148bc5dafae448473b98d9edc10aaa516d85cb56"; a.SHA256 != want {
		t.Errorf("first 100 of gsm8k, seed 1: %s, want %s", a.SHA256, want)
	}
	// Both tokenizers' lists are of the same requests: prompts of a question differ by little.
	q := load(t, "gsm8k", Options{N: 100, Seed: 1, Tokenizer: "Qwen25"})
	for i := range q.Requests {
		if d := math.Abs(float64(q.Requests[i].Prompt-a.Requests[i].Prompt)) / float64(a.Requests[i].Prompt); d > .25 {
			t.Errorf("request %d: %+v and %+v can't be one question", i, a.Requests[i], q.Requests[i])
		}
	}
}

const conversations = `[
{"conversations":[{"from":"human","value":"123"},{"from":"gpt","value":"1234"}]},
{"conversations":[{"from":"human","value":"1234"},{"from":"gpt","value":"123"}]},
{"conversations":[{"from":"human","value":"1"},{"from":"gpt","value":"1234"}]},
{"conversations":[{"from":"human","value":"12345"}]},
{"conversations":[{"from":"human","value":""},{"from":"gpt","value":"1234"}]},
{"conversations":[{"from":"gpt","value":"12345678"},{"from":"human","value":"12345678"}]},
{"conversations":[{"from":"human","value":"LONG"},{"from":"gpt","value":"1234"}]},
{"conversations":[{"from":"human","value":"LON"},{"from":"gpt","value":"LONG"}]}]`

// letters counts a token a byte.
type letters struct{}

func (letters) Count(text string) int { return len(text) }

func TestSamplers(t *testing.T) {
	long := strings.NewReplacer("LONG", strings.Repeat("x", 1025), "LON", strings.Repeat("x", 1024))
	path := file(t, "chat.json", long.Replace(conversations))
	pairs := func(s *Set) map[[2]int]int {
		m := map[[2]int]int{}
		for _, r := range s.Requests {
			m[[2]int{r.Prompt, r.Output}]++
		}
		return m
	}
	for _, c := range []struct {
		o       Options
		sampler string
		want    map[[2]int]int
		skipped map[string]int
	}{{
		Options{}, "vllm",
		map[[2]int]int{{8, 8}: 1},
		map[string]int{
			"fewer than 2 turns": 1, "output < 4 tokens": 1, "prompt + output > 2048 tokens": 1, "prompt < 4 tokens": 2,
			"prompt > 1024 tokens": 1, "prompt of 0 tokens": 1,
		},
	}, {
		Options{Sampler: "SGLang"}, "sglang",
		map[[2]int]int{{3, 4}: 1, {4, 3}: 1, {8, 8}: 1, {1025, 4}: 1, {1024, 1025}: 1},
		map[string]int{"fewer than 2 turns": 1, "prompt < 2 tokens": 1, "prompt of 0 tokens": 1},
	}, {
		Options{Sampler: "sglang", MaxTotal: 1029}, "sglang",
		map[[2]int]int{{3, 4}: 1, {4, 3}: 1, {8, 8}: 1, {1025, 4}: 1},
		map[string]int{
			"fewer than 2 turns": 1, "prompt + output > 1029 tokens": 1, "prompt < 2 tokens": 1,
			"prompt of 0 tokens": 1,
		},
	}, {
		Options{Sampler: "none"}, "none",
		map[[2]int]int{{3, 4}: 1, {4, 3}: 1, {1, 4}: 1, {8, 8}: 1, {1025, 4}: 1, {1024, 1025}: 1},
		map[string]int{"fewer than 2 turns": 1, "prompt of 0 tokens": 1},
	}, {
		Options{Sampler: "vllm", Output: 2, MaxPrompt: 1025}, "vllm",
		map[[2]int]int{{4, 2}: 1, {8, 2}: 1, {1025, 2}: 1, {1024, 2}: 1},
		map[string]int{"fewer than 2 turns": 1, "prompt < 4 tokens": 2, "prompt of 0 tokens": 1},
	}, {
		Options{Sampler: "none", Output: 9}, "none",
		map[[2]int]int{{3, 9}: 1, {4, 9}: 1, {1, 9}: 1, {5, 9}: 1, {8, 9}: 1, {1025, 9}: 1, {1024, 9}: 1},
		map[string]int{"prompt of 0 tokens": 1},
	}} {
		c.o.Counter = letters{}
		s := loadFile(t, path, c.o)
		if d := cmp.Diff(c.want, pairs(s)); d != "" {
			t.Errorf("%+v: -want +got:\n%s", c.o, d)
		}
		sum, skipped := s.Usable, map[string]int{}
		for _, k := range s.Skipped {
			sum += k.Count
			skipped[k.Reason] = k.Count
		}
		if d := cmp.Diff(c.skipped, skipped); d != "" || s.Sampler != c.sampler || s.Name != "chat" {
			t.Errorf("%+v: sampler %s, name %s, skipped -want +got:\n%s", c.o, s.Sampler, s.Name, d)
		}
		if sum != s.Total || s.Total != 8 {
			t.Errorf("%+v: usable and skipped are %d of %d entries", c.o, sum, s.Total)
		}
		if !slices.IsSortedFunc(s.Skipped, func(a, b Skip) int { return strings.Compare(a.Reason, b.Reason) }) {
			t.Errorf("%+v: reasons out of order: %v", c.o, s.Skipped)
		}
	}
}

func TestNothingUsable(t *testing.T) {
	path := file(t, "a.json", `[{"conversations":[{"value":"a"}]},{"conversations":[{"value":"a"},{"value":"b"}]}]`)
	_, err := LoadFile(path, Options{})
	var e *DataError
	want := path + ": found no usable request among 2 entries, wanted at least one (sampler vllm left out " +
		"1: fewer than 2 turns; 1: prompt < 4 tokens)"
	if !errors.As(err, &e) || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func TestLoadFileErrors(t *testing.T) {
	dir := t.TempDir()
	var e *DataError
	_, err := LoadFile(filepath.Join(dir, "none"), Options{})
	if !errors.As(err, &e) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	path := file(t, "a.csv", table(2))
	for _, o := range []Options{{Format: "csv"}, {Sampler: "some"}, {Tokenizer: "x"}, {N: -1}, {KeepText: true}} {
		if _, err := LoadFile(path, o); err == nil || errors.As(err, &e) {
			t.Errorf("%+v: error %v, want one that isn't a DataError", o, err)
		}
	}
}

const timed = "prompt_tokens,output_tokens,arrival_s\n1,10,5\n2,10,1\n3,10,1\n0,10,2\n5,10,3\n"

func TestReplay(t *testing.T) {
	path := file(t, "t.csv", timed)
	s := loadFile(t, path, Options{})
	want := []Request{
		{Prompt: 2, Output: 10, Arrival: time.Second}, {Prompt: 3, Output: 10, Arrival: time.Second},
		{Prompt: 5, Output: 10, Arrival: 3 * time.Second}, {Prompt: 1, Output: 10, Arrival: 5 * time.Second},
	}
	if d := cmp.Diff(want, s.Requests); d != "" || !s.HasArrivals || s.Sampler != "none" {
		t.Errorf("arrivals %t, sampler %s, -want +got:\n%s", s.HasArrivals, s.Sampler, d)
	}
	if want := []string{"the source isn't in order of arrival; the list is"}; !slices.Equal(s.Notes, want) {
		t.Errorf("notes %q", s.Notes)
	}
	// A second round follows one mean gap, 4/3 s, after the last arrival of the first.
	s = loadFile(t, path, Options{N: 6})
	if got, want := s.Requests[4].Arrival, 5*time.Second+4*time.Second/3; got != want {
		t.Errorf("second round at %v, want %v", got, want)
	}
	if !slices.IsSorted(s.Arrivals()) || len(s.Arrivals()) != 6 {
		t.Errorf("arrivals %v", s.Arrivals())
	}
	// A shuffled choice has none, under a replay it keeps order and arrivals, and drops by its rules.
	s = loadFile(t, path, Options{Sampler: "sglang"})
	if s.HasArrivals || s.Arrivals() != nil || s.Requests[0].Arrival != 0 || len(s.Requests) != 3 {
		t.Errorf("shuffled: %+v", s)
	}
	s = loadFile(t, path, Options{Sampler: "sglang", Replay: true, N: 2, Warmup: 1})
	if d := cmp.Diff(want[:2], s.Requests); d != "" || s.Warmup[0].Prompt != 5 || s.Warmup[0].Arrival != 0 {
		t.Errorf("replayed: warm-up %+v, -want +got:\n%s", s.Warmup, d)
	}
	// One recorded arrival comes again each second; too long a replay is refused.
	one := file(t, "one.csv", "prompt_tokens,output_tokens,arrival_s\n1,1,2\n")
	if at := loadFile(t, one, Options{N: 3}).Arrivals(); !slices.Equal(at, []time.Duration{2e9, 3e9, 4e9}) {
		t.Errorf("one arrival three times: %v", at)
	}
	far := file(t, "far.csv", "prompt_tokens,output_tokens,arrival_s\n1,1,0\n1,1,3e8\n")
	if _, err := LoadFile(far, Options{N: 3}); err == nil || !strings.Contains(err.Error(), "more than ten years") {
		t.Errorf("30 years of replay: %v", err)
	}
}

// The built-in sharegpt trace can be replayed, as its record was: about 10 requests a second.
func TestReplayBuiltin(t *testing.T) {
	s := load(t, "sharegpt", Options{Replay: true})
	spec, err := arrival.Parse("trace:2")
	if err != nil {
		t.Fatal(err)
	}
	at, err := spec.Times(len(s.Requests), 1, s.Arrivals())
	if err != nil {
		t.Fatal(err)
	}
	if rate := float64(len(at)) / at[len(at)-1].Seconds(); math.Abs(rate-20.6) > .1 || s.Requests[0].Prompt != 2358 {
		t.Errorf("%.2f requests a second at twice the rate, first %+v", rate, s.Requests[0])
	}
	s = load(t, "sharegpt", Options{})
	if _, err := spec.Times(len(s.Requests), 1, s.Arrivals()); !errors.Is(err, arrival.ErrNoArrivals) {
		t.Errorf("replay of a shuffled choice: %v", err)
	}
}

func TestKeepText(t *testing.T) {
	var b strings.Builder
	for i := range 30 {
		fmt.Fprintf(&b, "{\"question\":\"question number %d\",\"answer\":\"yes\"}\n", i)
	}
	path := file(t, "q.jsonl", b.String())
	s := loadFile(t, path, Options{N: 5, Warmup: 2, Seed: 3, KeepText: true})
	for _, r := range append(slices.Clone(s.Requests), s.Warmup...) {
		if !strings.HasPrefix(r.Text, "question number ") {
			t.Errorf("text %q", r.Text)
		}
	}
	plain := loadFile(t, path, Options{N: 5, Warmup: 2, Seed: 3})
	if plain.SHA256 != s.SHA256 || plain.Requests[0].Text != "" {
		t.Error("keeping the text changes the choice")
	}
	if !strings.Contains(strings.Join(s.Notes, ""), "estimated") {
		t.Errorf("notes %q say nothing of the estimate", s.Notes)
	}
	exact := loadFile(t, path, Options{N: 5, Counter: letters{}})
	if len(exact.Notes) != 0 || exact.Requests[0].Output != 3 {
		t.Errorf("with a tokenizer: notes %q, %+v", exact.Notes, exact.Requests[0])
	}
}

func TestPromptsOnly(t *testing.T) {
	path := file(t, "q.jsonl", "{\"question\":\"abc\"}\n{\"question\":\"de\"}\n")
	s := loadFile(t, path, Options{Counter: letters{}, Sampler: "none"})
	want := []Request{{Prompt: 3, Output: DefaultOutput}, {Prompt: 2, Output: DefaultOutput}}
	note := "the source has prompts only: every output is taken as 256 tokens"
	if d := cmp.Diff(want, s.Requests); d != "" || !slices.Contains(s.Notes, note) {
		t.Errorf("notes %q, -want +got:\n%s", s.Notes, d)
	}
}

// What is written reads back as the same list.
func TestWriteCSV(t *testing.T) {
	for _, s := range []*Set{
		load(t, "sharegpt", Options{Replay: true, N: 700}),
		load(t, "alpaca", Options{N: 50, Seed: 4}),
		load(t, "fixed:3,4", Options{N: 2}),
	} {
		var b strings.Builder
		if err := s.WriteCSV(&b); err != nil {
			t.Fatal(err)
		}
		back := loadFile(t, file(t, "back.csv", b.String()), Options{Sampler: "none"})
		if d := cmp.Diff(s.Requests, back.Requests); d != "" || back.SHA256 != s.SHA256 {
			t.Errorf("%s: -written +read:\n%s", s.Name, d)
		}
	}
}

func FuzzName(f *testing.F) {
	for _, s := range []string{
		"gsm8k", "fixed:512,512", "fixed:1,2,alpaca", "fixed:,", "FIXED : 3 , 4", "fixed:1,2,fixed:1,2", ",",
		"sharegpt:",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		names, err := ParseList(list)
		if err != nil {
			return
		}
		again, err := ParseList(strings.Join(names, ","))
		if err != nil || !slices.Equal(names, again) {
			t.Fatalf("%q is %q, which reads back as %q, %v", list, names, again, err)
		}
		for _, n := range names {
			if s, err := Load(n, Options{N: 2}); err != nil || s.Name != n {
				t.Fatalf("%q: %v", n, err)
			}
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"gsm8k", "alpaca", "sharegpt"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Load(name, Options{N: 200, Seed: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
