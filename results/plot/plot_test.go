package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/trbench/trbench/results"
)

// example is a made-up run whose systems behave as one would expect them to.
func example(counts ...int) Data {
	s := &results.Summary{Run: "0f3a", Clock: "virtual", Seed: 1}
	d := Data{Summary: s}
	systems := []struct {
		name        string
		speed, keep float64 // output of one request at a time, tok/s, and the exponent of N
		ttft        float64 // ms
	}{
		{"tokenrouter", 73.02, 0.88, 35}, {"rpc:vllm-apc", 34.5, 0.72, 45}, {"rpc:vllm-noapc", 17.1, 0.4, 45},
		{"rpc:sglang-radix", 41, 0.55, 60}, {"large-only", 24.3, 0.93, 110},
	}
	r := rand.New(rand.NewPCG(1, 2))
	for i, workload := range []string{"gsm8k", "alpaca", "sharegpt"} {
		for _, n := range counts {
			for _, sys := range systems {
				x := math.Pow(float64(n), sys.keep) * sys.speed / (1 + 0.3*float64(i))
				tpot := 1000 * float64(n) / x
				ttft := make([]float64, 300)
				for k := range ttft {
					ttft[k] = sys.ttft * math.Exp(0.35*r.NormFloat64()) * (1 + math.Log2(float64(n))/4)
				}
				p := results.Point{
					System: sys.name, Algorithm: "r2r", Workload: workload, Pair: "llama3-8b-70b", Concurrency: n,
					Requests: 200, OutputTokS: results.F(x), TPOT: quantiles(tpot), TTFT: quantiles(sys.ttft),
					Source: "simulated", Latency: "a100", Arrival: "closed",
				}
				s.Points = append(s.Points, p)
				d.TTFT = append(d.TTFT, ttft)
			}
		}
	}
	return d
}

func quantiles(mean float64) *results.Dist {
	return &results.Dist{Mean: mean, Quantiles: []results.Quantile{
		{P: 50, Value: 0.9 * mean}, {P: 90, Value: 1.3 * mean}, {P: 99, Value: 1.8 * mean},
	}}
}

func render(t *testing.T, f *Figure) (svg, png []byte) {
	t.Helper()
	var s, p bytes.Buffer
	if err := errors.Join(f.SVG(&s), f.PNG(&p)); err != nil {
		t.Fatal(err)
	}
	return s.Bytes(), p.Bytes()
}

// wellFormed reads an SVG to its end and returns the words in it.
func wellFormed(t *testing.T, svg []byte) string {
	t.Helper()
	var words strings.Builder
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return words.String()
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		if text, ok := token.(xml.CharData); ok {
			words.Write(text)
			words.WriteByte('\n')
		}
	}
}

func names(figures []Figure) []string {
	var found []string
	for i := range figures {
		found = append(found, figures[i].Name)
	}
	return found
}

// Every figure of a usual run is a well-formed SVG and a PNG of the same shape, says what it is and where it comes
// from, and is the same the second time.
func TestFigures(t *testing.T) {
	d := example(1, 4, 16)
	figures, notes := Figures(d)
	want := []string{"headline"}
	for _, workload := range []string{"gsm8k", "alpaca", "sharegpt"} {
		for _, kind := range []string{"throughput-", "tpot-p99-", "speed-", "ttft-cdf-"} {
			want = append(want, kind+workload)
		}
	}
	if got := names(figures); !slices.Equal(got, want) {
		t.Fatalf("figures %q, want %q", got, want)
	}
	if len(notes) != 0 {
		t.Errorf("notes %q", notes)
	}
	again, _ := Figures(d)
	for i := range figures[:5] { // the others are the same of another workload
		f := &figures[i]
		svg, picture := render(t, f)
		text := wellFormed(t, svg)
		for _, word := range []string{
			"tokenrouter", "rpc:vllm-apc", "simulated", "a100 step times", "llama3-8b-70b", "seed 1",
		} {
			if !strings.Contains(text, word) {
				t.Errorf("%s: %q is not in it", f.Name, word)
			}
		}
		if bytes.Contains(svg, []byte("NaN")) {
			t.Errorf("%s: NaN in the SVG", f.Name)
		}
		image, err := png.Decode(bytes.NewReader(picture))
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		if got, want := image.Bounds().Dx(), int(f.width.Dots(dpi)); got != want {
			t.Errorf("%s: %d dots wide, want %d", f.Name, got, want)
		}
		if svg2, picture2 := render(t, &again[i]); !bytes.Equal(svg, svg2) || !bytes.Equal(picture, picture2) {
			t.Errorf("%s: drawn twice, it differs", f.Name)
		}
	}
}

func TestOneConcurrencyGivesBars(t *testing.T) {
	figures, _ := Figures(example(16))
	f := figures[0]
	if len(f.rows) != 2 || len(f.rows[0]) != 3 || len(f.rows[0][0].bars) != 5 || !f.named {
		t.Fatalf("%d rows, named %v: want two rows of three panels of five bars, without a legend", len(f.rows), f.named)
	}
	svg, _ := render(t, &f)
	text := wellFormed(t, svg)
	for _, word := range []string{"16 at a time", "838", "large-only"} { // 838 = 73.02 x 16^.88
		if !strings.Contains(text, word) {
			t.Errorf("%q is not in it:\n%s", word, text)
		}
	}
}

func TestSweep(t *testing.T) {
	figures, _ := Figures(sweep())
	if got := names(figures); !slices.Equal(got, []string{"sweep-switch-rate"}) {
		t.Fatalf("figures %q, want that of the sweep", got)
	}
	first := figures[0].rows[0][0]
	if first.title != "gsm8k" || len(first.curves) != 5 ||
		!slices.Equal(first.curves[0].xs, []float64{0.05, 0.1, 0.2, 0.35, 0.5}) {
		t.Errorf("first panel: %+v", first)
	}
	svg, _ := render(t, &figures[0])
	if !strings.Contains(wellFormed(t, svg), "switch_rate") {
		t.Error("the swept key is not in it")
	}
	// A key whose values are words is no axis: the groups stand beside each other.
	d := sweep()
	for i := range d.Summary.Points {
		d.Summary.Points[i].Axes[0].Value += "x"
	}
	figures, notes := Figures(d)
	if figures[0].Name != "headline" || figures[0].rows[0][0].title != "gsm8k\nswitch_rate 0.05x" {
		t.Errorf("first figure %q, title %q", figures[0].Name, figures[0].rows[0][0].title)
	}
	if len(notes) != 0 || len(figures) != 1+10*3 {
		t.Errorf("%d figures, notes %q", len(figures), notes)
	}
	seen := map[string]bool{}
	for _, name := range names(figures) {
		if seen[name] {
			t.Errorf("two figures are called %s", name)
		}
		seen[name] = true
	}
}

// What has no place on an axis is left out, and said to be; nothing panics.
func TestPointsWithoutAValue(t *testing.T) {
	for name, spoil := range map[string]func(p *results.Point){
		"null":     func(p *results.Point) { p.OutputTokS, p.TPOT = results.Float{}, nil },
		"zero":     func(p *results.Point) { p.OutputTokS, p.TPOT = results.F(0), quantiles(0) },
		"negative": func(p *results.Point) { p.OutputTokS, p.TPOT = results.F(-3), quantiles(-3) },
		"NaN":      func(p *results.Point) { p.TPOT = quantiles(math.NaN()) },
		"infinite": func(p *results.Point) { p.TPOT = quantiles(math.Inf(1)) },
		"tiny":     func(p *results.Point) { p.OutputTokS, p.TPOT = results.F(1e-300), quantiles(1e-300) },
		"huge":     func(p *results.Point) { p.OutputTokS, p.TPOT = results.F(1e300), quantiles(1e300) },
		"open":     func(p *results.Point) { p.Concurrency = 0 },
	} {
		for _, counts := range [][]int{{16}, {1, 16, 64}} {
			for _, all := range []bool{true, false} {
				d := example(counts...)
				d.Summary.Points, d.TTFT = d.Summary.Points[:5*len(counts)], nil // one workload
				for i := range d.Summary.Points {
					if all || i == 1 {
						spoil(&d.Summary.Points[i])
					}
				}
				figures, notes := Figures(d)
				for i := range figures {
					var svg bytes.Buffer
					if err := figures[i].SVG(&svg); err != nil {
						t.Fatal(err)
					}
					if text := wellFormed(t, svg.Bytes()); bytes.Contains(svg.Bytes(), []byte("NaN")) {
						t.Errorf("%s, %v: NaN in %s:\n%s", name, counts, figures[i].Name, text)
					}
				}
				if name == "null" && (len(notes) == 0 || !strings.Contains(notes[0], "headline: Left out for want of a value")) {
					t.Errorf("%s, %v: notes %q", name, counts, notes)
				}
			}
		}
	}
	if figures, notes := Figures(Data{Summary: &results.Summary{}}); figures != nil || notes != nil {
		t.Errorf("of nothing: %q, %q", names(figures), notes)
	}
}

// Whatever a name holds, the SVG is XML and the file has a name.
func TestStrangeNames(t *testing.T) {
	d := example(4)
	d.Summary.Points, d.TTFT = d.Summary.Points[:2], d.TTFT[:2]
	for i := range d.Summary.Points {
		p := &d.Summary.Points[i]
		p.Workload, p.System, p.Pair = "../<w>&\x00\xff", "\u202e\"</text>", strings.Repeat("long ", 60)
		p.Concurrency = 4 + i
	}
	figures, _ := Figures(d)
	for i := range figures {
		var svg bytes.Buffer
		if err := figures[i].SVG(&svg); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, svg.Bytes())
		if !filepath.IsLocal(figures[i].Name) || strings.ContainsAny(figures[i].Name, "./<& ") {
			t.Errorf("name %q", figures[i].Name)
		}
	}
}

func TestSave(t *testing.T) {
	dir := t.TempDir()
	d := example(4)
	d.Summary.Points, d.TTFT = d.Summary.Points[:5], d.TTFT[:5]
	files, _, err := Save(dir, d, "svg", "png")
	if err != nil || len(files) != 2*5 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, name := range files {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if _, _, err := Save(dir, d, "gif"); err == nil || err.Error() != `plot format "gif": want svg or png` {
		t.Errorf("gif: %v", err)
	}
	if _, _, err := Save(filepath.Join(dir, "none"), d, "svg"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

func TestDistributionIsExactWhereItSteps(t *testing.T) {
	values := make([]float64, 1001)
	for i := range values {
		values[i] = float64((i * 8) % 1001)
	}
	c := distribution(values)
	if len(c.xs) != cdfPoints+1 || c.ys[0] != 0 || c.ys[cdfPoints] != 100 {
		t.Fatalf("%d points from %v to %v", len(c.xs), c.ys[0], c.ys[len(c.ys)-1])
	}
	for k := 1; k < len(c.xs); k++ {
		if share := 100 * (c.xs[k] + 1) / 1001; math.Abs(c.ys[k]-share) > 1e-9 {
			t.Errorf("at %v: %v %%, want %v", c.xs[k], c.ys[k], share)
		}
	}
	if c := distribution([]float64{3}); !slices.Equal(c.ys, []float64{0, 100}) {
		t.Errorf("of one value: %v", c.ys)
	}
}

func TestTerm(t *testing.T) {
	s := example(1, 64).Summary
	s.Points[0].System = strings.Repeat("x", 100)
	s.Points[1].OutputTokS = results.Float{}
	var b bytes.Buffer
	if err := Term(&b, s); err != nil {
		t.Fatal(err)
	}
	full := 0
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > termWidth {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.Contains(line, strings.Repeat("█", termBar)) {
			full++
		}
	}
	if full != 1 {
		t.Errorf("%d bars are full, want the longest only:\n%s", full, b.String())
	}
	for value, want := range map[float64]string{
		0: "", 100: strings.Repeat("█", termBar), 1e-9: "▏", 3.75: "█▌", math.NaN(): "",
	} {
		if got := textBar(value, 100); got != want {
			t.Errorf("bar of %v: %q, want %q", value, got, want)
		}
	}
}

func BenchmarkFigure(b *testing.B) {
	figures, _ := Figures(example(1, 2, 4, 8, 16, 32, 64))
	f := &figures[0]
	for _, format := range []struct {
		name  string
		write func(io.Writer) error
	}{{"svg", f.SVG}, {"png", f.PNG}} {
		b.Run("format="+format.name, func(b *testing.B) {
			for b.Loop() {
				if err := format.write(io.Discard); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// sweep is a run over switch rates.
func sweep() Data {
	d := Data{Summary: &results.Summary{Seed: 1}}
	for _, rate := range []string{"0.05", "0.1", "0.2", "0.35", "0.5"} {
		x, err := strconv.ParseFloat(rate, 64)
		if err != nil {
			panic(err)
		}
		for _, p := range example(16).Summary.Points {
			if p.Workload == "sharegpt" {
				continue
			}
			if p.System != "large-only" {
				p.OutputTokS = results.F(p.OutputTokS.Or(0) * 0.1 / (0.03 + x))
				p.TPOT = quantiles(p.TPOT.Mean * (0.03 + x) / 0.1)
			}
			p.Axes = results.Axes{{Key: "switch_rate", Value: rate}}
			d.Summary.Points = append(d.Summary.Points, p)
		}
	}
	return d
}
