package latency

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trbench/trbench/engine/step"
)

// grid is small enough to work out by hand. Its attention is 1 + context/100 for batch 1, twice that for batch 4; the
// longest context wasn't measured for batch 4.
func grid() Steps {
	return Steps{
		Decode: DecodeGrid{
			Batch:         []int{1, 4},
			ContextTokens: []int{100, 200, 400},
			StepMS:        [][]float64{{10, 11, 13}, {14, 16}},
			AttentionMS:   [][]float64{{2, 3, 5}, {4, 6}},
		},
		Prefill: PrefillGrid{
			Tokens:      []int{10, 100, 200},
			StepMS:      []float64{12, 30, 80},
			AttentionMS: []float64{1, 2, 32},
		},
	}
}

func mustProfile(t testing.TB, s Steps) *Profile {
	t.Helper()
	p, err := NewProfile("test", s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTable(t *testing.T) {
	for _, c := range []struct {
		name string
		s    step.Shape
		want float64 // ms
	}{
		{"a grid point", decodes(1, 200), 11},
		{"between contexts", decodes(1, 150), 10.5},
		{"between batches", decodes(2, 200), 11 + 5./3},
		{"between both", decodes(2, 150), 10.5 + (15-10.5)/3},
		{"contexts count by their mean", step.Shape{Decodes: 2, DecodeContext: 300}, 10.5 + (15-10.5)/3},
		{"below the first context", decodes(1, 50), 10},
		{"not measured: the row's slope goes on", decodes(4, 400), 20},
		{"beyond the longest context", decodes(1, 600), 15},
		{"beyond the largest batch", decodes(7, 100), 18},
		{"beyond both", decodes(7, 500), 14 + 2*(22-14)}, // 13 + .01 x 100, 20 + .02 x 100

		{"a prefill on the grid", extend(100, 0), 30},
		{"the rest is linear in n, attention in n²", extend(150, 0), (28+48)/2. + 2 + 30*12500/30000.},
		{"beyond the longest prefill", extend(300, 0), 48 + 20 + 32 + 30*50000/30000.},
		{"below the shortest: the rest of so many decodes", extend(4, 0), 10 + 1}, // rest of a batch of 4, launch
		{"between a decode's rest and the shortest prefill's", extend(7, 0), 10.5 + 1},
		// read = (6 - 4) / (4 x 100) = .005 ms a token, more than A(4 x 404) = 1 + 1516/9900
		{"a resume reads its cached KV", extend(4, 200), 10 + 1 + 200*.005},
		{"a short resume costs a decode at least", extend(4, 400), 13 + 4*.01},
		{"four of them cost four decodes at least", step.Shape{Extends: 4, ExtendTokens: 8, ExtendWork: 8 * 200, ExtendContext: 4 * 102}, 14 + 2*.02},
		// by its own price 14 + (10.5 - 10) + 50 x .005 = 14.75; five decodes of 90 tokens cost 14 + (14 - 10) / 3
		{"and so they do among decodes", plus(decodes(4, 100), extend(2, 48)), 14 + 4./3},
		{"a chunk computes", extend(100, 100), 28 + 2 + 30*20000/30000.}, // A(100 x 300), more than 100 x .005

		{"decodes and a prefill", plus(decodes(4, 100), extend(96, 0)), 14 + 18 + (9216-100)/9900.},
		// 15 tokens: the rest is 11 + 5 x 17/90, of a batch of 1 it is 8; attention reads 200 x .005
		{"a decode and a resume", plus(decodes(1, 100), extend(14, 200)), 10 + 11 + 85./90 - 8 + 1},
	} {
		got := mustProfile(t, grid()).New().StepTime(c.s)
		if want := time.Duration(math.Round(c.want * 1e6)); got != want {
			t.Errorf("%s: %v, want %v", c.name, got, want)
		}
	}
}

func TestTableOfOnePoint(t *testing.T) {
	p := mustProfile(t, Steps{
		DecodeGrid{Batch: []int{2}, ContextTokens: []int{128}, StepMS: [][]float64{{7}}},
		PrefillGrid{Tokens: []int{16, 32}, StepMS: []float64{8, 12}},
	})
	m := p.New()
	for _, s := range []step.Shape{decodes(1, 1), decodes(2, 128), decodes(1, 128)} {
		if got := m.StepTime(s); got != 7*time.Millisecond {
			t.Errorf("%+v: %v, want 7ms", s, got)
		}
	}
	if w := m.Extrapolated(); w != nil {
		t.Errorf("warns of steps within the grid: %q", w)
	}
	if got := m.StepTime(decodes(3, 200)); got != 7*time.Millisecond {
		t.Errorf("beyond one point: %v, want 7ms", got)
	}
	want := []string{"test: batch 3 beyond the table's 2", "test: context 200 beyond the table's 128"}
	if w := m.Extrapolated(); !slices.Equal(w, want) {
		t.Errorf("%q, want %q", w, want)
	}
	if got := m.StepTime(extend(24, 0)); got != 10*time.Millisecond {
		t.Errorf("a prefill of 24: %v, want 10ms", got)
	}
}

// Without attention apart, the curvature of the prefills stands in for it: exact where they are quadratic.
func TestTableEstimatesAttention(t *testing.T) {
	law := Affine{C0: 10, C1: .25, C2: .001, P0: 10, P1: .05, P2: 2e-5}
	s := Steps{Decode: DecodeGrid{Batch: []int{1, 2, 8}, ContextTokens: []int{1, 1000}}}
	for _, b := range s.Decode.Batch {
		var row []float64
		for _, c := range s.Decode.ContextTokens {
			row = append(row, float64(law.StepTime(decodes(b, c)))/nsPerMS)
		}
		s.Decode.StepMS = append(s.Decode.StepMS, row)
	}
	for _, n := range []int{16, 64, 256, 1024} {
		s.Prefill.Tokens = append(s.Prefill.Tokens, n)
		s.Prefill.StepMS = append(s.Prefill.StepMS, float64(law.StepTime(extend(n, 0)))/nsPerMS)
	}
	m := mustProfile(t, s).New()
	for _, shape := range []step.Shape{
		extend(100, 0), extend(800, 0), extend(3000, 0), extend(256, 512), extend(64, 100),
	} {
		got, want := m.StepTime(shape), law.StepTime(shape)
		if math.Abs(float64(got-want)) > 1e-6*float64(want) {
			t.Errorf("%+v: %v, want %v", shape, got, want)
		}
	}
}

func TestTableWarnings(t *testing.T) {
	for _, c := range []struct {
		shapes []step.Shape
		want   []string
	}{
		{[]step.Shape{decodes(4, 200), decodes(1, 400), decodes(1, 1), extend(1, 0), extend(200, 0), extend(10, 390)}, nil},
		{[]step.Shape{decodes(9, 100), decodes(7, 100)}, []string{"test: batch 9 beyond the table's 4"}},
		{[]step.Shape{decodes(1, 401), {Decodes: 2, DecodeContext: 1001}, decodes(1, 450)},
			[]string{"test: context 501 beyond the table's 400"}},
		{[]step.Shape{decodes(4, 201), decodes(2, 210), decodes(3, 300)},
			[]string{"test: batch 3 at context 300 beyond the table, which at batch 4 ends at context 200"}},
		{[]step.Shape{extend(201, 0)}, []string{"test: 201 tokens fed in one step beyond the table's 200",
			"test: attention of extends worth a prefill of 201 tokens beyond the table's 200"}},
		{[]step.Shape{extend(2, 500)}, []string{"test: context 502 beyond the table's 400"}},
		{[]step.Shape{plus(decodes(4, 100), extend(197, 0))},
			[]string{"test: 201 tokens fed in one step beyond the table's 200"}},
		{[]step.Shape{extend(100, 300)},
			[]string{"test: attention of extends worth a prefill of 265 tokens beyond the table's 200"}},
	} {
		m := mustProfile(t, grid()).New()
		for range 2 {
			for _, s := range c.shapes {
				m.StepTime(s)
			}
		}
		if got := WithHost(m, 1).(Extrapolator).Extrapolated(); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.shapes, got, c.want)
		}
	}
}

func TestInstancesAreApart(t *testing.T) {
	p := mustProfile(t, grid())
	a, b := p.New(), p.New()
	a.StepTime(decodes(100, 100))
	if len(a.Extrapolated()) != 1 || b.Extrapolated() != nil {
		t.Error("one instance's notes reach another")
	}
	s := grid()
	p = mustProfile(t, s)
	s.Decode.StepMS[0][1] = 99
	p.Steps().Decode.StepMS[0][1] = 99
	if got := p.New().StepTime(decodes(1, 200)); got != 11*time.Millisecond || p.Steps().Decode.StepMS[0][1] != 11 {
		t.Error("a profile changes with the slices that it was made of or gave")
	}
}

func TestNewProfileErrors(t *testing.T) {
	for _, c := range []struct {
		spoil func(*Steps)
		want  string
	}{
		{func(s *Steps) { s.Decode.Batch = nil }, "decode.batch has 0 values, wanted 1 to 4096"},
		{func(s *Steps) { s.Decode.Batch[1] = 1 }, "decode.batch[1] is 1, wanted 2 to 1073741824: counts increase"},
		{func(s *Steps) { s.Decode.ContextTokens[0] = 0 }, "decode.context_tokens[0] is 0, wanted 1 to"},
		{func(s *Steps) { s.Decode.StepMS = s.Decode.StepMS[:1] },
			"decode.step_ms has 1 rows, wanted 2, one for each batch"},
		{func(s *Steps) { s.Decode.StepMS[1] = []float64{1} }, "decode.step_ms[1] has 1 values, wanted 2 to 3"},
		{func(s *Steps) { s.Decode.StepMS[1][0] = -1 }, "decode.step_ms[1][0] is -1 ms, wanted above 0"},
		{func(s *Steps) { s.Decode.StepMS[1][0] = math.NaN() }, "decode.step_ms[1][0] is NaN ms"},
		{func(s *Steps) { s.Decode.AttentionMS[0][2] = 13 },
			"decode.attention_ms[0][2] is 13 ms, wanted 0 or more and less than the step's 13"},
		{func(s *Steps) { s.Decode.AttentionMS[0] = nil },
			"decode.attention_ms[0] has 0 values, wanted 3, as in step_ms[0]"},
		{func(s *Steps) { s.Decode.AttentionMS = s.Decode.AttentionMS[:1] }, "decode.attention_ms has 1 rows, wanted 2"},
		{func(s *Steps) { s.Prefill.Tokens = s.Prefill.Tokens[:1] }, "prefill.tokens has 1 values, wanted 2 to 4096"},
		{func(s *Steps) { s.Prefill.StepMS[2] = math.Inf(1) }, "prefill.step_ms[2] is +Inf ms"},
		{func(s *Steps) { s.Prefill.StepMS = nil }, "prefill.step_ms has 0 values, wanted 3, one for each of tokens"},
		{func(s *Steps) { s.Prefill.AttentionMS = []float64{1} }, "prefill.attention_ms has 1 values, wanted 3"},
	} {
		s := grid()
		c.spoil(&s)
		if _, err := NewProfile("test", s); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// Whatever the table and the step: a whole positive time, the same from a fresh instance and from one that has looked
// elsewhere before, and never less for the extends in it.
func TestTableProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := mustProfileOf(t)
		used := p.New()
		used.StepTime(shapes(t, "before"))
		s := shapes(t, "s")
		got := used.StepTime(s)
		if got < 1 || got > longest {
			t.Fatalf("%+v takes %v", s, got)
		}
		if fresh := p.New().StepTime(s); fresh != got {
			t.Fatalf("%+v takes %v from a fresh instance, %v from a used one", s, fresh, got)
		}
		if s.Decodes > 0 {
			alone := s
			alone.Extends, alone.ExtendTokens, alone.ExtendWork, alone.ExtendContext = 0, 0, 0, 0
			if less := used.StepTime(alone); less > got {
				t.Fatalf("decodes alone take %v, with extends %v", less, got)
			}
		}
	})
}

// mustProfileOf draws a table of any size, monotone or not, with attention or without.
func mustProfileOf(t *rapid.T) *Profile {
	counts := func(label string, least int) []int {
		var out []int
		n := 0
		for range rapid.IntRange(least, 4).Draw(t, label) {
			n += rapid.IntRange(1, 300).Draw(t, label+" gap")
			out = append(out, n)
		}
		return out
	}
	ms := rapid.Float64Range(1e-6, 1e3)
	s := Steps{
		DecodeGrid{Batch: counts("batches", 1), ContextTokens: counts("contexts", 1)},
		PrefillGrid{Tokens: counts("tokens", 2)},
	}
	split := rapid.Bool().Draw(t, "attention apart")
	row := func(n int) (steps, attention []float64) {
		for range n {
			steps = append(steps, ms.Draw(t, "ms"))
			if split {
				attention = append(attention, steps[len(steps)-1]*rapid.Float64Range(0, .99).Draw(t, "share"))
			}
		}
		return steps, attention
	}
	contexts := len(s.Decode.ContextTokens)
	for range s.Decode.Batch {
		steps, attention := row(rapid.IntRange(min(contexts, 2), contexts).Draw(t, "measured"))
		s.Decode.StepMS = append(s.Decode.StepMS, steps)
		if split {
			s.Decode.AttentionMS = append(s.Decode.AttentionMS, attention)
		}
	}
	s.Prefill.StepMS, s.Prefill.AttentionMS = row(len(s.Prefill.Tokens))
	p, err := NewProfile("drawn", s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
