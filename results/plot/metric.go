package plot

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/vg"

	"github.com/trbench/trbench/results"
)

// metric is a figure of a point that panels show.
type metric struct {
	label string
	tail  bool // a percentile that few requests leave in doubt
	of    func(*results.Point) results.Float
}

var (
	output  = metric{"output, tok/s", false, func(p *results.Point) results.Float { return p.OutputTokS }}
	tpotP99 = metric{"P99 TPOT, ms per token", true, func(p *results.Point) results.Float { return p.TPOT.Percentile(99) }}
)

const concurrencyLabel = "requests at a time"

// metricPanel shows a metric of a group: lines against concurrency, or bars where there is one concurrency only.
func metricPanel(g *results.Group, m metric, systems []string) panel {
	counts := g.Concurrencies()
	if len(counts) == 1 {
		var p panel
		for _, system := range systems {
			for _, point := range g.Points {
				if point.System == system {
					p.bars = append(p.bars, bar{system, m.of(point).Or(math.NaN())})
				}
			}
		}
		return p
	}
	p := panel{x: countAxis(concurrencyLabel, counts)}
	for _, system := range systems {
		c := curve{system: system}
		for _, point := range byConcurrency(g, system) {
			c.xs = append(c.xs, float64(point.Concurrency))
			c.ys = append(c.ys, m.of(point).Or(math.NaN()))
		}
		if len(c.xs) > 0 {
			p.curves = append(p.curves, c)
		}
	}
	return p
}

// byConcurrency returns a system's points by ascending concurrency.
func byConcurrency(g *results.Group, system string) []*results.Point {
	var points []*results.Point
	for _, p := range g.Points {
		if p.System == system {
			points = append(points, p)
		}
	}
	slices.SortStableFunc(points, func(a, b *results.Point) int { return a.Concurrency - b.Concurrency })
	return points
}

// fitRow gives the panels of a row one scale for the metric, so that they can be compared.
func fitRow(row []panel, m metric, width vg.Length) {
	var values []float64
	most := 0.0
	for i := range row {
		for _, v := range row[i].values() {
			values = append(values, v)
			if v > most && !math.IsInf(v, 0) {
				most = v
			}
		}
	}
	for i := range row {
		if len(row[i].bars) > 0 {
			row[i].named = i == 0 || !slices.EqualFunc(row[i].bars, row[0].bars, sameSystem)
			row[i].barAxes(m.label, most, along(width, len(row)))
			continue
		}
		row[i].y = valueAxis(m.label, values, upright)
		if i > 0 {
			row[i].y.label = ""
		}
	}
}

func sameSystem(a, b bar) bool { return a.system == b.system }

// onlyBars says that no panel has curves. The bars have their names beside them then, and need no legend.
func onlyBars(rows [][]panel) bool {
	for _, row := range rows {
		for i := range row {
			if len(row[i].bars) == 0 {
				return false
			}
		}
	}
	return true
}

// metricFigure shows one metric of one group.
func metricFigure(g *results.Group, name, title string, m metric, where string) Figure {
	f := Figure{
		Name: name, systems: systemsOf(*g), title: fmt.Sprintf("%s: %s", orAll(g.Workload), title), subtitle: where,
		width: 7 * vg.Inch, height: 3.6 * vg.Inch,
	}
	row := []panel{metricPanel(g, m, f.systems)}
	if row[0].bars == nil {
		f.title += " against concurrency"
	} else if n := g.Points[0].Concurrency; n > 0 {
		f.title += fmt.Sprintf(" at %d requests at a time", n)
	}
	fitRow(row, m, f.width)
	f.rows = [][]panel{row}
	f.named = onlyBars(f.rows)
	if m.tail {
		f.notes = doubt([]results.Group{*g})
	}
	return f
}
