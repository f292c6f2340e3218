package plot

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot/vg"

	"github.com/trbench/trbench/results"
)

// cdfFigure shows the distribution of the time to first token, a panel a concurrency.
func cdfFigure(d Data, g *results.Group, name, where string) (Figure, bool) {
	f := Figure{
		Name: name, title: orAll(g.Workload) + ": time to first token", subtitle: where, dashed: true,
		width: 7 * vg.Inch, height: 3.6 * vg.Inch,
	}
	var row []panel
	var all []float64
	for _, n := range g.Concurrencies() {
		p := panel{title: fmt.Sprintf("%d at a time", n), y: percentAxis("requests, %")}
		if n == 0 {
			p.title = ""
		}
		for _, point := range g.At(n) {
			values := ttftOf(d, point)
			if len(values) == 0 {
				continue
			}
			c := distribution(values)
			c.system = point.System
			all = append(all, c.xs...)
			p.curves = append(p.curves, c)
			if !slices.Contains(f.systems, point.System) {
				f.systems = append(f.systems, point.System)
			}
		}
		if len(p.curves) > 0 {
			row = append(row, p)
		}
	}
	if len(row) == 0 {
		return Figure{}, false
	}
	if len(row) > cdfPanels {
		f.notes = append(f.notes, fmt.Sprintf("%d of %d concurrencies.", cdfPanels, len(row)))
		row = spread(row, cdfPanels)
	}
	if len(row) > 2 {
		f.width = 10 * vg.Inch
	}
	for i := range row {
		row[i].x = valueAxis("TTFT, ms", all, along(f.width, len(row)))
		if i > 0 {
			row[i].y.label = ""
		}
	}
	f.rows = [][]panel{row}
	return f, true
}

// ttftOf finds a point's values by its place in the summary.
func ttftOf(d Data, p *results.Point) []float64 {
	for i := range d.Summary.Points {
		if &d.Summary.Points[i] == p && i < len(d.TTFT) {
			return d.TTFT[i]
		}
	}
	return nil
}

// cdfPoints bounds the steps of a distribution: more than a figure has pixels show nothing.
const cdfPoints = 200

// distribution is the empirical distribution function of values in percent, thinned to steps that are exact.
func distribution(values []float64) curve {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	n := len(sorted)
	steps := min(n, cdfPoints)
	c := curve{steps: true, xs: []float64{sorted[0]}, ys: []float64{0}}
	for k := range steps {
		i := n - 1
		if steps > 1 {
			i = k * (n - 1) / (steps - 1)
		}
		c.xs = append(c.xs, sorted[i])
		c.ys = append(c.ys, 100*float64(i+1)/float64(n))
	}
	return c
}

// spread picks n of list, the first and the last among them.
func spread[T any](list []T, n int) []T {
	if n < 2 {
		return list[:n]
	}
	var picked []T
	for k := range n {
		picked = append(picked, list[k*(len(list)-1)/(n-1)])
	}
	return picked
}
