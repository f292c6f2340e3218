package kernels

import (
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

	"pgregory.net/rapid"

	"github.com/trbench/trbench/internal/testutil"
	"github.com/trbench/trbench/models/latency"
)

var _ latency.Model = (*Model)(nil)
var _ latency.Extrapolator = (*Model)(nil)

// Small tables whose sums are easy: dense kernels of 1 us and 1 ns a token, attention of 10 us and .01 us for each token
// of context that a decode reads, and so on.
var small = map[string]string{
	DenseFile: "layer,tokens,time_us\n" +
		"qkv_proj,1,1.001\nqkv_proj,1000,2\no_proj,1,1.001\no_proj,1000,2\n" +
		"gate_up_proj,1,1.001\ngate_up_proj,1000,2\ndown_proj,1,1.001\ndown_proj,1000,2\n" +
		"layernorm,1,.5\nrotary_emb,1,.25\nact_fn,1,.125\nembedding,1,3\nfinal_layernorm,1,2\n",
	SequenceFile: "layer,sequences,time_us\nlm_head,1,100\nlm_head,3,120\nsampler,1,7\n",
	AttentionFile: "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n" +
		"0,0,1,100,11\n0,0,1,200,12\n0,0,4,100,14\n0,0,4,200,18\n" +
		"16,0,0,0,10\n16,100,0,0,12\n64,0,0,0,40\n64,100,0,0,50\n" +
		"16,0,4,100,20\n16,0,4,200,24\n64,0,4,100,50\n64,0,4,200,54\n",
	SkewFile: "regime,n,nb,ratio,skew,pc,kp,kvs,kv_big,kv_mean,t_mean_us,t_max_us,t_skew_us,alpha\n" +
		"pure,4,2,0.5,3.0,0,0,50,150,100,14,18,16,0.5\n",
	ReduceFile: "elements,us\n1000,10\n3000,14\n",
}

var arch = Arch{Layers: 2, Hidden: 10, Vocab: 400, TP: 1}

// folder writes tables, with changes, and returns the folder. An empty text leaves a file out.
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
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func load(t testing.TB, changes map[string]string, a Arch) (*Model, []string) {
	t.Helper()
	m, warnings, err := Load(folder(t, changes), "", a)
	if err != nil {
		t.Fatal(err)
	}
	return m, warnings
}

func decodes(contexts ...int) Shape {
	var s Shape
	for _, c := range contexts {
		s.Decodes++
		s.DecodeContext += int64(c)
		s.DecodeLongest = max(s.DecodeLongest, c)
		s.DecodeSquares += float64(c) * float64(c)
	}
	s.Longest = s.DecodeLongest
	return s
}

func extend(s Shape, tokens, cached int) Shape {
	s.Extends++
	s.ExtendTokens += int64(tokens)
	s.ExtendWork += int64(tokens) * int64(tokens+2*cached)
	s.ExtendContext += int64(tokens + cached)
	s.Longest = max(s.Longest, tokens+cached)
	return s
}

// TestTime wants sums that can be done by hand. A layer's dense kernels are 4 (1 + n / 1000) us and its elementwise ones
// 2 x .5 + .25 + .125.
func TestTime(t *testing.T) {
	m, warnings := load(t, nil, arch)
	if len(warnings) > 0 {
		t.Errorf("warnings %q", warnings)
	}
	head := func(n float64) float64 { return 3 + 2 + 100 + 10*(n-1) + 7 }
	layer := func(n float64) float64 { return 4*(1+n/1000) + 1.375 }
	for _, c := range []struct {
		what  string
		shape Shape
		want  float64 // us
	}{
		{"one decode, in the table", decodes(101), head(1) + 2*(layer(1)+11)},
		{"one decode, between contexts", decodes(151), head(1) + 2*(layer(1)+11.5)},
		{"one decode, shorter than any", decodes(11), head(1) + 2*(layer(1)+11)},
		{"one decode, longer than any", decodes(301), head(1) + 2*(layer(1)+13)},
		{"two like decodes, between counts", decodes(101, 101), head(2) + 2*(layer(2)+12)},
		{"four decodes, as skewed as measured", decodes(51, 51, 151, 151), head(4) + 2*(layer(4)+14+.5*2)},
		{"a prefill", extend(Shape{}, 16, 0), head(1) + 2*(layer(16)+10)},
		{"a prefill, between chunks", extend(Shape{}, 40, 0), head(1) + 2*(layer(40)+25)},
		{"a prefill over context", extend(Shape{}, 16, 50), head(1) + 2*(layer(16)+11)},
		{"a prefill in two pieces", extend(Shape{}, 80, 0), head(1) + 2*(layer(80)+40+11.28)},
		{"a prefill beside decodes", extend(decodes(101, 101, 101, 101), 16, 0), head(5) + 2*(layer(20)+20)},
		{"a prefill over context beside decodes, never measured", extend(decodes(101, 101, 101, 101), 16, 100),
			head(5) + 2*(layer(20)+20)},
		{"two prefills as one of like work", extend(extend(Shape{}, 24, 0), 32, 0),
			head(2) + 2*(layer(56)+10+(40-10)*(40-16.)/48)},
	} {
		got := m.Time(c.shape)
		want := time.Duration(math.Round(c.want * 1000))
		if d := got - want; d < -1 || d > 1 {
			t.Errorf("%s: %v, want %v", c.what, got, want)
		}
	}
	if got := m.Time(Shape{}); got != 1 {
		t.Errorf("an empty step takes %v", got)
	}
	if got, want := m.StepTime(decodes(101, 101).Shape), m.Time(decodes(101, 101)); got != want {
		t.Errorf("StepTime %v, Time %v", got, want)
	}
}

// TestWithout wants each part to be worth what its rows say, and the model that it was taken from to stay.
func TestWithout(t *testing.T) {
	a := arch
	a.TP = 2
	m, warnings := load(t, nil, a)
	if len(warnings) > 0 {
		t.Errorf("warnings %q", warnings)
	}
	s := decodes(51, 51, 151, 151)
	all := m.Time(s)
	// 4 tokens x 10 elements are below the table; 4 sequences x 400 / 2 are too: 10 us each.
	for parts, us := range map[Mechanisms]float64{
		Elementwise: 3 + 2 + 7 + 2*1.375, Skew: 2, Collectives: (2*2+1)*10 + 10, Skew | Collectives: 62,
	} {
		if got, want := all-m.Without(parts).Time(s), time.Duration(us*1000); got < want-1 || got > want+1 {
			t.Errorf("parts %b: %v, want %v", parts, got, want)
		}
	}
	if m.Time(s) != all {
		t.Error("Without changed the model")
	}
}

// TestWarnings wants a word for each thing that a step lacks.
func TestWarnings(t *testing.T) {
	two := arch
	two.TP = 2
	four := arch
	four.TP = 4
	normed := arch
	normed.QKNorm = true
	for _, c := range []struct {
		changes map[string]string
		arch    Arch
		want    string
	}{
		{map[string]string{SkewFile: ""}, arch, "has no skew.csv"},
		{map[string]string{ReduceFile: ""}, two, "without measured all-reduces: 5 of them a step"},
		{nil, four, "is taken for 4 GPUs as it is"},
		{nil, normed, "has no layer qk_norm"},
		{map[string]string{DenseFile: small[DenseFile] + "moe,1,5\n"}, arch, `layer "moe" is not known`},
		{map[string]string{DenseFile: strings.ReplaceAll(small[DenseFile], "act_fn,1,.125\n", "")}, arch, "no layer act_fn"},
	} {
		_, warnings := load(t, c.changes, c.arch)
		if len(warnings) != 1 || !strings.Contains(warnings[0], c.want) {
			t.Errorf("warnings %q, want one with %q", warnings, c.want)
		}
	}
}

// TestExtrapolated wants a step beyond the tables to be named, with the furthest.
func TestExtrapolated(t *testing.T) {
	m, _ := load(t, nil, arch)
	m.Time(decodes(101))
	if got := m.Extrapolated(); len(got) > 0 {
		t.Errorf("within the tables: %q", got)
	}
	m.Time(extend(decodes(301, 101, 101, 101, 101), 2000, 0))
	got := strings.Join(m.Extrapolated(), "\n")
	for _, want := range []string{
		"steps of tokens up to 2005, the tables end at 1000", "steps of sequences up to 6, the tables end at 3",
		"prefills of tokens up to 2000, the tables end at 64", "decodes up to 5, the tables end at 4",
		"contexts of tokens up to 300, the tables end at 200",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestErrors wants file, line, field and what was wanted.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		file, text, want string
	}{
		{DenseFile, "", "dense.csv: no such file"},
		{DenseFile, "\n\n", "dense.csv: the file is empty"},
		{DenseFile, "layer,time_us\n", `dense.csv: line 1: field "tokens": no such column in the header "layer,time_us"`},
		{DenseFile, "layer,tokens,time_us\nqkv_proj,1\n", "dense.csv: line 2: 2 cells, want 3"},
		{DenseFile, "layer,tokens,time_us\nqkv_proj,one,2\n", `dense.csv: line 2: field "tokens": "one": want a number`},
		{DenseFile, "layer,tokens,time_us\nqkv_proj,0,2\n", `dense.csv: line 2: field "tokens": 0: want at least 1`},
		{DenseFile, "layer,tokens,time_us\nqkv_proj,1,-2\n", `dense.csv: line 2: field "time_us": -2: want at least 0`},
		{DenseFile, "layer,tokens,time_us\nqkv_proj,1,NaN\n", `field "time_us": "NaN": want a number`},
		{DenseFile, "layer,tokens,time_us\nqkv_proj,2,1\nqkv_proj,2,1\n", "line 3: field \"tokens\": 2 of layer qkv_proj: want more"},
		{DenseFile, "layer,tokens,time_us\nqkv_proj,1,2\n", `dense.csv: field "layer": no lines of layer o_proj`},
		{SequenceFile, "layer,sequences,time_us\nhead,1,2\n", `per_sequence.csv: field "layer": "head": want lm_head or sampler`},
		{SequenceFile, "layer,sequences,time_us\nsampler,1,2\n", `field "layer": no lines of layer lm_head`},
		{AttentionFile, "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n0,0,0,0,1\n", "line 2: field \"prefill_chunk\": 0, and n_decode 0"},
		{AttentionFile, small[AttentionFile] + "0,0,1,100,9\n", "line 14: the same batch as in line 2"},
		{AttentionFile, "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n16,0,0,0,1\n", "want lines of decodes alone"},
		{SkewFile, "n,ratio,pc,kp,kvs,t_mean_us,t_max_us,t_skew_us\n4,1.5,0,0,50,1,2,3\n", `skew.csv: line 2: field "ratio": 1.5`},
		{SkewFile, "n,ratio,pc,kp,kvs,t_mean_us,t_max_us,t_skew_us\n4,.5,0,0,50,0,2,3\n", `field "t_mean_us": 0: want a time`},
		{ReduceFile, "elements,us\n10,1\n10,1\n", `allreduce.csv: line 3: field "elements": 10: want more than the 10`},
	} {
		a := arch
		a.TP = 2
		_, _, err := Load(folder(t, map[string]string{c.file: c.text}), "", a)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.file, err, c.want)
		}
	}
	a := arch
	a.TP = 2
	_, _, err := Load(folder(t, nil), "nowhere.csv", a)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "nowhere.csv: no such file") {
		t.Errorf("a named all-reduce table that is not there: %v", err)
	}
}

// TestForms wants what other programs write to be read: CRLF, a byte order mark, blanks, blank lines, other columns.
func TestForms(t *testing.T) {
	text := "\ufeff" + strings.ReplaceAll(small[DenseFile], "\n", "\r\n") + "\r\n\r\n"
	text = strings.ReplaceAll(text, "layer,tokens,time_us", " tokens , gpu,layer, time_us")
	var lines []string
	for i, line := range strings.Split(strings.TrimSuffix(text, "\r\n\r\n"), "\r\n") {
		if c := strings.Split(line, ","); i > 0 && len(c) == 3 {
			line = c[1] + " ,any, " + c[0] + "," + c[2]
		}
		lines = append(lines, line)
	}
	m, _ := load(t, map[string]string{DenseFile: strings.Join(lines, "\r\n") + "\r\n\r\n"}, arch)
	want, _ := load(t, nil, arch)
	if got, want := m.Time(decodes(101)), want.Time(decodes(101)); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestChunkOf wants one prefill to stand for several with the same tokens and work, or, without context, the same work.
func TestChunkOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Shape
		for range rapid.IntRange(1, 5).Draw(t, "prefills") {
			s = extend(s, rapid.IntRange(1, 3000).Draw(t, "tokens"), rapid.IntRange(0, 3000).Draw(t, "cached"))
		}
		n, k := chunkOf(&s.Shape)
		if work := n * (n + 2*k); math.Abs(work/float64(s.ExtendWork)-1) > 1e-9 {
			t.Errorf("work %g, want %d", work, s.ExtendWork)
		}
		if k > 0 && n != float64(s.ExtendTokens) || n > float64(s.ExtendTokens)+1e-6 {
			t.Errorf("%g tokens over %g, want %d", n, k, s.ExtendTokens)
		}
	})
}

// TestBetween wants every time to lie between those of the measured neighbours: interpolation makes no new extremes.
func TestBetween(t *testing.T) {
	m, _ := load(t, nil, arch)
	rapid.Check(t, func(t *rapid.T) {
		n, c := rapid.Float64Range(1, 4).Draw(t, "decodes"), rapid.Float64Range(100, 200).Draw(t, "context")
		if got := m.attention.at(0, 0, n, c); got < 11 || got > 18 {
			t.Errorf("%g decodes of %g: %g us, want 11 to 18", n, c, got)
		}
		chunk, cached := rapid.Float64Range(16, 64).Draw(t, "chunk"), rapid.Float64Range(0, 100).Draw(t, "cached")
		if got := m.attention.at(chunk, cached, 0, 0); got < 10 || got > 50 {
			t.Errorf("a prefill of %g over %g: %g us, want 10 to 50", chunk, cached, got)
		}
	})
}

var measured = []struct {
	folder string
	arch   Arch
}{
	{"RTX4090/Llama-3.1-8B-tp1", Arch{Layers: 32, Hidden: 4096, Vocab: 128256, TP: 1}},
	{"RTXPRO6000/Llama-3.1-8B-tp1", Arch{Layers: 32, Hidden: 4096, Vocab: 128256, TP: 1}},
	{"RTXPRO6000/Qwen3-32B-tp2", Arch{Layers: 64, Hidden: 5120, Vocab: 151936, QKNorm: true, TP: 2}},
}

// TestMeasured wants the measured tables to come back: uniform batches exactly, and skewed batches as the ratio to the
// batch of the mean, with a median error below the tables' own scatter.
func TestMeasured(t *testing.T) {
	root := testutil.Reference(t, "step-latency")
	for _, c := range measured {
		m, warnings, err := Load(filepath.Join(root, c.folder), filepath.Join(root, "RTXPRO6000", ReduceFile), c.arch)
		if err != nil {
			t.Fatal(err)
		}
		if len(warnings) > 0 {
			t.Errorf("%s: warnings %q", c.folder, warnings)
		}
		err = readTable(filepath.Join(root, c.folder, AttentionFile),
			[]string{"prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"}, func(r *row) error {
				var p point
				if err := r.numbers(0, 0, &p.chunk, &p.cached, &p.decodes, &p.context, &p.us); err != nil {
					return err
				}
				if got := m.attention.at(p.chunk, p.cached, p.decodes, p.context); math.Abs(got-p.us) > 1e-6*p.us {
					return fmt.Errorf("line %d: %g us, measured %g", r.line, got, p.us)
				}
				return nil
			})
		if err != nil {
			t.Errorf("%s: %v", c.folder, err)
		}
		var off []float64
		err = readTable(filepath.Join(root, c.folder, SkewFile),
			[]string{"pc", "kp", "n", "ratio", "kvs", "t_mean_us", "t_max_us", "t_skew_us"}, func(r *row) error {
				var b batch
				if err := r.numbers(0, 0, &b.chunk, &b.cached, &b.decodes, &b.share, &b.small, &b.mean, &b.longest,
					&b.skewed); err != nil {
					return err
				}
				alpha := m.skew.alpha(b.chunk, b.cached, b.decodes, b.share, b.small)
				off = append(off, math.Abs((b.mean+alpha*(b.longest-b.mean))/b.skewed-1))
				return nil
			})
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(off)
		if median, tail := off[len(off)/2], off[len(off)*99/100]; median > 1e-9 || tail > .02 {
			t.Errorf("%s: skewed batches off by %.2g (median) and %.2g (99 of 100)", c.folder, median, tail)
		}
	}
}

// FuzzLoad wants bad tables to give an error that says where, and good ones a finite, positive time.
func FuzzLoad(f *testing.F) {
	for _, name := range []string{DenseFile, SequenceFile, AttentionFile, SkewFile, ReduceFile} {
		f.Add(name, small[name])
	}
	f.Add(AttentionFile, "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n1,1,1,1,1\n0,0,1,9,1e300\n7,0,0,0,2\n")
	f.Add(SkewFile, "n,ratio,pc,kp,kvs,t_mean_us,t_max_us,t_skew_us\n1,0,16,0,1,1e-300,1e300,5\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		if _, ok := small[name]; !ok || len(text) > 1<<16 {
			return
		}
		a := arch
		a.TP = 2
		m, _, err := Load(folder(t, map[string]string{name: text}), "", a)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		for _, s := range []Shape{decodes(51, 151), extend(decodes(51, 151, 4000), 300, 10), extend(Shape{}, 5000, 0)} {
			if d := m.Time(s); d < 1 {
				t.Fatalf("%+v takes %v", s, d)
			}
		}
	})
}

// BenchmarkTime prices a mixed step over measured tables.
func BenchmarkTime(b *testing.B) {
	m, _, err := Load(filepath.Join(testutil.Reference(b, "step-latency"), measured[1].folder), "", measured[1].arch)
	if err != nil {
		b.Fatal(err)
	}
	s := extend(decodes(900, 1100, 4000, 700, 350), 300, 500)
	b.ReportAllocs()
	for b.Loop() {
		m.Time(s)
	}
}
