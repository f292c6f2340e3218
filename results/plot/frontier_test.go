package plot

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"

	"github.com/trbench/trbench/results"
)

// judged is a made-up sweep of algorithms over switch rates on a recorded pair: output falls and agreement grows with
// the rate, from 1000 tok/s and 75 % on.
func judged(algorithms []string, counts []int, rates ...string) *Tuning {
	t := &Tuning{
		Summary: &results.Summary{Seed: 1}, Objective: "max output_tok_s", Metric: "output_tok_s", Repeats: 3,
		Axes: []TuningAxis{
			{Key: "algorithm", Values: algorithms}, {Key: "switch_rate", Values: rates}, {Key: "concurrency"},
		},
		Traces: []string{"pair.csv"},
	}
	for _, n := range counts {
		t.Axes[2].Values = append(t.Axes[2].Values, strconv.Itoa(n))
		for _, rate := range rates {
			x, _ := strconv.ParseFloat(rate, 64)
			g := TuningGroup{Title: fmt.Sprintf("N = %d, switch_rate %s", n, rate), Best: -1, Eager: -1}
			for i, algorithm := range algorithms {
				output := results.F((1000 - 1000*x - 20*float64(i)) * float64(n) / 4)
				g.Points = append(g.Points, TuningPoint{
					Point: &results.Point{
						System: results.TokenRouter, Algorithm: algorithm, Workload: "gsm8k", Pair: "llama3-8b-70b",
						Concurrency: n, Requests: 64, OutputTokens: 100, OutputTokS: output, TPOT: quantiles(10 + x),
						Agreement: results.F(0.75 + 0.4*x), Source: "simulated", Latency: "paper",
					},
					Policy: "threshold", Delay: 1, Values: []string{algorithm, rate, strconv.Itoa(n)}, Value: output,
					Runs: 3 - 2*(i%2), Meets: true,
				})
			}
			t.Groups = append(t.Groups, g)
		}
	}
	t.collect()
	return t
}

// collect makes the summary hold the groups' points.
func (t *Tuning) collect() {
	t.Summary.Points = nil
	for i := range t.Groups {
		for j := range t.Groups[i].Points {
			t.Summary.Points = append(t.Summary.Points, *t.Groups[i].Points[j].Point)
		}
	}
}

// with adds a point of a baseline to the first group.
func (t *Tuning) with(system string, output, agreement results.Float) *Tuning {
	g := &t.Groups[0]
	p := *g.Points[0].Point
	p.System, p.Algorithm, p.OutputTokS, p.Agreement = system, "", output, agreement
	values := slices.Clone(g.Points[0].Values)
	values[0] = ""
	g.Points = append(g.Points, TuningPoint{Point: &p, Values: values, Value: output, Runs: 3, Meets: true})
	t.collect()
	return t
}

func TestFrontierFigure(t *testing.T) {
	mixed := func() *Tuning {
		return judged([]string{"entropy", "specdec", "citer", "query"}, []int{4, 8}, "0.1", "0.2", "0.5").
			with("large-only", results.F(300), results.Float{}).with("small-only", results.F(1500), results.F(.75)).
			with("rpc:vllm-apc", results.F(200), results.Float{})
	}
	figures, notes := TuningFigures(mixed())
	if len(notes) != 0 {
		t.Errorf("notes %q", notes)
	}
	f := figureCalled(t, figures, "frontier")
	var first, second bytes.Buffer
	if err := f.SVG(&first); err != nil {
		t.Fatal(err)
	}
	again, _ := TuningFigures(mixed())
	if err := figureCalled(t, again, "frontier").SVG(&second); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the second drawing differs")
	}
	text := wellFormed(t, first.Bytes())
	for _, want := range []string{
		"agreement with the large model, %", "output, tok/s (log scale)", "N = 4", "N = 8", "entropy", "specdec", "query",
		"large-only", "Pareto front", "teacher-forced", "(pair.csv)", "switch_rate", "0.1", "0.5", "llama3-8b-70b",
		"of 26 points ran once, the others up to 3 times.", "small-only", "left out: rpc:vllm-apc", "agreement understates it",
		"recorded pair", "which flatters them: citer.",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("%q is missing in %s", want, text)
		}
	}
	if svg := first.String(); !strings.Contains(svg, "stroke-dasharray") {
		t.Error("no dashed line: query-level routing is the baseline")
	}
	render(t, f)
}

// The line of an algorithm runs by ascending value; large-only stands at 100 % without a judge; the panels are the
// concurrencies.
func TestFrontierLines(t *testing.T) {
	d := judged([]string{"query", "entropy"}, []int{4, 8}, "0.5", "0.1", "0.2").
		with("large-only", results.F(300), results.Float{})
	f := frontier{t: d, value: d.valueAxis()}
	panels := f.panels()
	if len(panels) != 2 || panels[0].title != "N = 4" || panels[1].title != "N = 8" {
		t.Fatalf("%d panels", len(panels))
	}
	if got := f.names(panels); !slices.Equal(got, []string{"entropy", "query", "large-only"}) {
		t.Errorf("names %q: what routes by token comes first", got)
	}
	var got []string
	for _, l := range panels[0].lines {
		for _, q := range l.points {
			got = append(got, fmt.Sprintf("%s %s: %.4g %% %.4g", l.name, q.text, q.agreement, q.output))
		}
	}
	want := []string{
		"query 0.1: 79 % 900", "query 0.2: 83 % 800", "query 0.5: 95 % 500",
		"entropy 0.1: 79 % 880", "entropy 0.2: 83 % 780", "entropy 0.5: 95 % 480", "large-only : 100 % 300",
	}
	if !slices.Equal(got, want) {
		t.Errorf("lines\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if front := panels[0].front(); !slices.Equal(front.ys, []float64{900, 800, 500, 300}) {
		t.Errorf("front %v", front.ys)
	}
	if !f.agreementAxis(panels, upright).shows(100) {
		t.Error("no tick at 100 %")
	}
}

// shows says that an axis has a tick at v.
func (a axis) shows(v float64) bool {
	for _, k := range a.ticks {
		if math.Abs(k.Value-v) < 1e-9 {
			return true
		}
	}
	return false
}

// Repeats that all gave the same are no measure of noise, and the figure says so.
func TestFrontierOfRepeatsThatDoNotDiffer(t *testing.T) {
	for _, c := range []struct {
		repeats int
		half    results.Float
		want    string
	}{
		{3, results.F(0), "Of those that ran again, 2 of 2 gave the same under every seed"},
		{3, results.F(1e-13), "2 of 2 gave the same"},
		{3, results.F(5), ""},
		{3, results.Float{}, ""},
		{1, results.F(0), ""},
	} {
		d := judged([]string{"entropy"}, []int{4}, "0.1", "0.2")
		d.Repeats = c.repeats
		for i := range d.Groups {
			d.Groups[i].Points[0].CI95 = c.half
		}
		f := frontier{t: d, value: d.valueAxis()}
		if note := f.repeatNote(f.panels()); !strings.Contains(note, c.want) || (note == "") != (c.want == "") {
			t.Errorf("%d repeats, half-width %v: note %q, want %q", c.repeats, c.half, note, c.want)
		}
	}
}

// There is a frontier where two points of a panel have an agreement, and none else.
func TestFrontierNeedsAgreement(t *testing.T) {
	for _, c := range []struct {
		known int
		want  bool
	}{{0, false}, {1, false}, {2, true}, {4, true}} {
		d := judged([]string{"entropy", "query"}, []int{4}, "0.1", "0.2").with("large-only", results.F(300), results.Float{})
		left := c.known
		for i := range d.Groups {
			for j := range d.Groups[i].Points {
				if left--; left < 0 {
					d.Groups[i].Points[j].Point.Agreement = results.Float{}
				}
			}
		}
		d.collect()
		if _, ok := frontierFigure(d); ok != c.want {
			t.Errorf("%d points of known agreement: drawn %v, want %v", c.known, ok, c.want)
		}
	}
	if _, ok := frontierFigure(tuned([]int{4})); ok {
		t.Error("drawn without a recorded pair")
	}
}

// Names alone are points, and keep the figures of a run; a figure has at most four panels; of several delays the one
// with the most output is shown.
func TestFrontierOfOtherSweeps(t *testing.T) {
	d := judged([]string{"entropy", "query"}, []int{4}, "0.1")
	figures, _ := TuningFigures(d)
	if got := names(figures); len(got) < 3 || !slices.Contains(got, "frontier") || !slices.Contains(got, "pareto") {
		t.Errorf("figures %q", got)
	}
	if note := (&frontier{t: d, value: d.valueAxis()}).valueNote(); note != "" {
		t.Errorf("note %q: nothing was swept along a line", note)
	}

	d = judged([]string{"entropy"}, []int{1, 2, 4, 8, 16, 32}, "0.1", "0.2")
	f, ok := frontierFigure(d)
	if !ok || len(f.rows) != 2 || len(f.rows[0]) != 2 {
		t.Fatalf("%d rows", len(f.rows))
	}
	if note := strings.Join(f.notes, " "); !strings.Contains(note, "4 of 6 panels are shown. Left out: N = 4; N = 16.") {
		t.Errorf("notes %q", note)
	}

	d = judged([]string{"entropy"}, []int{4}, "0.1", "0.2")
	d.Axes = append(d.Axes, TuningAxis{Key: "threshold", Values: []string{"1", "2"}, Delay: true})
	g := &d.Groups[0]
	later := g.Points[0]
	point := *later.Point
	point.OutputTokS = results.F(950)
	later.Point, later.Delay = &point, 2
	for i := range d.Groups {
		for j := range d.Groups[i].Points {
			d.Groups[i].Points[j].Values = append(d.Groups[i].Points[j].Values, "1")
		}
	}
	later.Values = append(slices.Clone(later.Values), "2")
	g.Points = append(g.Points, later)
	d.collect()
	fr := frontier{t: d, value: d.valueAxis()}
	panels := fr.panels()
	if len(panels) != 1 || len(panels[0].lines[0].points) != 2 || panels[0].lines[0].points[0].output != 950 {
		t.Errorf("panels %+v", panels[0].lines[0].points)
	}
	if !strings.Contains(fr.valueNote(), "the delay with the most output") {
		t.Errorf("note %q", fr.valueNote())
	}
}

// Ends where several values lie together span them.
func TestEndWords(t *testing.T) {
	at := func(agreement, output float64, text string) frontierPoint {
		return frontierPoint{agreement: agreement, output: output, text: text}
	}
	for _, c := range []struct {
		points []frontierPoint
		want   string
	}{
		{[]frontierPoint{at(75, 900, "0.1"), at(80, 500, "0.2")}, "0.1, 0.2"},
		{[]frontierPoint{at(75, 900, "0.1"), at(75.1, 899, "0.2"), at(80, 500, "0.3")}, "0.1 to 0.2, 0.3"},
		{[]frontierPoint{at(75, 900, "0.1"), at(80, 500, "0.2"), at(80, 500, "0.3")}, "0.1, 0.2 to 0.3"},
		{[]frontierPoint{at(90, 393, "0.1"), at(90, 395, "0.2")}, "0.1 to 0.2"},
		{[]frontierPoint{at(90, 393, "4")}, "4"},
		{[]frontierPoint{at(100, 300, "")}, ""},
	} {
		w := &endWords{}
		w.add(&frontierLine{points: c.points}, ink)
		var got []string
		for i := range w.ends {
			got = append(got, w.ends[i].word())
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%v: %q, want %q", c.points, s, c.want)
		}
	}
}

// A word covers nothing that is taken, as long as there is a free place.
func TestWordBox(t *testing.T) {
	canvas := vg.Rectangle{Max: vg.Point{X: 400, Y: 300}}
	spot := around(vg.Point{X: 200, Y: 150}, 3)
	taken := []vg.Rectangle{spot}
	for k := range 6 {
		box := wordBox(spot, 20, 8, canvas, taken, k%2 == 1)
		for _, o := range taken {
			if overlap(box, o) {
				t.Errorf("word %d at %v covers %v", k, box, o)
			}
		}
		taken = append(taken, box)
	}
	// In the lower right corner it stays inside.
	corner := around(vg.Point{X: 398, Y: 2}, 3)
	for _, last := range []bool{false, true} {
		if box := wordBox(corner, 20, 8, canvas, nil, last); box.Min.Y < 0 || box.Max.X > canvas.Max.X+margin {
			t.Errorf("the word at the corner lies at %v", box)
		}
	}
}

// The front holds no point that another beats, and leaves out none that no other beats.
func TestFrontierFrontIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l frontierLine
		for range rapid.IntRange(1, 12).Draw(t, "n") {
			l.points = append(l.points, frontierPoint{
				agreement: float64(rapid.IntRange(70, 80).Draw(t, "agreement")),
				output:    float64(rapid.IntRange(1, 10).Draw(t, "output")),
			})
		}
		front := (&frontierPanel{lines: []*frontierLine{&l}}).front()
		for _, p := range l.points {
			beaten := slices.ContainsFunc(l.points, func(o frontierPoint) bool {
				return o.agreement >= p.agreement && o.output >= p.output && (o.agreement > p.agreement || o.output > p.output)
			})
			on := false
			for i := range front.xs {
				on = on || front.xs[i] == p.agreement && front.ys[i] == p.output
			}
			if on == beaten {
				t.Fatalf("%v: beaten %v, on the front %v", p, beaten, on)
			}
		}
	})
}

// The axis of output holds all values, and has a tick or two whatever they are.
func TestRatioAxis(t *testing.T) {
	if a := ratioAxis("x", nil); len(a.ticks) == 0 {
		t.Error("an axis of nothing has no tick")
	}
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(1e-3, 1e7), 1, 5).Draw(t, "values")
		a := ratioAxis("x", values)
		for _, v := range values {
			if at, ok := log10.place(v); !ok || at < a.min || at > a.max {
				t.Fatalf("%v lies outside %v to %v", v, a.min, a.max)
			}
		}
		if len(a.ticks) == 0 || len(a.ticks) > int(upright) {
			t.Fatalf("%d ticks over %v", len(a.ticks), values)
		}
		for _, k := range a.ticks {
			if k.Value < a.min-1e-9 || k.Value > a.max+1e-9 {
				t.Fatalf("tick %v lies outside", k)
			}
		}
	})
}
