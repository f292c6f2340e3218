package plot

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/trbench/trbench/results"
)

const (
	frontierName   = "frontier"
	frontierPanels = 4 // side by side or two by two: more would hide the words at the ends of the lines

	agreementLabel = "agreement with the large model, %"

	largeOnly    = "large-only"
	smallOnly    = "small-only"
	queryRouting = "query"   // one decision a request: the baseline of all that decide by token
	speculative  = "specdec" // keeps the large model's distribution, not its likeliest tokens
)

var (
	// bandStyle lies below the points that no other beats at both output and agreement.
	bandStyle = draw.LineStyle{Color: color.NRGBA{0xf0, 0xe4, 0x42, 0x90}, Width: vg.Points(9)}
	// queryLook, largeLook and smallLook set what is no token-level routing apart from it.
	queryLook = look{color: rgb(0x80, 0x80, 0x80), glyph: diamondGlyph{}, dashes: dashes(5, 3)}
	largeLook = look{color: ink, glyph: starGlyph{}}
	smallLook = look{color: ink, glyph: draw.SquareGlyph{}}
	// scored are the algorithms that read an external router's score, which no recorded pair has.
	scored = []string{"automix", "citer", "co-llm", "frugalgpt", "r2r", "specreason"}
)

// frontierFigure shows output against agreement with the large model, a line an algorithm over the values that were
// swept, a panel a concurrency and whatever else is given; false where no panel has two points whose agreement is
// known.
func frontierFigure(t *Tuning) (Figure, bool) {
	f := frontier{t: t, value: t.valueAxis()}
	all := f.panels()
	if len(all) == 0 {
		return Figure{}, false
	}
	shown, leftOut := all, ""
	if len(all) > frontierPanels {
		shown = spread(all, frontierPanels)
		var out []string
		for _, p := range all {
			if !slices.Contains(shown, p) {
				out = append(out, p.title)
			}
		}
		leftOut = leftOutNote(out, len(all))
	}
	names := f.names(all)
	out := Figure{Name: frontierName, title: "Output against agreement with the large model"}
	columns := columnsOf(len(shown))
	x := f.agreementAxis(shown, along(figureWidth(columns), columns))
	var panels []panel
	for _, p := range shown {
		panels = append(panels, p.draw(names, x))
	}
	height := 4.2 * vg.Inch
	if len(shown) > 1 {
		height = 3.4 * vg.Inch
	}
	out.place(panels, height)
	for i, name := range names {
		l := frontierLook(name, i, names)
		stroke := draw.LineStyle{Color: l.color, Width: vg.Points(1.4), Dashes: l.dashes}
		if name == largeOnly || name == smallOnly {
			stroke.Width = 0
		}
		out.legend = append(out.legend, sign{name, stroke, l.point()})
	}
	out.legend = append(out.legend, sign{name: "Pareto front", stroke: bandStyle})
	out.subtitle = sentences(t.subject()+".", "Points: simulated on a recorded pair of models.")
	out.notes = notesOf(
		sentences("Up and right is better. The front: no other point has both more output and more agreement.",
			f.valueNote(), axesNote(out.rows, true)),
		t.agreementNote(names), f.repeatNote(shown), f.unknownNote(), leftOut)
	return out, true
}

// frontier gathers what the figure shows.
type frontier struct {
	t     *Tuning
	value int // the axis along a line; -1: none, each line is a point
}

// valueAxis is the axis of numbers that a line of the figure runs along: the rate of switches, else a number of the
// algorithm, else the first other one, else how long batches wait; -1: none of these was swept.
func (t *Tuning) valueAxis() int {
	delay, _, others := t.numeric()
	for _, is := range []func(key string) bool{
		func(key string) bool { return key == "switch_rate" },
		func(key string) bool { return strings.HasPrefix(key, "algorithm.") },
		func(string) bool { return true },
	} {
		if i := slices.IndexFunc(others, func(k int) bool { return is(t.Axes[k].Key) }); i >= 0 {
			return others[i]
		}
	}
	return delay
}

// frontierPanel is the points of one setting of all that is given.
type frontierPanel struct {
	title string
	key   string
	lines []*frontierLine // in the order of the sweep
}

// frontierLine is an algorithm's points by ascending value.
type frontierLine struct {
	name   string
	points []frontierPoint
}

// frontierPoint is one place of a line.
type frontierPoint struct {
	agreement float64 // percent
	output    float64 // tok/s
	value     float64 // along the line; NaN: none
	text      string  // the value as the sweep writes it
	of        *TuningPoint
}

// panels sorts the points whose agreement is known into panels and lines. The agreement of a system that runs the large
// model alone is known without a judge.
func (f *frontier) panels() []*frontierPanel {
	var panels []*frontierPanel
	several := f.severalSystems()
	for i := range f.t.Groups {
		g := &f.t.Groups[i]
		for j := range g.Points {
			q, ok := f.point(&g.Points[j])
			if !ok {
				continue
			}
			key, title := f.place(q.of)
			at := slices.IndexFunc(panels, func(p *frontierPanel) bool { return p.key == key })
			if at < 0 {
				at = len(panels)
				panels = append(panels, &frontierPanel{title: title, key: key})
			}
			panels[at].add(lineName(q.of.Point, several), q)
		}
	}
	panels = slices.DeleteFunc(panels, func(p *frontierPanel) bool { return p.judged() < 2 })
	for _, p := range panels {
		for _, l := range p.lines {
			slices.SortStableFunc(l.points, func(a, b frontierPoint) int { return cmp.Compare(a.value, b.value) })
		}
	}
	return panels
}

// point places a point of the sweep; false where its agreement or its output is not known.
func (f *frontier) point(p *TuningPoint) (frontierPoint, bool) {
	q := frontierPoint{value: math.NaN(), of: p}
	agreement, ok := p.Point.Agreement.Get()
	if p.Point.System == largeOnly && p.Point.OutputTokens > 0 {
		agreement, ok = 1, true
	}
	output, known := p.Point.OutputTokS.Get()
	if !ok || !known {
		return q, false
	}
	q.agreement, q.output = 100*agreement, output
	if f.value >= 0 && p.Point.Algorithm != "" {
		if x, err := strconv.ParseFloat(p.Values[f.value], 64); err == nil {
			q.value, q.text = x, p.Values[f.value]
		}
	}
	return q, true
}

// place names the panel of a point: what is given, and what was swept beside the value, the algorithm, the system and
// the delay.
func (f *frontier) place(p *TuningPoint) (key, title string) {
	var keys, titles []string
	for k, a := range f.t.Axes {
		if k == f.value || a.Delay || a.Key == "system" || a.Key == "algorithm" {
			continue
		}
		keys = append(keys, p.Values[k])
		if len(a.Values) > 1 {
			titles = append(titles, setting(a.Key, p.Values[k]))
		}
	}
	if n := p.Point.Concurrency; n > 0 && !slices.ContainsFunc(f.t.Axes, isConcurrency) {
		titles = append([]string{setting(concurrencyKey, strconv.Itoa(n))}, titles...)
	}
	return strings.Join(keys, "\x00"), joinParts(titles...)
}

func isConcurrency(a TuningAxis) bool { return a.Key == concurrencyKey }

// severalSystems says that more than one system runs algorithms.
func (f *frontier) severalSystems() bool {
	first := ""
	for i := range f.t.Summary.Points {
		p := &f.t.Summary.Points[i]
		switch {
		case p.Algorithm == "":
		case first == "":
			first = p.System
		case first != p.System:
			return true
		}
	}
	return false
}

func lineName(p *results.Point, several bool) string {
	switch {
	case p.Algorithm == "":
		return p.System
	case several && p.System != results.TokenRouter:
		return p.Algorithm + ", " + p.System
	}
	return p.Algorithm
}

// add puts a point on its line. Of several with one value, which differ in how long batches wait, it keeps the one with
// the most output.
func (p *frontierPanel) add(name string, q frontierPoint) {
	at := slices.IndexFunc(p.lines, func(l *frontierLine) bool { return l.name == name })
	if at < 0 {
		at = len(p.lines)
		p.lines = append(p.lines, &frontierLine{name: name})
	}
	l := p.lines[at]
	same := slices.IndexFunc(l.points, func(o frontierPoint) bool { return o.text == q.text })
	switch {
	case same < 0:
		l.points = append(l.points, q)
	case q.output > l.points[same].output:
		l.points[same] = q
	}
}

// judged is how many points of a panel have an agreement that was measured.
func (p *frontierPanel) judged() (n int) {
	for _, l := range p.lines {
		if l.name != largeOnly {
			n += len(l.points)
		}
	}
	return n
}

// all are the points of a panel, line by line.
func (p *frontierPanel) all() (points []frontierPoint) {
	for _, l := range p.lines {
		points = append(points, l.points...)
	}
	return points
}

// names are those of the lines of all panels, those that route by token first.
func (f *frontier) names(panels []*frontierPanel) []string {
	var names, others []string
	for _, p := range panels {
		for _, l := range p.lines {
			switch list := &names; {
			case l.name == queryRouting || l.name == largeOnly || l.name == smallOnly:
				list = &others
				fallthrough
			default:
				if !slices.Contains(*list, l.name) {
					*list = append(*list, l.name)
				}
			}
		}
	}
	return append(names, others...)
}

// frontierLook is how the i-th of the lines is drawn.
func frontierLook(name string, i int, names []string) look {
	switch name {
	case queryRouting:
		return queryLook
	case largeOnly:
		return largeLook
	case smallOnly:
		return smallLook
	}
	l := looks[i%len(looks)]
	if slices.Contains(names, queryRouting) && l.glyph == queryLook.glyph {
		l.glyph = draw.CrossGlyph{}
	}
	l.dashes = nil
	return l
}

// agreementAxis spans the agreement of all panels, so that they can be compared, up to 100 % where that is near.
func (f *frontier) agreementAxis(panels []*frontierPanel, room labels) axis {
	least, most := math.Inf(1), math.Inf(-1)
	for _, p := range panels {
		for _, q := range p.all() {
			least, most = min(least, q.agreement), max(most, q.agreement)
		}
	}
	const below, above = 0.06, 0.08
	width := max(most-least, 1) // percent
	a := axis{label: agreementLabel, min: max(least-below*width, 0), max: most + above*width}
	if most < 100 { // nothing lies beyond
		a.max = min(a.max, 100)
	}
	step := roundStep(a.max-a.min, float64(min(8, room)))
	for i := math.Ceil(a.min / step); i*step <= min(a.max, 100); i++ {
		a.ticks = append(a.ticks, plot.Tick{Value: i * step, Label: tickLabel(i * step)})
	}
	return a
}

// ratioAxis is a logarithmic axis that fits the values closely: equal ratios are equally far apart.
func ratioAxis(label string, values []float64) axis {
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if at, ok := log10.place(v); ok {
			least, most = min(least, at), max(most, at)
		}
	}
	if most < least {
		return valueAxis(label, nil, upright)
	}
	const free = 0.08                   // of the height, at both ends
	pad := free * max(most-least, 0.15) // less would magnify differences of a few percent
	a := axis{label: label, scale: log10, min: least - pad, max: most + pad}
	marks := [][]float64{{1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8}, {1, 1.5, 2, 3, 5, 7}, {1, 2, 5}, {1}}
	for _, digits := range marks {
		a.ticks = nil
		for e := math.Floor(a.min); e <= a.max; e++ {
			for _, d := range digits {
				if at := e + math.Log10(d); at >= a.min && at <= a.max {
					a.ticks = append(a.ticks, plot.Tick{Value: at, Label: tickLabel(math.Pow(10, at))})
				}
			}
		}
		if len(a.ticks) <= int(upright) {
			break
		}
	}
	if len(a.ticks) < 2 {
		a.ticks = plot.ConstantTicks{{Value: least, Label: valueLabel(math.Pow(10, least))}}
		if most > least {
			a.ticks = append(a.ticks, plot.Tick{Value: most, Label: valueLabel(math.Pow(10, most))})
		}
	}
	return a
}

// draw lays out the panel: the band of the front, the lines, and the values at their ends.
func (p *frontierPanel) draw(names []string, x axis) panel {
	out := panel{title: p.title, x: x}
	var ys []float64
	for _, q := range p.all() {
		ys = append(ys, q.output)
	}
	out.y = ratioAxis(output.label, ys)
	out.layers = append(out.layers, p.front())
	words := &endWords{}
	for i := len(names) - 1; i >= 0; i-- {
		at := slices.IndexFunc(p.lines, func(l *frontierLine) bool { return l.name == names[i] })
		if at < 0 {
			continue
		}
		l, how := p.lines[at], frontierLook(names[i], i, names)
		s := &strand{look: how, loose: true}
		line := &path{style: draw.LineStyle{Color: how.color, Width: vg.Points(1.4), Dashes: how.dashes}}
		for _, q := range l.points {
			s.add(q.agreement, q.output, math.NaN(), false)
			line.xs, line.ys = append(line.xs, q.agreement), append(line.ys, q.output)
		}
		out.layers = append(out.layers, line, s)
		words.add(l, how.color)
	}
	out.layers = append(out.layers, words)
	return out
}

// front joins the points that no other beats at both figures, by ascending agreement.
func (p *frontierPanel) front() *path {
	points := p.all()
	slices.SortStableFunc(points, func(a, b frontierPoint) int {
		return cmp.Or(cmp.Compare(b.agreement, a.agreement), cmp.Compare(b.output, a.output))
	})
	line := &path{style: bandStyle}
	most := math.Inf(-1)
	for _, q := range points {
		if q.output > most {
			line.xs, line.ys = append(line.xs, q.agreement), append(line.ys, q.output)
			most = q.output
		}
	}
	slices.Reverse(line.xs)
	slices.Reverse(line.ys)
	return line
}

// valueNote says what the words at the ends of the lines are.
func (f *frontier) valueNote() string {
	if f.value < 0 {
		return ""
	}
	text := "At the ends of a line: its " + f.t.Axes[f.value].Key + "."
	if delay, _, _ := f.t.numeric(); delay >= 0 && delay != f.value {
		text += " At each: the delay with the most output."
	}
	return text
}

// agreementNote says what agreement is, of what it is known, and what it is not.
func (t *Tuning) agreementNote(names []string) string {
	from := "a recorded pair of models"
	if len(t.Traces) > 0 {
		from += " (" + strings.Join(t.Traces, ", ") + ")"
	}
	text := "Agreement: the share of output tokens that the large model would have written too, measured on " + from +
		", teacher-forced: both models score the recorded text, so a token never leads the later ones astray."
	if pair := common(t.Summary.Points, func(p *results.Point) string { return p.Pair }); pair != "" {
		text += " The step times are those of " + pair + "."
	}
	if slices.Contains(names, speculative) {
		text += " " + speculative + " samples from the large model's distribution, which need not give its likeliest " +
			"token: agreement understates it."
	}
	if slices.Contains(names, queryRouting) && len(t.Traces) > 0 {
		text += " " + queryRouting + " goes by the mean over the recorded answer, which flatters it: a router of prompts " +
			"can only guess that."
	}
	if oracle := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(scored, n) }); len(oracle) > 0 {
		text += " In place of their router's score, which was not recorded, these read how likely the large model keeps the token, " +
			"which flatters them: " + strings.Join(oracle, ", ") + "."
	}
	if slices.Contains(names, largeOnly) {
		text += " " + largeOnly + " agrees with itself."
	}
	return text
}

// repeatNote says how many of the points shown ran once, and whether the repeats of the others tell of noise: a replay
// that draws nothing at random is the same run under every seed.
func (f *frontier) repeatNote(panels []*frontierPanel) string {
	if f.t.Repeats < 2 {
		return ""
	}
	once, same, all := 0, 0, 0
	for _, p := range panels {
		for _, q := range p.all() {
			half, known := q.of.CI95.Get()
			switch all++; {
			case q.of.Runs < 2:
				once++
			case known && half <= 1e-9*math.Abs(q.of.Value.Or(0)): // what rounding leaves
				same++
			}
		}
	}
	var parts []string
	if once > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d points ran once, the others up to %d times.", once, all, f.t.Repeats))
	}
	if same > 0 {
		parts = append(parts, fmt.Sprintf("Of those that ran again, %d of %d gave the same under every seed: the replay "+
			"draws nothing there, and no error is known of them.", same, all-once))
	}
	return sentences(parts...)
}

// unknownNote names the systems and algorithms that are left out because nobody knows their agreement.
func (f *frontier) unknownNote() string {
	var names []string
	several := f.severalSystems()
	for i := range f.t.Summary.Points {
		p := &f.t.Summary.Points[i]
		if _, ok := p.Agreement.Get(); ok || p.System == largeOnly {
			continue
		}
		if name := lineName(p, several); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if names == nil {
		return ""
	}
	return "Of unknown agreement, and left out: " + strings.Join(names, ", ") + "."
}

// endWords are the values at the ends of lines. Where several ends of one value lie together, one word is written for
// all of them.
type endWords struct {
	ends   []lineEnd
	points [][2]float64 // all points, which words keep clear of
}

// lineEnd is one end of a line: all points that lie together there, and the values that they span.
type lineEnd struct {
	x, y     float64
	from, to string
	last     bool // the end of the greatest value
	color    color.Color
}

func (e *lineEnd) word() string {
	if e.from == e.to {
		return e.from
	}
	return e.from + " to " + e.to
}

// together says that two points of a line lie as good as on each other: within half a percent of agreement and 1 % of
// output.
func together(a, b frontierPoint) bool {
	return math.Abs(a.agreement-b.agreement) < 0.5 && math.Abs(a.output-b.output) < 0.01*max(a.output, b.output)
}

// add notes the two ends of a line, or the one where all points lie together.
func (w *endWords) add(l *frontierLine, c color.Color) {
	for _, q := range l.points {
		w.points = append(w.points, [2]float64{q.agreement, q.output})
	}
	valued := slices.DeleteFunc(slices.Clone(l.points), func(q frontierPoint) bool { return q.text == "" })
	if len(valued) == 0 {
		return
	}
	last := len(valued) - 1
	i, j := 0, last
	for i < last && together(valued[i+1], valued[0]) {
		i++
	}
	first := valued[0]
	w.ends = append(w.ends, lineEnd{first.agreement, first.output, first.text, valued[i].text, false, c})
	if i == last {
		return
	}
	for j > i && together(valued[j-1], valued[last]) {
		j--
	}
	end := valued[last]
	w.ends = append(w.ends, lineEnd{end.agreement, end.output, valued[j].text, end.text, true, c})
}

func (w *endWords) on(g *plot.Plot, x, y axis) (left int) {
	p := &wordsPlotter{}
	for _, e := range w.ends {
		px, okX := x.scale.place(e.x)
		py, okY := y.scale.place(e.y)
		if okX && okY {
			p.ends = append(p.ends, placedWord{px, py, e.word(), e.last, e.color})
		}
	}
	for _, q := range w.points {
		px, okX := x.scale.place(q[0])
		py, okY := y.scale.place(q[1])
		if okX && okY {
			p.points = append(p.points, vg.Point{X: vg.Length(px), Y: vg.Length(py)})
		}
	}
	g.Add(p)
	return 0 // the strands have counted them
}

type placedWord struct {
	x, y  float64 // on the axes
	word  string
	last  bool
	color color.Color
}

type wordsPlotter struct {
	ends   []placedWord
	points []vg.Point // on the axes
}

// Plot implements plot.Plotter. Each word takes the first place around its point that is free of points and of other
// words.
func (w *wordsPlotter) Plot(c draw.Canvas, g *plot.Plot) {
	x, y := g.Transforms(&c)
	const (
		near = 14 // ends of one word within it share that
		far  = 5  // a word beyond it has a line to its point
	)
	var taken []vg.Rectangle
	for _, p := range w.points {
		at := vg.Point{X: x(float64(p.X)), Y: y(float64(p.Y))}
		taken = append(taken, around(at, 4))
	}
	done := make([]bool, len(w.ends))
	for i, e := range w.ends {
		if done[i] {
			continue
		}
		style := words(8.5, e.color, xfont.WeightNormal)
		spot := around(vg.Point{X: x(e.x), Y: y(e.y)}, 3)
		for j := i + 1; j < len(w.ends); j++ {
			o := w.ends[j]
			at := vg.Point{X: x(o.x), Y: y(o.y)}
			middle := center(spot)
			if o.word == e.word && max(abs(at.X-middle.X), abs(at.Y-middle.Y)) < near {
				spot, done[j] = union(spot, around(at, 3)), true
				style.Color = ink
			}
		}
		box := wordBox(spot, style.Width(e.word), style.Font.Size, c.Rectangle, taken, e.last)
		taken = append(taken, box)
		if from, to := center(spot), nearest(box, center(spot)); gapOf(spot, to) > far {
			c.StrokeLine2(draw.LineStyle{Color: faded(style.Color), Width: vg.Points(0.6)}, from.X, from.Y, to.X, to.Y)
		}
		tag(&c, style, box.Min, e.word)
	}
}

// wordBox is the first free place for a word of this size beside a spot, inside the canvas; the first where none is
// free. Of the last end of a line, which falls from left to right, the word stands rather below.
func wordBox(
	spot vg.Rectangle, width, height vg.Length, canvas vg.Rectangle, taken []vg.Rectangle, last bool,
) vg.Rectangle {
	middle := center(spot)
	const gap = 3
	left, right := spot.Min.X-gap-width, spot.Max.X+gap
	below, above := spot.Min.Y-gap-height, spot.Max.Y+gap
	level, mid := middle.Y-height/2, middle.X-width/2
	places := []vg.Point{
		{X: right, Y: level}, {X: right, Y: above - gap}, {X: mid, Y: above}, {X: left, Y: level},
		{X: mid, Y: below}, {X: right, Y: below + gap}, {X: left, Y: below + gap}, {X: left, Y: above - gap},
		{X: right, Y: above + height}, {X: left, Y: below - height},
	}
	if last {
		places = []vg.Point{
			places[4], places[6], places[5], places[0], places[3], places[9], places[1], places[2], places[7], places[8],
		}
	}
	at := func(p vg.Point) vg.Rectangle {
		return vg.Rectangle{Min: p, Max: vg.Point{X: p.X + width, Y: p.Y + height}}
	}
	for _, p := range places {
		box := at(p)
		inside := box.Min.X >= canvas.Min.X && box.Max.X <= canvas.Max.X+margin && box.Min.Y >= canvas.Min.Y &&
			box.Max.Y <= canvas.Max.Y
		if inside && !slices.ContainsFunc(taken, func(o vg.Rectangle) bool { return overlap(box, o) }) {
			return box
		}
	}
	return at(places[0])
}

func around(p vg.Point, half vg.Length) vg.Rectangle {
	return vg.Rectangle{Min: vg.Point{X: p.X - half, Y: p.Y - half}, Max: vg.Point{X: p.X + half, Y: p.Y + half}}
}

func center(r vg.Rectangle) vg.Point {
	return vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: (r.Min.Y + r.Max.Y) / 2}
}

func union(a, b vg.Rectangle) vg.Rectangle {
	return vg.Rectangle{
		Min: vg.Point{X: min(a.Min.X, b.Min.X), Y: min(a.Min.Y, b.Min.Y)},
		Max: vg.Point{X: max(a.Max.X, b.Max.X), Y: max(a.Max.Y, b.Max.Y)},
	}
}

func overlap(a, b vg.Rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}

// nearest is the point of a rectangle that is nearest to p.
func nearest(r vg.Rectangle, p vg.Point) vg.Point {
	return vg.Point{X: min(max(p.X, r.Min.X), r.Max.X), Y: min(max(p.Y, r.Min.Y), r.Max.Y)}
}

// gapOf is how far p lies from a rectangle, along the axis on which it lies farther.
func gapOf(r vg.Rectangle, p vg.Point) vg.Length {
	at := nearest(r, p)
	return max(abs(p.X-at.X), abs(p.Y-at.Y))
}

func abs(l vg.Length) vg.Length { return max(l, -l) }

// starGlyph is a filled star of five points.
type starGlyph struct{}

// DrawGlyph implements draw.GlyphDrawer.
func (starGlyph) DrawGlyph(c *draw.Canvas, s draw.GlyphStyle, at vg.Point) {
	var corners []vg.Point
	for k := range 10 {
		r := float64(s.Radius) * 1.7
		if k%2 == 1 {
			r *= 0.42
		}
		sin, cos := math.Sincos(math.Pi/2 + float64(k)*math.Pi/5)
		corners = append(corners, vg.Point{X: at.X + vg.Length(r*cos), Y: at.Y + vg.Length(r*sin)})
	}
	fill(c, s.Color, corners...)
}
