package plot

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"

	"github.com/trbench/trbench/results"
)

// sweepFigure shows output and tail latency against the one swept key, whose values must be numbers; false where there
// is no such key. Where several concurrencies were swept too, it shows the highest.
func sweepFigure(groups []results.Group, where string) (Figure, bool) {
	key, ok := sweptKey(groups)
	if !ok {
		return Figure{}, false
	}
	bases := sweepBases(groups, key)
	shown := bases[:min(len(bases), headlineGroups)]
	common, titles := distinguish(shown)
	f := Figure{
		Name: "sweep-" + slug(key), systems: systemsOf(shown...), title: "Output and tail latency against " + key,
		subtitle: joinParts(common, where), width: 10 * vg.Inch, height: 5.6 * vg.Inch,
	}
	if len(shown) == 1 {
		f.width = 7 * vg.Inch
	}
	for _, m := range []metric{output, tpotP99} {
		var row []panel
		for i := range shown {
			p := sweepPanel(groups, &shown[i], key, m, f.systems)
			if len(f.rows) == 0 {
				p.title = titles[i]
			} else {
				p.x.label = key
			}
			row = append(row, p)
		}
		fitRow(row, m, f.width)
		var xs []float64
		for i := range row {
			for _, c := range row[i].curves {
				xs = append(xs, c.xs...)
			}
		}
		for i := range row {
			label := row[i].x.label
			row[i].x = valueAxis(label, xs, along(f.width, len(row)))
		}
		f.rows = append(f.rows, row)
	}
	f.notes = doubt(shown)
	if len(bases) > len(shown) {
		f.notes = append(f.notes, fmt.Sprintf("The first %d of %d.", len(shown), len(bases)))
	}
	return f, true
}

// sweptKey is the only key that differs between groups; every group must have it, as a number.
func sweptKey(groups []results.Group) (string, bool) {
	values := map[string][]string{}
	for i := range groups {
		for _, a := range groups[i].Axes {
			if !slices.Contains(values[a.Key], a.Value) {
				values[a.Key] = append(values[a.Key], a.Value)
			}
		}
	}
	found := ""
	for key, list := range values { // any order: a second key ends it
		if len(list) < 2 {
			continue
		}
		if found != "" {
			return "", false
		}
		found = key
	}
	if found == "" {
		return "", false
	}
	for i := range groups {
		if _, ok := axisNumber(groups[i].Axes, found); !ok {
			return "", false
		}
	}
	return found, true
}

func axisNumber(axes results.Axes, key string) (float64, bool) {
	for _, a := range axes {
		if a.Key == key {
			x, err := strconv.ParseFloat(a.Value, 64)
			return x, err == nil
		}
	}
	return 0, false
}

// without is axes less the key.
func without(axes results.Axes, key string) results.Axes {
	return slices.DeleteFunc(slices.Clone(axes), func(a results.Axis) bool { return a.Key == key })
}

// sweepBases joins the groups that differ in the key alone, and keeps the points of the highest concurrency.
func sweepBases(groups []results.Group, key string) []results.Group {
	var bases []results.Group
	for i := range groups {
		g := groups[i]
		g.Axes = without(g.Axes, key)
		g.Points = g.At(slices.Max(g.Concurrencies()))
		if j := slices.IndexFunc(bases, func(b results.Group) bool { return sameBase(&b, &g) }); j >= 0 {
			bases[j].Points = append(slices.Clip(bases[j].Points), g.Points...)
			continue
		}
		bases = append(bases, g)
	}
	return bases
}

func sameBase(a, b *results.Group) bool {
	return a.Workload == b.Workload && a.Algorithm == b.Algorithm && a.Pair == b.Pair && a.Arrival == b.Arrival &&
		slices.Equal(a.Axes, b.Axes)
}

// sweepPanel shows a metric of one base against the key.
func sweepPanel(groups []results.Group, base *results.Group, key string, m metric, systems []string) panel {
	var p panel
	for _, system := range systems {
		type sample struct{ x, y float64 }
		var samples []sample
		for i := range groups {
			g := groups[i]
			x, _ := axisNumber(g.Axes, key)
			g.Axes = without(g.Axes, key)
			if !sameBase(&g, base) {
				continue
			}
			for _, point := range g.At(slices.Max(g.Concurrencies())) {
				if point.System == system {
					samples = append(samples, sample{x, m.of(point).Or(math.NaN())})
				}
			}
		}
		slices.SortStableFunc(samples, func(a, b sample) int {
			switch {
			case a.x < b.x:
				return -1
			case a.x > b.x:
				return 1
			}
			return 0
		})
		c := curve{system: system}
		for _, s := range samples {
			c.xs, c.ys = append(c.xs, s.x), append(c.ys, s.y)
		}
		if len(samples) > 0 {
			p.curves = append(p.curves, c)
		}
	}
	return p
}
