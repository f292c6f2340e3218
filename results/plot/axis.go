package plot

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
)

// scale puts a value on an axis; false where it has no place there. The axis itself is always linear, in what place
// returns: gonum's logarithmic scale panics at 0.
type scale int

const (
	linear scale = iota // from 0 on
	log2                // of counts that double
	log10
)

// note says in the axis label that the axis is not linear, where the ticks don't show it at a glance.
func (s scale) note() string {
	if s == log10 {
		return " (log scale)"
	}
	return ""
}

func (s scale) place(v float64) (float64, bool) {
	if math.IsNaN(v) || math.IsInf(v, 0) || s != linear && v <= 0 {
		return 0, false
	}
	switch s {
	case log2:
		return math.Log2(v), true
	case log10:
		return math.Log10(v), true
	}
	return v, true
}

// axis is a labelled range with its ticks.
type axis struct {
	label    string
	scale    scale
	min, max float64 // placed
	ticks    plot.ConstantTicks
}

// wide is the spread from which values only show on a logarithmic axis: below it the least is 4 % of the height.
const wide = 25

// labels is how many tick labels an axis has room for.
type labels int

// upright is the room of a y axis.
const upright labels = 11

// along is the room of the x axes of so many panels side by side in a figure of this width.
func along(width vg.Length, panels int) labels {
	const (
		words = 50 // labels and ticks of the y axes take about so much of a row
		gap   = 30 // and of each panel
		label = 30 // a label's width with some air
	)
	each := (width-2*margin-words)/vg.Length(panels) - gap
	return max(labels(each/label), 2)
}

// valueAxis fits an axis to values: from 0, or logarithmic where the spread is wide.
func valueAxis(label string, values []float64, room labels) axis {
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if _, ok := log10.place(v); ok {
			least, most = min(least, v), max(most, v)
		}
	}
	switch {
	case most < least: // nothing to show
		return axis{label: label, max: 1, ticks: plot.ConstantTicks{{Value: 0, Label: "0"}}}
	case most < wide*least:
		return linearAxis(label, most, room)
	}
	return logAxis(label, least, most, room)
}

// air is the part of an axis that stays free at an end, so that a glyph does not lie on the edge.
const air = 0.03

// linearAxis runs from 0 to a round number above most, in at most six steps, or as many as there is room for.
func linearAxis(label string, most float64, room labels) axis {
	step := roundStep(most, float64(min(6, room)))
	a := axis{label: label, scale: linear}
	for i := 0; ; i++ {
		v := float64(i) * step
		a.ticks = append(a.ticks, plot.Tick{Value: v, Label: tickLabel(v)})
		if a.max = v; v*(1-air) >= most {
			return a
		}
	}
}

// logAxis runs from a 1, 2 or 5 below least to one above most. Each is a tick; where there is no room for so many
// labels, only the powers of ten have one.
func logAxis(label string, least, most float64, room labels) axis {
	var marks []float64
	for e := math.Floor(math.Log10(least)) - 1; e <= math.Ceil(math.Log10(most))+1; e++ {
		for _, m := range []float64{1, 2, 5} {
			marks = append(marks, math.Log10(m)+e)
		}
	}
	from, to := math.Log10(least), math.Log10(most)
	free := air * (to - from)
	for len(marks) > 1 && marks[1] <= from-free {
		marks = marks[1:]
	}
	for n := len(marks); n > 1 && marks[n-2] >= to+free; n-- {
		marks = marks[:n-1]
	}
	a := axis{label: label, scale: log10, min: marks[0], max: marks[len(marks)-1]}
	for _, e := range marks {
		t := plot.Tick{Value: e}
		if whole := math.Abs(e-math.Round(e)) < 1e-9; whole || len(marks) <= int(room) {
			t.Label = tickLabel(math.Pow(10, e))
		}
		a.ticks = append(a.ticks, t)
	}
	return a
}

// countAxis is the axis of concurrencies: each a tick, as long as there is room.
func countAxis(label string, counts []int) axis {
	counts = slices.Clone(counts)
	slices.Sort(counts)
	counts = slices.Compact(counts)
	a := axis{label: label, scale: log2}
	last := math.Inf(-1)
	first := true
	for _, n := range counts {
		at, ok := log2.place(float64(n))
		if !ok {
			continue
		}
		if first {
			a.min, first = at, false
		}
		a.max = at
		t := plot.Tick{Value: at}
		// Half a doubling is about a label's width in the smallest panel.
		if at-last >= 0.5 {
			t.Label, last = strconv.Itoa(n), at
		}
		a.ticks = append(a.ticks, t)
	}
	a.min, a.max = a.min-0.15, a.max+0.15
	return a
}

// percentAxis runs from 0 to 100 %.
func percentAxis(label string) axis {
	a := axis{label: label, max: 100}
	for v := 0.0; v <= 100; v += 25 {
		a.ticks = append(a.ticks, plot.Tick{Value: v, Label: tickLabel(v)})
	}
	return a
}

// tickLabel writes a figure short: 0.05, 250, 1,500, 20k, 3M.
func tickLabel(v float64) string {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64) // a power of ten is off by its rounding
	switch abs := math.Abs(v); {
	case abs >= 1e6:
		return strconv.FormatFloat(v/1e6, 'g', 4, 64) + "M"
	case abs >= 1e4:
		return strconv.FormatFloat(v/1e3, 'g', 4, 64) + "k"
	case abs >= 1000:
		s := strconv.FormatFloat(v, 'f', 0, 64)
		return s[:len(s)-3] + "," + s[len(s)-3:]
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// valueLabel writes a figure with three digits or more: 6.02, 97.6, 254, 1,071.
func valueLabel(v float64) string {
	digits := 0
	switch abs := math.Abs(v); {
	case abs < 9.995:
		digits = 2
	case abs < 99.95:
		digits = 1
	}
	s := strconv.FormatFloat(v, 'f', digits, 64)
	whole, fraction, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		return whole + "." + fraction
	}
	return whole
}

// fittedAxis fits an axis to values that are compared with each other rather than with 0: it leaves 0 out, and some air
// at both ends, unless the values spread over most of the way to 0 anyway. The notes of a figure have to say so.
func fittedAxis(label string, values []float64, room labels) axis {
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if _, ok := linear.place(v); ok {
			least, most = min(least, v), max(most, v)
		}
	}
	switch {
	case most < least:
		return valueAxis(label, nil, room)
	case least > 0 && most >= wide*least:
		return logAxis(label, least, most, room)
	}
	// A spread of less than 2 % would need labels of more digits than tickLabel writes.
	spread := max(most-least, 0.02*max(math.Abs(most), math.Abs(least)))
	if spread == 0 {
		spread = 1
	}
	const below, above = 0.08, 0.12
	a := axis{label: label, min: least - below*spread, max: most + above*spread}
	if least >= 0 && (a.min < 0 || least < most/4) {
		a.min = 0
	}
	step := roundStep(a.max-a.min, float64(min(6, room)))
	// A label at the very top would need room above the panel.
	for i := math.Ceil(a.min / step); i*step <= a.max-air*spread; i++ {
		a.ticks = append(a.ticks, plot.Tick{Value: i * step, Label: tickLabel(i * step)})
	}
	return a
}

// roundStep is the least round step of which at most so many span a width.
func roundStep(width, most float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(width)))
	step := power
	for _, part := range []float64{0.1, 0.2, 0.25, 0.5, 1, 2, 5} {
		if step = power * part; width/step <= most {
			break
		}
	}
	return step
}

// zeroBased says that the axis begins at 0, or has no 0 to begin at.
func (a axis) zeroBased() bool { return a.scale != linear || a.min == 0 }

// delayAxis is the axis of batching delays: whole counts of requests, and for a timer, steps. Counts that double many
// times over stand on a logarithmic axis.
func delayAxis(label string, delays []float64, room labels) axis {
	least, most, lowest := math.Inf(1), math.Inf(-1), math.Inf(1)
	for _, d := range delays {
		if _, ok := log2.place(d); !ok {
			continue
		}
		if lowest, most = min(lowest, d), max(most, d); d >= 1 {
			least = min(least, d)
		}
	}
	if most < lowest {
		return valueAxis(label, nil, room)
	}
	if most >= wide*least {
		a := axis{label: label, scale: log2, min: math.Log2(lowest) - 0.2, max: math.Log2(most) + 0.2}
		step := math.Max(1, math.Ceil((a.max-a.min)/float64(room)))
		for e := math.Ceil(a.min); e <= a.max; e += step {
			a.ticks = append(a.ticks, plot.Tick{Value: e, Label: tickLabel(math.Pow(2, e))})
		}
		return a
	}
	pad := max(air*(most-lowest), 0.25)
	a := axis{label: label, min: lowest - pad, max: most + pad}
	most = float64(min(room, 9))
	if a.max < 10 {
		most *= 1.5 // one digit needs less room
	}
	step := 1.0
	for (a.max-a.min)/step > most {
		step *= 2
	}
	// 1 is the eager point. Beside 2 there is no room for it.
	if a.min <= 1 && step != 2 {
		a.ticks = plot.ConstantTicks{{Value: 1, Label: "1"}}
	}
	for v := math.Ceil(max(a.min, 2)/step) * step; v <= a.max; v += step {
		a.ticks = append(a.ticks, plot.Tick{Value: v, Label: tickLabel(v)})
	}
	return a
}

// categoryAxis gives each name a place of width 1, the first at 0, and a label as long as there is room.
func categoryAxis(label string, names []string, room labels) axis {
	a := axis{label: label, min: -0.5, max: float64(len(names)) - 0.5}
	if !slices.ContainsFunc(names, func(s string) bool { return len(s) > 2 }) {
		room += room / 2
	}
	every := (len(names) + int(room) - 1) / int(room)
	for i, name := range names {
		t := plot.Tick{Value: float64(i)}
		if i%every == 0 {
			t.Label = printable(name)
		}
		a.ticks = append(a.ticks, t)
	}
	return a
}
