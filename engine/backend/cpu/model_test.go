package cpu

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trbench/trbench/engine/backend/cpu/kernel"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/internal/testutil"
	"github.com/trbench/trbench/models/weights"
)

// goldenModels are the reference models: the file of golden logits, and the folder of the weights beside it.
var goldenModels = []struct{ name, dir string }{
	{"gsm-s", "models/gsm-pair/gsm-s"},
	{"gsm-l", "models/gsm-pair/gsm-l"},
	{"stories260K", "models/stories260K"},
	{"rand-llama31", "golden/rand-llama31"},
	{"rand-qwen25", "golden/rand-qwen25"},
	{"rand-qwen25-untied-f32", "golden/rand-qwen25-untied-f32"},
}

// golden is a file of float64 reference results.
type golden struct {
	Cases []struct {
		Prompt []int32        `json:"prompt_ids"`
		Top    [][][2]float64 `json:"top5_logits_per_position"`
		Last   []float64      `json:"last_position_logits"`
		Greedy []int32        `json:"greedy_ids"`
		Gap    []float64      `json:"greedy_top1_top2_gap"`
	} `json:"cases"`
}

// sharedData is the folder of reference data, beside the repository; a test that needs it is skipped where it is
// absent.
func sharedData(tb testing.TB) string {
	return testutil.Reference(tb)
}

// openWeights opens a folder of the reference data; the demo pair, which is there too, is in the repository.
func openWeights(tb testing.TB, dir string) *weights.Model {
	if name, ok := strings.CutPrefix(dir, "models/gsm-pair/"); ok {
		dir = filepath.Join("../../../models/demo/pair", name)
	} else {
		dir = filepath.Join(sharedData(tb), dir)
	}
	w, err := weights.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { w.Close() })
	return w
}

func readGolden(tb testing.TB, name string) golden {
	text, err := os.ReadFile(filepath.Join(sharedData(tb), "golden", name+".json"))
	if err != nil {
		tb.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(text, &g); err != nil {
		tb.Fatal(err)
	}
	return g
}

// some leaves plain Go, which is slow, a single case in a short test.
func some[T any](cases []T, simd string) []T {
	if testing.Short() && simd == kernel.Generic.String() {
		return cases[:1]
	}
	return cases
}

func forLevels(t *testing.T, f func(t *testing.T, simd string)) {
	for _, l := range kernel.Levels() {
		t.Run(l.String(), func(t *testing.T) { f(t, l.String()) })
	}
}

// rig is a model with the tokens of its requests: as much of an engine as a backend sees.
type rig struct {
	tb failer
	*Model
	tokens   [][]int32 // by handle
	sampling []Sampling
}

// failer is what a rig wants of a test: also rapid's.
type failer interface {
	Helper()
	Fatal(args ...any)
}

func newRig(tb failer, w *weights.Model, o Options, requests int) *rig {
	b := &rig{tb: tb, tokens: make([][]int32, requests), sampling: make([]Sampling, requests)}
	o.Tokens = func(h step.Handle) []int32 { return b.tokens[h] }
	o.Sampling = func(h step.Handle) Sampling { return b.sampling[h] }
	m, err := New(w, o)
	if err != nil {
		tb.Fatal(err)
	}
	b.Model = m
	return b
}

// feed is one row of a batch: the tokens up to upto, over KV that is there, the last verify of them as drafts.
type feed struct {
	handle     step.Handle
	from, upto int
	verify     int
	sample     bool
}

// batch makes the step of rows.
func (b *rig) batch(rows ...feed) *step.Batch {
	s := &step.Batch{}
	for _, r := range rows {
		s.Handle = append(s.Handle, r.handle)
		s.ID = append(s.ID, step.RequestID(r.handle)+100)
		s.Pos = append(s.Pos, int32(r.upto))
		s.Feed = append(s.Feed, int32(r.upto-r.from))
		s.Verify = append(s.Verify, int32(r.verify))
		s.Sample = append(s.Sample, r.sample)
	}
	return s
}

func (b *rig) run(rows ...feed) *step.Result { return b.forward(b.batch(rows...)) }

func (b *rig) forward(s *step.Batch) *step.Result {
	b.tb.Helper()
	res, err := b.Forward(context.Background(), s)
	if err != nil {
		b.tb.Fatal(err)
	}
	return res
}

// all returns the logits of every position of handle's tokens, fed in one step.
func (b *rig) all(h step.Handle) [][]float32 {
	n := len(b.tokens[h])
	b.run(feed{handle: h, upto: n, verify: n - 1, sample: true})
	var out [][]float32
	for i := range n {
		out = append(out, slices.Clone(b.logits(b.plan.rows[0].outputs+i)))
	}
	return out
}

// The bound is on logits of up to about 20, computed in float32 against float64.
const goldenBound = 1e-4

func TestLogitsAgreeWithFloat64Reference(t *testing.T) {
	for _, model := range goldenModels {
		t.Run(model.name, func(t *testing.T) {
			g, w := readGolden(t, model.name), openWeights(t, model.dir)
			forLevels(t, func(t *testing.T, simd string) {
				worst := 0.
				for _, c := range some(g.Cases, simd) {
					b := newRig(t, w, Options{SIMD: simd}, 1)
					b.tokens[0] = c.Prompt
					logits := b.all(0)
					for pos, top := range c.Top {
						best := likeliest(nil, logits[pos], len(top))
						slices.Sort(best)
						for _, want := range top {
							id := int32(want[0])
							if _, ok := slices.BinarySearch(best, id); !ok {
								t.Errorf("position %d: token %d is not among the likeliest, %v", pos, id, best)
							}
							worst = max(worst, math.Abs(float64(logits[pos][id])-want[1]))
						}
					}
					for id, want := range c.Last {
						worst = max(worst, math.Abs(float64(logits[len(logits)-1][id])-want))
					}
				}
				if !(worst <= goldenBound) {
					t.Errorf("logits are off by %.2g, want at most %.0e", worst, goldenBound)
				}
				t.Logf("logits are off by at most %.2g", worst)
			})
		})
	}
}

func TestGreedyTextIsTheReferences(t *testing.T) {
	for _, model := range goldenModels {
		t.Run(model.name, func(t *testing.T) {
			g, w := readGolden(t, model.name), openWeights(t, model.dir)
			forLevels(t, func(t *testing.T, simd string) {
				cases := some(g.Cases, simd)
				b := newRig(t, w, Options{SIMD: simd}, len(cases))
				var rows []feed
				for i, c := range cases {
					b.tokens[i] = slices.Clone(c.Prompt)
					rows = append(rows, feed{handle: step.Handle(i), upto: len(c.Prompt), sample: true})
				}
				for k := range cases[0].Greedy {
					res := b.run(rows...)
					for i, c := range cases {
						if got := res.Token[i]; got != c.Greedy[k] && c.Gap[k] > 2*goldenBound {
							t.Fatalf("case %d, token %d is %d, want %d by %g", i, k, got, c.Greedy[k], c.Gap[k])
						}
						b.tokens[i] = append(b.tokens[i], c.Greedy[k])
						n := len(b.tokens[i])
						rows[i] = feed{handle: step.Handle(i), from: n - 1, upto: n, sample: true}
					}
				}
			})
		})
	}
}

func TestForwardRefusesBatchesThatDoNotFit(t *testing.T) {
	b := newRig(t, tiny(1), Options{}, 2)
	b.tokens[0], b.tokens[1] = []int32{3, 1, 4, 1, 5}, []int32{3, 12}
	b.run(feed{handle: 0, upto: 3})
	for _, c := range []struct {
		name string
		row  feed
		want string
	}{
		{"no KV", feed{handle: 0, from: 4, upto: 5},
			"row 0, request 100: batch does not fit the backend's state: it counts on KV of 4 tokens, there are 3"},
		{"unknown tokens", feed{handle: 0, from: 3, upto: 6},
			"row 0, request 100: batch does not fit the backend's state: it feeds tokens up to position 6, the engine knows 5"},
		{"nothing fed", feed{handle: 0, from: 3, upto: 3},
			"row 0, request 100: batch does not fit the backend's state: it feeds 0 tokens up to position 3 and verifies 0"},
		{"the first draft has no token before it", feed{handle: 0, from: 3, upto: 5, verify: 2, sample: true},
			"row 0, request 100: batch does not fit the backend's state: it feeds 2 tokens up to position 5 and verifies 2"},
		{"no such token", feed{handle: 1, upto: 2},
			"row 0, request 101: batch does not fit the backend's state: token 12 at position 1, want 0 to 11"},
	} {
		_, err := b.Forward(context.Background(), b.batch(c.row))
		if !errors.Is(err, ErrBatch) || err.Error() != "backend cpu: "+c.want {
			t.Errorf("%s: %v; want %s", c.name, err, c.want)
		}
	}
	b.run(feed{handle: 0, from: 3, upto: 5, sample: true}) // its KV is as it was
}

func TestForwardReportsBrokenWeights(t *testing.T) {
	w := tiny(1)
	copy(w.Norm.Data, []byte{0, 0, 0xc0, 0x7f}) // a NaN
	b := newRig(t, w, Options{}, 1)
	b.tokens[0] = []int32{3}
	_, err := b.Forward(context.Background(), b.batch(feed{handle: 0, upto: 1, sample: true}))
	if !errors.Is(err, ErrNumbers) || err.Error() != "backend cpu: row 0, request 100: logits are not finite" {
		t.Errorf("got %v", err)
	}
}

func TestForwardEndsWithItsContext(t *testing.T) {
	b := newRig(t, tiny(1), Options{}, 1)
	b.tokens[0] = randomTokens(1, 3*chunkTokens, b.config.Vocab)
	b.run(feed{handle: 0, upto: 5})
	why := errors.New("the client has gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	rest := feed{handle: 0, from: 5, upto: len(b.tokens[0]), sample: true}
	if _, err := b.Forward(ctx, b.batch(rest)); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
	b.run(rest)
}

func TestOptions(t *testing.T) {
	w := tiny(1)
	tokens := func(step.Handle) []int32 { return nil }
	if _, err := New(w, Options{}); err == nil {
		t.Error("no table of tokens: want an error")
	}
	if _, err := New(w, Options{Tokens: tokens, SIMD: "mmx"}); err == nil ||
		err.Error() != `backend cpu: Options.SIMD: SIMD level "mmx": want one of generic, avx2, avx512` {
		t.Errorf("unknown level: %v", err)
	}
	t.Setenv(SIMDVariable, "mmx")
	if _, err := New(w, Options{Tokens: tokens}); err == nil ||
		err.Error() != `backend cpu: TRBENCH_SIMD: SIMD level "mmx": want one of generic, avx2, avx512` {
		t.Errorf("unknown level in the environment: %v", err)
	}
	t.Setenv(SIMDVariable, "generic")
	m, err := New(w, Options{Tokens: tokens})
	if err != nil || m.SIMD() != "generic" {
		t.Errorf("level %v, %v; want generic", m.SIMD(), err)
	}
}

// The router's score comes from outside, and is 0 where nothing says it.
func TestSignalIsTheScore(t *testing.T) {
	b := newRig(t, tiny(1), Options{}, 1)
	b.tokens[0] = []int32{3}
	row := feed{handle: 0, upto: 1, sample: true}
	if got := b.run(row).Signal; !slices.Equal(got, []float64{0}) {
		t.Errorf("signal %v, want 0", got)
	}
	b.opt.Score = func(b *step.Batch, signal []float64) {
		for i := range signal {
			signal[i] = float64(b.Pos[i]) / 4
		}
	}
	if got := b.run(row).Signal; !slices.Equal(got, []float64{.25}) {
		t.Errorf("signal %v, want .25", got)
	}
}

func TestDecodeAllocatesNothing(t *testing.T) {
	b := newRig(t, tiny(1), Options{BlockTokens: 512, Proposals: NewProposals(2)}, 1)
	b.tokens[0] = randomTokens(1, 500, b.config.Vocab)
	b.sampling[0] = Sampling{Temperature: 1, TopP: .9, Stop: []int32{}}
	b.run(feed{handle: 0, upto: 10, sample: true})
	var steps []*step.Batch
	for n := 10; n < 500; n++ {
		s := b.batch(feed{handle: 0, from: n, upto: n + 1, sample: true})
		s.Want, s.TopK = step.Entropy|step.Confidence|step.Margin|step.Top, 3
		steps = append(steps, s)
	}
	for range 3 {
		b.forward(steps[0])
		steps = steps[1:]
	}
	if n := testing.AllocsPerRun(200, func() { b.forward(steps[0]); steps = steps[1:] }); n > 0 {
		t.Errorf("a decode step allocates %g times, want 0", n)
	}
}

func TestFeatures(t *testing.T) {
	f := Features()
	if f.Cores < 1 || len(f.Levels) == 0 || f.Levels[0] != "generic" || f.Levels[len(f.Levels)-1] != f.SIMD {
		t.Errorf("features %+v", f)
	}
}
