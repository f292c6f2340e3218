package plot

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"gonum.org/v1/plot/vg"

	"github.com/trbench/trbench/results"
)

// Tuning is a finished sweep: groups of points, in each of which the best was sought by an objective.
type Tuning struct {
	Summary   *results.Summary
	Objective string // in words: "max output_tok_s s.t. tpot_p99_ms < 60"
	Metric    string // the objective's, by its key in summary.json: output_tok_s, tpot_p99_ms
	Minimise  bool   // less of it is better
	Limits    []Limit
	Axes      []TuningAxis
	Groups    []TuningGroup
	Repeats   int      // most runs of a point, under seeds from Summary.Seed on
	Traces    []string // files of the recorded pairs that the points replay, each once; nil: none
}

// Limit is a bound that the best point keeps to.
type Limit struct {
	Metric string // key in summary.json
	Op     string // < <= > >=
	Bound  float64
}

// String writes the limit as an objective does.
func (l Limit) String() string { return fmt.Sprintf("%s %s %g", l.Metric, l.Op, l.Bound) }

// TuningAxis is one swept key and its values, in the order of the sweep.
type TuningAxis struct {
	Key    string
	Values []string
	Delay  bool // the values say how long batches wait, as Policy and Delay of a point do
}

// TuningGroup is the points among which one is best: all that is given is the same for them.
type TuningGroup struct {
	Title     string // "N = 4, switch_rate 0.1"
	Points    []TuningPoint
	Best      int           // index of the best that keeps to the limits; -1: none does
	Eager     int           // index of the one that delays nothing; -1: not there
	Gain      results.Float // of the best over eager, a fraction of the metric
	GainCI    results.Float // half-width of its 95 % interval
	Noise     bool          // the gain is no more than noise
	Predicted []Prediction  // by threshold, ascending, under the settings that all points share; nil: none
	// Contention is how much the models slow each other in the simulation, which the prediction does not know; 0: not.
	Contention float64
}

// Prediction is the computed throughput of one threshold of the large model.
type Prediction struct {
	Threshold  int
	OutputTokS float64
}

// TuningPoint is one point of a sweep.
type TuningPoint struct {
	Point  *results.Point // its figures, the mean over Runs
	Policy string         // threshold, gate or timer; "" where the point is under none of them
	Delay  float64        // of threshold and gate: requests; of a timer: decode steps of the small model
	Values []string       // by axis
	Value  results.Float  // of the objective's metric
	CI95   results.Float  // half-width of its 95 % interval over repeats
	Runs   int
	Meets  bool // keeps to the limits
}

// maxPanels bounds the groups that a figure of a sweep shows side by side.
const maxPanels = 6

// TuningFigures lays out the figures of a sweep: the metric against the delay, where delays were compared; throughput
// against tail latency, where there is a choice; output against agreement with the large model, where that is known; a
// map, where two numbers were swept; and lines against one number. A sweep of names alone has the figures of a run. The
// notes say what could not be shown; each figure says so too.
func TuningFigures(t *Tuning) (figures []Figure, notes []string) {
	for _, draw := range []func(*Tuning) (Figure, bool){
		delayFigure, paretoFigure, frontierFigure, heatmapFigure, knobFigure,
	} {
		f, ok := draw(t)
		if !ok {
			continue
		}
		if note := f.noteLeft(); note != "" {
			notes = append(notes, note)
		}
		figures = append(figures, f)
	}
	// Names, such as systems or algorithms, are compared as a run compares them.
	of := func(f Figure) bool { return f.Name != paretoName && f.Name != frontierName }
	if !slices.ContainsFunc(figures, of) && !t.doubled() {
		more, moreNotes := Figures(Data{Summary: t.Summary})
		figures, notes = append(figures, more...), append(notes, moreNotes...)
	}
	return figures, notes
}

// doubled says that some points differ in what a run's figures don't tell apart, such as vectors of thresholds.
func (t *Tuning) doubled() bool {
	for _, g := range results.Groups(t.Summary.Points) {
		seen := map[string]bool{}
		for _, p := range g.Points {
			key := fmt.Sprintf("%s %d", p.System, p.Concurrency)
			if seen[key] {
				return true
			}
			seen[key] = true
		}
	}
	return false
}

// SaveTuning writes the figures of a sweep into dir, as Save does.
func SaveTuning(dir string, t *Tuning, formats ...string) (files, notes []string, err error) {
	if err := checkFormats(formats); err != nil {
		return nil, nil, err
	}
	figures, notes := TuningFigures(t)
	files, err = save(dir, figures, formats)
	return files, notes, err
}

// subject says what was swept, and how it ran.
func (t *Tuning) subject() string {
	points := t.Summary.Points
	if len(points) == 0 {
		return ""
	}
	parts := []string{common(points, func(p *results.Point) string { return p.Workload })}
	algorithm := common(points, func(p *results.Point) string { return p.Algorithm })
	pair := common(points, func(p *results.Point) string { return p.Pair })
	if algorithm != "" && pair != "" {
		parts = append(parts, algorithm+" on "+pair)
	} else {
		parts = append(parts, algorithm, pair)
	}
	if latency := common(points, func(p *results.Point) string { return p.Latency }); latency != "" {
		parts = append(parts, latency+" step times")
	}
	if n := common(points, func(p *results.Point) string { return strconv.Itoa(p.Requests) }); n != "" {
		parts = append(parts, n+" requests a point")
	}
	return joinParts(append(parts, t.seeds())...)
}

// common is what all points share; "" where they don't.
func common(points []results.Point, of func(*results.Point) string) string {
	for i := range points {
		if of(&points[i]) != of(&points[0]) {
			return ""
		}
	}
	return of(&points[0])
}

func (t *Tuning) seeds() string {
	if t.Repeats > 1 {
		return fmt.Sprintf("seeds %d to %d", t.Summary.Seed, t.Summary.Seed+uint64(t.Repeats-1))
	}
	return fmt.Sprintf("seed %d", t.Summary.Seed)
}

// panelOf is what one panel of a figure shows: points of one group.
type panelOf struct {
	group  *TuningGroup
	title  string
	points []int // of the group
}

// apart splits each group by the values of the axes that apart names, so that each panel holds one of each.
func (t *Tuning) apart(split func(TuningAxis) bool) []panelOf {
	var panels []panelOf
	for i := range t.Groups {
		g := &t.Groups[i]
		var by []int
		for k, a := range t.Axes {
			if split(a) && t.varies(g, k) {
				by = append(by, k)
			}
		}
		places := map[string]int{}
		for j := range g.Points {
			var key, title []string
			for _, k := range by {
				key = append(key, g.Points[j].Values[k])
				title = append(title, setting(t.Axes[k].Key, g.Points[j].Values[k]))
			}
			at, ok := places[strings.Join(key, "\x00")]
			if !ok {
				at = len(panels)
				places[strings.Join(key, "\x00")] = at
				panels = append(panels, panelOf{group: g, title: joinParts(append([]string{g.Title}, title...)...)})
			}
			panels[at].points = append(panels[at].points, j)
		}
	}
	return panels
}

// varies says that the points of a group differ on an axis: it is chosen, not given.
func (t *Tuning) varies(g *TuningGroup, axis int) bool {
	return slices.ContainsFunc(g.Points, func(p TuningPoint) bool { return p.Values[axis] != g.Points[0].Values[axis] })
}

// given says that no group has a choice on an axis.
func (t *Tuning) given(axis int) bool {
	return !slices.ContainsFunc(t.Groups, func(g TuningGroup) bool { return t.varies(&g, axis) })
}

// few picks as many panels as a figure holds, the first and the last among them, and says which ones it leaves out.
func few(panels []panelOf) (shown []panelOf, note string) {
	if len(panels) <= maxPanels {
		return panels, ""
	}
	shown = spread(panels, maxPanels)
	var out []string
	for _, p := range panels {
		if !slices.ContainsFunc(shown, func(s panelOf) bool { return s.group == p.group && s.title == p.title }) {
			out = append(out, p.title)
		}
	}
	return shown, leftOutNote(out, len(panels))
}

// leftOutNote names the panels that a figure leaves out, of all.
func leftOutNote(out []string, all int) string {
	const named = 8
	text := strings.Join(out[:min(len(out), named)], "; ")
	if more := len(out) - named; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return fmt.Sprintf("%d of %d panels are shown. Left out: %s.", all-len(out), all, text)
}

// place lays panels out in rows and sizes the figure: up to three side by side. The y labels stand at the left edge,
// the x labels below the last panel of each column.
func (f *Figure) place(panels []panel, height vg.Length) {
	columns := columnsOf(len(panels))
	f.width = figureWidth(columns)
	for len(panels) > 0 {
		n := min(columns, len(panels))
		row := slices.Clone(panels[:n])
		panels = panels[n:]
		for len(row) < columns {
			row = append(row, panel{blank: true})
		}
		f.rows = append(f.rows, row)
	}
	for i, row := range f.rows {
		for j := range row {
			if j > 0 {
				row[j].y.label = ""
			}
			if i+1 < len(f.rows) && !f.rows[i+1][j].blank {
				row[j].x.label = ""
			}
		}
	}
	f.height = vg.Length(len(f.rows)) * height
}

func columnsOf(panels int) int {
	if panels == 4 {
		return 2
	}
	return min(panels, 3)
}

func figureWidth(columns int) vg.Length {
	if columns == 1 {
		return 7 * vg.Inch
	}
	return 10 * vg.Inch
}

// numbers reads the values of an axis; false where one is no number.
func (a TuningAxis) numbers() ([]float64, bool) {
	var all []float64
	for _, v := range a.Values {
		x, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, false
		}
		all = append(all, x)
	}
	return all, true
}

// concurrencyKey is the axis whose values are requests at a time.
const concurrencyKey = "concurrency"

// numeric lists the axes of several numbers, by what they say: how long batches wait (-1: none), the concurrency (-1:
// none), and the others.
func (t *Tuning) numeric() (delay, concurrency int, others []int) {
	delay, concurrency = -1, -1
	for k, a := range t.Axes {
		if _, ok := a.numbers(); !ok || len(a.Values) < 2 {
			continue
		}
		switch {
		case a.Delay:
			delay = k
		case a.Key == concurrencyKey:
			concurrency = k
		default:
			others = append(others, k)
		}
	}
	return delay, concurrency, others
}

// better says that a is better than b at the objective; what keeps to the limits is better than what does not.
func (t *Tuning) better(a, b *TuningPoint) bool {
	if a.Meets != b.Meets {
		return a.Meets
	}
	x, okX := a.Value.Get()
	y, okY := b.Value.Get()
	if !okX || !okY {
		return okX
	}
	if t.Minimise {
		return x < y
	}
	return x > y
}

// gain says what the best point of a group is worth, in words: "+11.4 % ± 0.3"; "" where that is not known.
func (t *Tuning) gain(g *TuningGroup) string {
	best := &g.Points[g.Best]
	eager := t.eagerBeside(g, best)
	switch {
	case eager == best || eager == nil:
		return ""
	case g.Eager < 0 || eager != &g.Points[g.Eager]: // the group's gain is over other settings as well
		x, ok := results.Change(best.Value, eager.Value).Get()
		if !ok {
			return ""
		}
		return fmt.Sprintf("%+.1f %%", 100*x)
	}
	x, ok := g.Gain.Get()
	if !ok {
		return ""
	}
	text := fmt.Sprintf("%+.1f %%", 100*x)
	if half, ok := g.GainCI.Get(); ok {
		text += fmt.Sprintf(" ± %.1f", 100*half)
	}
	if g.Noise {
		text += " (noise)"
	}
	return text
}

// nothingBest stands where no point is best.
const nothingBest = "nothing keeps to the limits"

// delayName names how long a point's batches wait: "B = 3", "K = 4", "2.5 steps", "eager".
func (p *TuningPoint) delayName() string {
	if _, ok := linear.place(p.Delay); !ok {
		return ""
	}
	if p.eager() {
		return "eager"
	}
	switch p.Policy {
	case "threshold":
		return fmt.Sprintf("B = %g", p.Delay)
	case "gate":
		return fmt.Sprintf("K = %g", p.Delay)
	case "timer":
		return fmt.Sprintf("%g steps", p.Delay)
	}
	return ""
}

// settings names what was chosen for a point of a group: "B = 3, max_batch 8".
func (t *Tuning) settings(g *TuningGroup, p *TuningPoint) string {
	var parts []string
	if slices.ContainsFunc(g.Points, func(o TuningPoint) bool { return o.Policy != p.Policy || o.Delay != p.Delay }) {
		parts = append(parts, p.delayName())
	}
	for k, a := range t.Axes {
		if !a.Delay && t.varies(g, k) {
			parts = append(parts, setting(a.Key, p.Values[k]))
		}
	}
	return joinParts(parts...)
}

// setting names a value of an axis; "" where a point has none, as a system without an algorithm.
func setting(key, value string) string {
	switch {
	case value == "":
		return ""
	case key == concurrencyKey:
		return "N = " + value
	case key == "system":
		return value
	}
	return key + " " + value
}

// eager says that a point delays nothing.
func (p *TuningPoint) eager() bool { return p.Policy == policies[0] && p.Delay == 1 }

// rest tells points apart by all settings but the delay.
func (t *Tuning) rest(p *TuningPoint) string {
	var parts []string
	for k, a := range t.Axes {
		if !a.Delay {
			parts = append(parts, p.Values[k])
		}
	}
	return strings.Join(parts, "\x00")
}

// eagers are the points of a group that delay nothing, by their other settings.
func (t *Tuning) eagers(g *TuningGroup) map[string]*TuningPoint {
	found := map[string]*TuningPoint{}
	for i := range g.Points {
		if p := &g.Points[i]; p.eager() {
			found[t.rest(p)] = p
		}
	}
	return found
}

// eagerBeside is the point of a group that delays nothing and is else set as the given one; nil if there is none.
func (t *Tuning) eagerBeside(g *TuningGroup, p *TuningPoint) *TuningPoint {
	return t.eagers(g)[t.rest(p)]
}

// onceNote explains the hollow points of a figure; "" where there are none.
func (t *Tuning) onceNote() string {
	if t.Repeats < 2 {
		return ""
	}
	for i := range t.Groups {
		for j := range t.Groups[i].Points {
			if t.Groups[i].Points[j].Runs < 2 {
				const text = "Hollow: clearly behind after one run, and not run again (the others: %d runs)."
				return fmt.Sprintf(text, t.Repeats)
			}
		}
	}
	return ""
}

// axesNote says which axes do not begin at 0; "" where all do.
func axesNote(rows [][]panel, xToo bool) string {
	panels, y := 0, false
	for _, row := range rows {
		for i := range row {
			p := &row[i]
			if p.blank {
				continue
			}
			if xToo && !p.x.zeroBased() {
				return "The axes need not begin at 0."
			}
			panels, y = panels+1, y || !p.y.zeroBased()
		}
	}
	switch {
	case !y:
		return ""
	case panels > 1:
		return "The y axes do not begin at 0, and differ."
	}
	return "The y axis does not begin at 0."
}

func sentences(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ")
}

// metricLabel names a figure of a point by its key in summary.json: "P99 TPOT, ms per token".
func metricLabel(key string) string {
	switch key {
	case "output_tok_s":
		return output.label
	case "steady_tok_s":
		return "steady output, tok/s"
	case "goodput_req_s":
		return "goodput, requests/s"
	case "finished_req_s":
		return "finished, requests/s"
	case "slo_attainment":
		return "requests that meet the SLO, share"
	case "large_fraction":
		return "tokens from the large model, share"
	case "agreement":
		return "agreement with the large model, share"
	case "hops_per_request":
		return "hops a request"
	case "duration_s":
		return "duration, s"
	}
	parts := strings.Split(key, "_")
	if len(parts) != 3 || parts[2] != "ms" {
		return key
	}
	label := strings.ToUpper(parts[1]) + " "
	if parts[1] == "mean" {
		label = "mean "
	}
	label += strings.ToUpper(parts[0]) + ", ms"
	if parts[0] == "tpot" {
		label += " per token"
	}
	return label
}

// metricName is the label without its unit: "P99 TPOT".
func metricName(key string) string {
	name, _, _ := strings.Cut(metricLabel(key), ",")
	return name
}

// capital is s with a capital first letter.
func capital(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}
