package plot

import (
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"

	"github.com/trbench/trbench/results"
)

// speedFigure shows what a server gives in all against what one user sees of it.
func speedFigure(g *results.Group, name, where string) (Figure, bool) {
	f := Figure{
		Name: name, systems: systemsOf(*g), title: orAll(g.Workload) + ": output against the speed one user sees",
		subtitle: where, width: 7 * vg.Inch, height: 4 * vg.Inch,
		notes: []string{
			"Speed of a user: 1000 / mean TPOT in ms. The numbers are requests at a time. Up and right is better.",
		},
	}
	var p panel
	var xs, ys []float64
	for _, system := range f.systems {
		c := curve{system: system}
		for _, point := range byConcurrency(g, system) {
			c.xs = append(c.xs, results.Ratio(results.F(1000), point.TPOT.MeanValue()).Or(math.NaN()))
			c.ys = append(c.ys, point.OutputTokS.Or(math.NaN()))
			label := ""
			if point.Concurrency > 0 {
				label = strconv.Itoa(point.Concurrency)
			}
			c.labels = append(c.labels, label)
		}
		xs, ys = append(xs, c.xs...), append(ys, c.ys...)
		p.curves = append(p.curves, c)
	}
	if !slices.ContainsFunc(xs, func(x float64) bool { return !math.IsNaN(x) }) {
		return Figure{}, false
	}
	p.x, p.y = valueAxis("speed of a user, tok/s", xs, along(f.width, 1)), valueAxis(output.label, ys, upright)
	f.rows = [][]panel{{p}}
	return f, true
}
