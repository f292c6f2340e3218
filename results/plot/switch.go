package plot

import (
	"math"

	"gonum.org/v1/plot/vg"

	"github.com/trbench/trbench/results"
)

// switchParts are the parts of a change of model, in the order in which they happen.
var switchParts = [...]struct {
	name string
	of   func(*results.Switch) *results.Dist
}{
	{"enqueue", func(s *results.Switch) *results.Dist { return s.Enqueue }},
	{"transport", func(s *results.Switch) *results.Dist { return s.Transport }},
	{"wait for the step", func(s *results.Switch) *results.Dist { return s.Wait }},
	{"the step that extends", func(s *results.Switch) *results.Dist { return s.Extend }},
}

// switchFigure shows what TokenRouter pays for a change of model, a line a part, against concurrency: median and P99,
// on one logarithmic scale. False where no engine has measured it: a simulation knows no enqueue part.
func switchFigure(g *results.Group, name, where string) (Figure, bool) {
	f := Figure{
		Name: name, title: orAll(g.Workload) + ": what a change of model takes", subtitle: where,
		width: 8.5 * vg.Inch, height: 3.8 * vg.Inch,
		notes: []string{
			"Enqueue: the sender's work, by the requests that leave. Transport: until the peer's scheduler has it. Wait: until the peer's step " +
				"starts. The step feeds what the peer has not seen, with all else in its batch.",
		},
	}
	for _, part := range switchParts {
		f.systems = append(f.systems, part.name)
	}
	row := []panel{{title: "median"}, {title: "P99"}}
	least, most := math.Inf(1), 0.
	var counts []int
	for _, part := range switchParts {
		median, tail := curve{system: part.name}, curve{system: part.name}
		for _, point := range byConcurrency(g, results.TokenRouter) {
			if point.Switch == nil || point.Switch.Enqueue == nil || point.Concurrency == 0 {
				continue
			}
			counts = append(counts, point.Concurrency)
			d := part.of(point.Switch)
			for p, c := range map[float64]*curve{50: &median, 99: &tail} {
				us := d.Percentile(p).Or(math.NaN())
				c.xs, c.ys = append(c.xs, float64(point.Concurrency)), append(c.ys, us)
				if us > 0 {
					least, most = min(least, us), max(most, us)
				}
			}
		}
		row[0].curves, row[1].curves = append(row[0].curves, median), append(row[1].curves, tail)
	}
	if len(counts) == 0 || most == 0 {
		return Figure{}, false
	}
	for i := range row {
		row[i].x, row[i].y = countAxis(concurrencyLabel, counts), logAxis("microseconds", least, most, upright)
	}
	row[1].y.label = ""
	f.rows = [][]panel{row}
	return f, true
}
