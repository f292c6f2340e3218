package plot

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/trbench/trbench/results"
)

// Data is what figures are drawn from.
type Data struct {
	Summary *results.Summary
	// TTFT[i] holds the times to first token of the requests of Summary.Points[i], in ms and any order. Points beyond
	// its length, or with nothing in it, are left out of the distributions.
	TTFT [][]float64
}

// maxGroups bounds the groups that get figures of their own, and headlineGroups those side by side in the headline: a
// sweep has as many groups as values.
const (
	maxGroups      = 12
	headlineGroups = 4
	cdfPanels      = 4
)

// Figures lays out all figures of d: that of the sweep, or else the headline, and those of each group. The figure of a
// sweep stands alone where each group has one concurrency. The notes say what could not be shown; each figure says so
// too.
func Figures(d Data) (figures []Figure, notes []string) {
	groups := results.Groups(d.Summary.Points)
	if len(groups) == 0 {
		return nil, nil
	}
	add := func(f Figure) {
		if n := f.left(); n > 0 {
			note := fmt.Sprintf("Left out for want of a value: %d.", n)
			f.notes = append(f.notes, note)
			notes = append(notes, f.Name+": "+note)
		}
		figures = append(figures, f)
	}
	subject := subtitle(d.Summary)
	if f, ok := sweepFigure(groups, subject); ok {
		add(f)
		if !slices.ContainsFunc(groups, func(g results.Group) bool { return len(g.Concurrencies()) > 1 }) {
			return figures, notes
		}
	} else {
		add(headline(groups, subject))
	}
	if len(groups) > maxGroups {
		notes = append(notes, fmt.Sprintf("figures of the first %d of %d groups of points", maxGroups, len(groups)))
		groups = groups[:maxGroups]
	}
	names := fileNames(groups)
	for i := range groups {
		g := &groups[i]
		where := joinParts(g.Subtitle(), subject)
		add(metricFigure(g, "throughput-"+names[i], "output", output, where))
		add(metricFigure(g, "tpot-p99-"+names[i], "P99 time per output token", tpotP99, where))
		if f, ok := speedFigure(g, "speed-"+names[i], where); ok {
			add(f)
		}
		if f, ok := cdfFigure(d, g, "ttft-cdf-"+names[i], where); ok {
			add(f)
		}
	}
	return figures, notes
}

// Save writes every figure into dir in every format, "svg" or "png", and returns the names of the files and Figures'
// notes.
func Save(dir string, d Data, formats ...string) (files, notes []string, err error) {
	for _, format := range formats {
		if format != "svg" && format != "png" {
			return nil, nil, fmt.Errorf("plot format %q: want svg or png", format)
		}
	}
	figures, notes := Figures(d)
	for i := range figures {
		f := &figures[i]
		for _, format := range formats {
			write := f.SVG
			if format == "png" {
				write = f.PNG
			}
			var buf bytes.Buffer
			if err := write(&buf); err != nil {
				return files, notes, err
			}
			name := f.Name + "." + format
			if err := os.WriteFile(filepath.Join(dir, name), buf.Bytes(), 0o666); err != nil {
				return files, notes, err
			}
			files = append(files, name)
		}
	}
	return files, notes, nil
}

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

// subtitle says where the figures come from.
func subtitle(s *results.Summary) string {
	parts := []string{results.Origin(s.Points)}
	if n := s.Points[0].Requests; !slices.ContainsFunc(s.Points, func(p results.Point) bool { return p.Requests != n }) {
		parts = append(parts, fmt.Sprintf("%d requests a point", n))
	}
	return joinParts(append(parts, fmt.Sprintf("seed %d", s.Seed))...)
}

func joinParts(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// systemsOf lists the systems of groups, TokenRouter first.
func systemsOf(groups ...results.Group) []string {
	var points []results.Point
	for i := range groups {
		for _, p := range groups[i].Points {
			points = append(points, *p)
		}
	}
	return results.Systems(points)
}

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
			row[i].named = i == 0
			row[i].barAxes(m.label, most, along(width, len(row)))
			continue
		}
		row[i].y = valueAxis(m.label, values, upright)
		if i > 0 {
			row[i].y.label = ""
		}
	}
}

// headline shows output and tail latency of the first groups side by side.
func headline(groups []results.Group, where string) Figure {
	shown := groups[:min(len(groups), headlineGroups)]
	common, titles := distinguish(shown)
	f := Figure{
		Name: "headline", systems: systemsOf(shown...), title: headlineTitle(shown), subtitle: joinParts(common, where),
		width: 10 * vg.Inch, height: 5.6 * vg.Inch,
		notes: []string{
			"Output: tokens per second of the whole server; more is better. P99 TPOT: 99 % of requests get their output " +
				"tokens at this pace or faster; less is better.",
		},
	}
	for _, m := range []metric{output, tpotP99} {
		var row []panel
		for i := range shown {
			p := metricPanel(&shown[i], m, f.systems)
			if len(f.rows) == 0 {
				p.title = titles[i]
				p.x.label = ""
			}
			row = append(row, p)
		}
		fitRow(row, m, f.width)
		f.rows = append(f.rows, row)
	}
	f.named = namedThroughout(f.rows)
	f.notes = append(f.notes, doubt(shown)...)
	if len(groups) > len(shown) {
		f.notes = append(f.notes, fmt.Sprintf("The first %d of %d groups of points.", len(shown), len(groups)))
	}
	return f
}

// namedThroughout says that all panels are bars, whose systems the first of a row names.
func namedThroughout(rows [][]panel) bool {
	for _, row := range rows {
		for i := range row {
			if len(row[i].bars) == 0 || len(row[i].bars) != len(row[0].bars) {
				return false
			}
		}
	}
	return true
}

// doubt is what is to be said about the percentiles of groups: nothing, or one line.
func doubt(groups []results.Group) []string {
	var found []string
	for i := range groups {
		for _, p := range groups[i].Points {
			if p.Note != "" && !slices.Contains(found, p.Note) {
				found = append(found, p.Note)
			}
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return []string{found[0] + "."}
	}
	return []string{"Some P99 are over too few requests for their 95 % interval to have an upper bound."}
}

// distinguish splits what groups are into what all share, for the subtitle, and a title each of what is its own.
func distinguish(groups []results.Group) (common string, titles []string) {
	shared := func(of func(*results.Group) string) bool {
		for i := range groups {
			if of(&groups[i]) != of(&groups[0]) {
				return false
			}
		}
		return true
	}
	all, own := groups[0], make([]results.Group, len(groups))
	all.Workload = ""
	copy(own, groups)
	for _, field := range []func(*results.Group) *string{
		func(g *results.Group) *string { return &g.Algorithm },
		func(g *results.Group) *string { return &g.Pair },
		func(g *results.Group) *string { return &g.Arrival },
	} {
		if shared(func(g *results.Group) string { return *field(g) }) {
			for i := range own {
				*field(&own[i]) = ""
			}
		} else {
			*field(&all) = ""
		}
	}
	for i := range own {
		own[i].Axes = slices.Clone(own[i].Axes)
	}
	all.Axes = slices.DeleteFunc(slices.Clone(all.Axes), func(a results.Axis) bool {
		return !shared(func(g *results.Group) string {
			return strconv.FormatBool(slices.Contains(g.Axes, a))
		})
	})
	for i := range own {
		own[i].Axes = slices.DeleteFunc(own[i].Axes, func(a results.Axis) bool { return slices.Contains(all.Axes, a) })
		title := orAll(own[i].Workload)
		if rest := own[i].Subtitle(); rest != "" {
			title += "\n" + rest
		}
		titles = append(titles, title)
	}
	common = all.Subtitle()
	if n := commonConcurrency(groups); n > 0 {
		common = joinParts(common, fmt.Sprintf("%d at a time", n))
	}
	return common, titles
}

// commonConcurrency is the one concurrency of groups; 0 where there are several.
func commonConcurrency(groups []results.Group) int {
	n := groups[0].Points[0].Concurrency
	for i := range groups {
		if counts := groups[i].Concurrencies(); len(counts) != 1 || counts[0] != n {
			return 0
		}
	}
	return n
}

func headlineTitle(groups []results.Group) string {
	systems := systemsOf(groups...)
	overRPC := func(s string) bool { return strings.HasPrefix(s, "rpc:") }
	if systems[0] == results.TokenRouter && slices.ContainsFunc(systems, overRPC) {
		return "Token-level routing: TokenRouter against the same models over RPC"
	}
	return "Output and tail latency by system"
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
	f.named = namedThroughout(f.rows)
	if m.tail {
		f.notes = doubt([]results.Group{*g})
	}
	return f
}

func orAll(workload string) string {
	if workload == "" {
		return "all requests"
	}
	return workload
}

// speedFigure shows what a server gives in all against what one user sees of it.
func speedFigure(g *results.Group, name, where string) (Figure, bool) {
	f := Figure{
		Name: name, systems: systemsOf(*g), title: orAll(g.Workload) + ": output against the speed one user sees",
		subtitle: where, width: 7 * vg.Inch, height: 4 * vg.Inch,
		notes: []string{"Speed of a user: 1000 / mean TPOT in ms. The numbers are requests at a time. Up and right is better."},
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
	var picked []T
	for k := range n {
		picked = append(picked, list[k*(len(list)-1)/(n-1)])
	}
	return picked
}

// fileNames gives each group a name that is fit for a file and different from the others'.
func fileNames(groups []results.Group) []string {
	names := make([]string, len(groups))
	for i := range groups {
		if names[i] != "" {
			continue
		}
		var same []results.Group
		var places []int
		for j := range groups {
			if groups[j].Workload == groups[i].Workload {
				same, places = append(same, groups[j]), append(places, j)
			}
		}
		_, titles := distinguish(same)
		for k, place := range places {
			base := slug(titles[k])
			names[place] = base
			for n := 2; slices.Contains(names[:place], names[place]); n++ {
				names[place] = base + "-" + strconv.Itoa(n)
			}
		}
	}
	return names
}

// slug keeps letters, digits and dots, and puts one dash for all between.
func slug(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.' && b.Len() > 0:
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := strings.Trim(b.String(), "-.")
	if name == "" {
		return "x"
	}
	return name
}
