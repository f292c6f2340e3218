package plot

import (
	"bytes"
	"errors"
	"fmt"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/trbench/trbench/results"
)

// tuned is a made-up sweep over thresholds with three policies side by side: the best threshold is half of N.
func tuned(counts []int, rates ...string) *Tuning {
	t := &Tuning{
		Summary: &results.Summary{Seed: 1}, Objective: "max output_tok_s", Metric: "output_tok_s", Repeats: 3,
		Axes: []TuningAxis{{Key: "concurrency"}, {Key: "threshold", Values: numbersTo(slices.Max(counts)), Delay: true}},
	}
	for _, n := range counts {
		t.Axes[0].Values = append(t.Axes[0].Values, strconv.Itoa(n))
	}
	if rates != nil {
		t.Axes = append(t.Axes, TuningAxis{Key: "switch_rate", Values: rates})
	} else {
		rates = []string{""}
	}
	var points []results.Point
	for _, n := range counts {
		for r, rate := range rates {
			g := TuningGroup{Title: fmt.Sprintf("N = %d", n), Best: -1, Eager: 0, GainCI: results.F(0.01)}
			if rate != "" {
				g.Title += ", switch_rate " + rate
			}
			for _, policy := range policies {
				for k := 1; k <= n; k++ {
					delay := float64(k)
					if policy == "timer" {
						delay = float64(k-1) / 2
					}
					if k == 1 && policy != "threshold" {
						continue
					}
					x := 50*float64(n)/float64(r+1) - math.Abs(delay-float64(n)/2)
					if policy != "threshold" {
						x -= 5
					}
					p := TuningPoint{
						Policy: policy, Delay: delay, Value: results.F(x), CI95: results.F(2), Runs: 3, Meets: true,
						Values: []string{strconv.Itoa(n), strconv.Itoa(k)},
					}
					if rate != "" {
						p.Values = append(p.Values, rate)
					}
					if k == n {
						p.Runs, p.CI95 = 1, results.Float{}
					}
					points = append(points, results.Point{
						System: "tokenrouter", Algorithm: "r2r", Workload: "gsm8k", Pair: "llama3-8b-70b",
						Concurrency: n, Requests: 64, OutputTokS: results.F(x),
						TPOT: quantiles(1000 * float64(n) / x), Source: "simulated", Latency: "paper",
					})
					if g.Best < 0 || x > g.Points[g.Best].Value.Or(0) {
						g.Best = len(g.Points)
					}
					g.Points = append(g.Points, p)
				}
			}
			for b := 1; b <= n; b++ {
				x := 51*float64(n)/float64(r+1) - math.Abs(float64(b)-float64(n)/2)
				g.Predicted = append(g.Predicted, Prediction{b, x})
			}
			g.Gain = results.Change(g.Points[g.Best].Value, g.Points[0].Value)
			t.Groups = append(t.Groups, g)
		}
	}
	t.Summary.Points = points
	k := 0
	for i := range t.Groups {
		for j := range t.Groups[i].Points {
			t.Groups[i].Points[j].Point = &points[k]
			k++
		}
	}
	return t
}

func numbersTo(n int) []string {
	var found []string
	for i := 1; i <= n; i++ {
		found = append(found, strconv.Itoa(i))
	}
	return found
}

// batches is a made-up sweep over two numbers that are chosen, under a limit.
func batches() *Tuning {
	t := tuned([]int{4, 8})
	t.Objective, t.Limits = "max output_tok_s s.t. tpot_p99_ms < 40", []Limit{{"tpot_p99_ms", "<", 40}}
	t.Axes = []TuningAxis{
		{Key: "concurrency", Values: []string{"4", "8"}}, {Key: "max_batch", Values: []string{"2", "4", "8"}},
		{Key: "token_budget", Values: []string{"64", "256"}},
	}
	for i := range t.Groups {
		g := &t.Groups[i]
		g.Points, g.Best, g.Predicted = g.Points[:6], -1, nil
		for j := range g.Points {
			p := &g.Points[j]
			p.Policy, p.Delay = "threshold", 1
			p.Values = []string{t.Axes[0].Values[i], t.Axes[1].Values[j/2], t.Axes[2].Values[j%2]}
			p.Value = results.F(float64(100*(i+1) + 10*j))
			p.Point.OutputTokS, p.Point.TPOT = p.Value, quantiles(float64(10+3*j))
			p.Meets = p.tail() < 40
			if p.Meets {
				g.Best = j
			}
		}
	}
	return t
}

func figureCalled(t *testing.T, figures []Figure, name string) *Figure {
	t.Helper()
	for i := range figures {
		if figures[i].Name == name {
			return &figures[i]
		}
	}
	t.Fatalf("figures %q: %s is missing", names(figures), name)
	return nil
}

// Each kind of sweep has its figures; each is well formed, says what it is, and is the same the second time.
func TestTuningFigures(t *testing.T) {
	words := []string{
		"gsm8k", "r2r on llama3-8b-70b", "paper step times", "64 requests a point", "seeds 1 to 3", "imulated", "best",
	}
	for _, c := range []struct {
		name   string
		tuning func() *Tuning
		want   []string
		words  map[string][]string
	}{
		{"thresholds", func() *Tuning { return tuned([]int{4, 8, 16}) },
			[]string{"delay", "pareto", "heatmap"}, map[string][]string{
				"delay": {
					"exact Markov chain", "95 % interval", "N = 16", "best: B = 8, +0.9 % ± 1.0", "Hollow", "gate's K",
					"do not begin at 0",
				},
				"pareto": {"by batching policy", "Pareto front", "P99 TPOT, ms per token", "best: B = 4"},
				"heatmap": {
					"Change of output against eager", "There is a best for each concurrency", "Blank", "Thresholds only",
				},
			}},
		{"thresholds and a rate", func() *Tuning { return tuned([]int{4, 8}, "0.1", "0.2", "0.4", "0.5") },
			[]string{"delay", "pareto", "heatmap", "sweep-switch-rate"}, map[string][]string{
				"delay":             {"6 of 8 panels are shown. Left out: N = 4, switch_rate 0.5; N = 8, switch_rate 0.4."},
				"sweep-switch-rate": {"eager", "N = 8"},
			}},
		{"batches", batches, []string{"pareto", "heatmap"}, map[string][]string{
			"pareto":  {"by max_batch", "limit < 40", "best: max_batch 8, token_budget 64", "s.t. tpot_p99_ms < 40"},
			"heatmap": {"Output over max_batch and token_budget", "Crossed out: does not keep to tpot_p99_ms < 40."},
		}},
	} {
		figures, notes := TuningFigures(c.tuning())
		if got := names(figures); !slices.Equal(got, c.want) || len(notes) != 0 {
			t.Fatalf("%s: figures %q, want %q; notes %q", c.name, got, c.want, notes)
		}
		again, _ := TuningFigures(c.tuning())
		for i := range figures {
			f := &figures[i]
			var svg, svg2 bytes.Buffer
			if err := errors.Join(f.SVG(&svg), again[i].SVG(&svg2)); err != nil {
				t.Fatal(err)
			}
			text := strings.Join(strings.Fields(wellFormed(t, svg.Bytes())), " ")
			for _, word := range append(slices.Clone(words), c.words[f.Name]...) {
				if !strings.Contains(text, word) {
					t.Errorf("%s: %s: %q is not in it:\n%s", c.name, f.Name, word, text)
				}
			}
			if bytes.Contains(svg.Bytes(), []byte("NaN")) {
				t.Errorf("%s: NaN in %s", c.name, f.Name)
			}
			if !bytes.Equal(svg.Bytes(), svg2.Bytes()) {
				t.Errorf("%s: %s differs when drawn twice", c.name, f.Name)
			}
		}
	}
}

func TestTuningPNG(t *testing.T) {
	figures, _ := TuningFigures(batches())
	again, _ := TuningFigures(batches())
	f := figureCalled(t, figures, "heatmap")
	_, picture := render(t, f)
	image, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := image.Bounds().Dx(), int(f.width.Dots(dpi)); got != want {
		t.Errorf("%d dots wide, want %d", got, want)
	}
	if _, picture2 := render(t, figureCalled(t, again, "heatmap")); !bytes.Equal(picture, picture2) {
		t.Error("it differs when drawn twice")
	}
}

// A panel of delays holds every point, the chain and the eager level, and rings the best.
func TestDelayPanel(t *testing.T) {
	figures, _ := TuningFigures(tuned([]int{4, 8}))
	f := figureCalled(t, figures, "delay")
	p := f.rows[0][1]
	var strands []*strand
	for _, l := range p.layers {
		switch l := l.(type) {
		case *level:
			if l.at != 400-3 {
				t.Errorf("eager at %v, want 397", l.at)
			}
		case *path:
			if len(l.xs) != 8 || l.xs[0] != 1 || l.ys[3] != 408 || l.style.Dashes == nil {
				t.Errorf("chain %v, %v", l.xs, l.ys)
			}
		case *strand:
			strands = append(strands, l)
		case *ring:
			if *l != (ring{4, 400}) {
				t.Errorf("ring at %v, want threshold 4, 400 tok/s", *l)
			}
		}
	}
	if len(p.layers) != 6 || len(strands) != 3 {
		t.Fatalf("%d layers, %d of points: want level, chain, three policies and ring", len(p.layers), len(strands))
	}
	threshold := strands[2] // on top
	if !slices.Equal(threshold.xs, []float64{1, 2, 3, 4, 5, 6, 7, 8}) || threshold.halves[0] != 2 ||
		!threshold.once[7] || threshold.once[0] {
		t.Errorf("thresholds %+v", threshold)
	}
	if timer := strands[0]; timer.xs[0] != 0.5 {
		t.Errorf("the first timer is at %v steps, want 0.5", timer.xs[0])
	}
	if p.caption != "best: B = 4, +0.8 % ± 1.0" {
		t.Errorf("caption %q", p.caption)
	}

	// The chain knows throughput only, and no other setting.
	d := tuned([]int{4})
	d.Metric, d.Minimise = "tpot_p99_ms", true
	figures, _ = TuningFigures(d)
	if svg, _ := render(t, figureCalled(t, figures, "delay")); bytes.Contains(svg, []byte("chain")) {
		t.Error("the chain's output stands beside latencies")
	}
	d = tuned([]int{4})
	d.Axes = append(d.Axes, TuningAxis{Key: "max_batch", Values: []string{"2", "4"}})
	for i := range d.Groups[0].Points {
		p := &d.Groups[0].Points[i]
		p.Values = append(p.Values, []string{"2", "4"}[i%2])
	}
	figures, _ = TuningFigures(d)
	f = figureCalled(t, figures, "delay")
	if len(f.rows[0]) != 2 || f.rows[0][1].title != "N = 4, max_batch 4" {
		t.Fatalf("first panel %q: want a panel a max_batch", f.rows[0][0].title)
	}
	if svg, _ := render(t, f); bytes.Contains(svg, []byte("chain")) {
		t.Error("a chain of one setting stands beside another's points")
	}
}

// The front rises, holds no point that another beats, and every other point is beaten by one of it.
func TestFront(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var points []*TuningPoint
		for range rapid.IntRange(0, 20).Draw(t, "points") {
			// Few values, so that some are equal.
			x, y := float64(rapid.IntRange(1, 6).Draw(t, "tail")), float64(rapid.IntRange(1, 6).Draw(t, "output"))
			tpot := &results.Dist{Quantiles: []results.Quantile{{P: 99, Value: x}}}
			p := &results.Point{OutputTokS: results.F(y), TPOT: tpot}
			if rapid.IntRange(0, 9).Draw(t, "spoil") == 0 {
				p.TPOT = nil
			}
			points = append(points, &TuningPoint{Point: p})
		}
		line := front(points)
		for i := 1; i < len(line.xs); i++ {
			if line.xs[i] <= line.xs[i-1] || line.ys[i] <= line.ys[i-1] {
				t.Fatalf("front %v, %v does not rise", line.xs, line.ys)
			}
		}
		for _, p := range points {
			x, y := p.tail(), p.throughput()
			if math.IsNaN(x) {
				continue
			}
			under := false
			for i := range line.xs {
				if x <= line.xs[i] && y >= line.ys[i] && (x < line.xs[i] || y > line.ys[i]) {
					t.Fatalf("%v, %v beats the front %v, %v", x, y, line.xs, line.ys)
				}
				under = under || x >= line.xs[i] && y <= line.ys[i]
			}
			if !under {
				t.Fatalf("%v, %v lies outside the front %v, %v", x, y, line.xs, line.ys)
			}
		}
	})
}

func TestHeatmap(t *testing.T) {
	// Over thresholds: the change against eager, the best of each row, and no cell above N.
	figures, _ := TuningFigures(tuned([]int{4, 8}))
	m := figureCalled(t, figures, "heatmap").rows[0][0].layers[0].(*cells)
	if len(m.values) != 2 || len(m.values[0]) != 8 {
		t.Fatalf("%d rows of %d", len(m.values), len(m.values[0]))
	}
	if got, want := m.values[1][3], 100*(400./397-1); math.Abs(got-want) > 1e-9 {
		t.Errorf("N = 8, threshold 4: %v %%, want %v", got, want)
	}
	if m.values[0][0] != 0 || !math.IsNaN(m.values[0][4]) {
		t.Errorf("N = 4: eager %v, want 0; threshold 5 %v, want none", m.values[0][0], m.values[0][4])
	}
	if !slices.Equal(m.best, []int{1, 8 + 3}) {
		t.Errorf("best cells %v, want thresholds 2 of 4 and 4 of 8", m.best)
	}
	// Over what is chosen: the metric, a map a concurrency, one best that keeps to the limit.
	figures, _ = TuningFigures(batches())
	f := figureCalled(t, figures, "heatmap")
	if len(f.rows[0]) != 2 || f.rows[0][1].title != "N = 8" {
		t.Fatalf("%d maps, the second %q", len(f.rows[0]), f.rows[0][1].title)
	}
	m = f.rows[0][1].layers[0].(*cells)
	if !slices.Equal(m.values[1], []float64{210, 230, 250}) {
		t.Errorf("second row %v", m.values[1])
	}
	if !slices.Equal(m.best, []int{2}) || !m.broken[5] || m.broken[2] {
		t.Errorf("best %v, broken %v", m.best, m.broken)
	}
	if f.bar.least != 100 || f.bar.most != 250 {
		t.Errorf("bar from %v to %v: want one scale for both maps", f.bar.least, f.bar.most)
	}
}

// Names alone give the figures of a run as well, unless those would not tell points apart.
func TestTuningOverNames(t *testing.T) {
	d := &Tuning{Summary: example(4, 16).Summary, Objective: "max output_tok_s", Metric: "output_tok_s", Repeats: 1}
	d.Summary.Points = d.Summary.Points[:10] // one workload
	d.Axes = []TuningAxis{{Key: "concurrency", Values: []string{"4", "16"}}, {Key: "system"}}
	for i := range d.Summary.Points {
		p := &d.Summary.Points[i]
		if i%5 == 0 {
			d.Groups = append(d.Groups, TuningGroup{Title: fmt.Sprintf("N = %d", p.Concurrency), Eager: -1})
		}
		if i < 5 {
			d.Axes[1].Values = append(d.Axes[1].Values, p.System)
		}
		g := &d.Groups[len(d.Groups)-1]
		g.Points = append(g.Points, TuningPoint{
			Point: p, Value: p.OutputTokS, Runs: 1, Meets: true, Values: []string{strconv.Itoa(p.Concurrency), p.System},
		})
	}
	figures, _ := TuningFigures(d)
	want := []string{"pareto", "headline", "throughput-gsm8k", "tpot-p99-gsm8k", "speed-gsm8k"}
	if got := names(figures); !slices.Equal(got, want) {
		t.Errorf("figures %q, want %q", got, want)
	}
	if svg, _ := render(t, &figures[0]); !strings.Contains(wellFormed(t, svg), "by system\n") {
		t.Error("the systems are not told apart")
	}
	d.Summary.Points[1].System = "tokenrouter"
	if figures, _ := TuningFigures(d); !slices.Equal(names(figures), []string{"pareto"}) {
		t.Errorf("figures %q", names(figures))
	}
}

// What has no value is left out, and said to be; nothing panics.
func TestTuningWithoutValues(t *testing.T) {
	figures := func(p *TuningPoint, x float64) {
		p.Value, p.Point.OutputTokS, p.Point.TPOT = results.F(x), results.F(x), quantiles(x)
	}
	for name, spoil := range map[string]func(p *TuningPoint){
		"null": func(p *TuningPoint) {
			p.Value, p.CI95, p.Point.OutputTokS, p.Point.TPOT = results.Float{}, results.Float{}, results.Float{}, nil
		},
		"zero":      func(p *TuningPoint) { figures(p, 0) },
		"negative":  func(p *TuningPoint) { figures(p, -3) },
		"tiny":      func(p *TuningPoint) { figures(p, 1e-300) },
		"huge":      func(p *TuningPoint) { figures(p, 1e300) },
		"NaN":       func(p *TuningPoint) { p.Delay, p.Point.TPOT = math.NaN(), quantiles(math.NaN()) },
		"infinite":  func(p *TuningPoint) { p.Delay, p.Point.TPOT = math.Inf(1), quantiles(math.Inf(1)) },
		"wide":      func(p *TuningPoint) { p.CI95 = results.F(1e6) },
		"unlimited": func(p *TuningPoint) { p.Meets = false },
		"no policy": func(p *TuningPoint) { p.Policy = "" },
		"off axis":  func(p *TuningPoint) { p.Values = []string{"5", "x", "\x00"}[:len(p.Values)] },
	} {
		for _, all := range []bool{true, false} {
			tunings := []*Tuning{tuned([]int{2, 3}), batches()}
			if !all {
				tunings = []*Tuning{tuned([]int{3}, "0.1", "0.5")}
			}
			for _, d := range tunings {
				for i := range d.Groups {
					g := &d.Groups[i]
					for j := range g.Points {
						if all || j == 1 {
							spoil(&g.Points[j])
						}
					}
					if all && name == "unlimited" {
						g.Best = -1
					}
				}
				figures, notes := TuningFigures(d)
				for i := range figures {
					var svg bytes.Buffer
					if err := figures[i].SVG(&svg); err != nil {
						t.Fatal(err)
					}
					if wellFormed(t, svg.Bytes()); bytes.Contains(svg.Bytes(), []byte("NaN")) {
						t.Errorf("%s: NaN in %s", name, figures[i].Name)
					}
				}
				if name == "null" && (len(notes) == 0 || !strings.Contains(notes[0], "Left out for want of a value")) {
					t.Errorf("%s: notes %q", name, notes)
				}
				if err := TuningTerm(&bytes.Buffer{}, d); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if figures, notes := TuningFigures(&Tuning{Summary: &results.Summary{}}); figures != nil || notes != nil {
		t.Errorf("of nothing: %q, %q", names(figures), notes)
	}
}

func TestSaveTuning(t *testing.T) {
	dir := t.TempDir()
	files, _, err := SaveTuning(dir, tuned([]int{4}), "svg", "png")
	if want := []string{"delay.svg", "delay.png", "pareto.svg", "pareto.png"}; err != nil || !slices.Equal(files, want) {
		t.Fatalf("%q, %v, want %q", files, err, want)
	}
	for _, name := range files {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() < 1000 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	_, _, err = SaveTuning(dir, tuned([]int{4}), "term")
	if err == nil || err.Error() != `plot format "term": want svg or png` {
		t.Errorf("term: %v", err)
	}
}

func TestTuningTerm(t *testing.T) {
	d := tuned([]int{4, 32})
	d.Groups[0].Title = strings.Repeat("x", 100)
	var b bytes.Buffer
	if err := TuningTerm(&b, d); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > termWidth {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	longest := strings.Repeat("█", termBar) + " 1,600\n"
	for _, want := range []string{"* B = 2 ", "* B = 16", "  eager ", "  and 78 more\n", longest} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in it:\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "K = ") || strings.Contains(b.String(), "steps") {
		t.Errorf("other policies than the best one's:\n%s", b.String())
	}
}

func TestMetricLabel(t *testing.T) {
	for key, want := range map[string]string{
		"output_tok_s": "output, tok/s", "tpot_p99_ms": "P99 TPOT, ms per token", "ttft_mean_ms": "mean TTFT, ms",
		"e2e_p99.9_ms": "P99.9 E2E, ms", "goodput_req_s": "goodput, requests/s", "unheard_of": "unheard_of",
	} {
		if got := metricLabel(key); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	// The two names of one figure agree.
	if metricLabel("tpot_p99_ms") != tpotP99.label {
		t.Errorf("%q, but %q", metricLabel("tpot_p99_ms"), tpotP99.label)
	}
}

func BenchmarkTuning(b *testing.B) {
	t := tuned([]int{4, 8, 16, 32})
	for b.Loop() {
		TuningFigures(t)
	}
}
