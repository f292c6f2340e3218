package table

import (
	"slices"

	"github.com/trbench/trbench/results"
)

// switches is the table of what a change of model takes, in microseconds, a row a concurrency: of TokenRouter where an
// engine has measured it. A simulation knows no enqueue part; it has no such table.
func switches(g *results.Group) (t grid, ok bool) {
	t = grid{head: []string{
		"N", "enqueue\nP50 us", "\nP99", "transport\nP50 us", "\nP99", "wait\nP50 us", "\nP99", "its step\nP50 us", "\nP99",
	}}
	for _, n := range g.Concurrencies() {
		points := g.At(n)
		i := slices.IndexFunc(points, func(p *results.Point) bool { return p.System == results.TokenRouter })
		if i < 0 || points[i].Switch == nil || points[i].Switch.Enqueue == nil {
			continue
		}
		s := points[i].Switch
		row := []string{concurrency(n)}
		for _, d := range []*results.Dist{s.Enqueue, s.Transport, s.Wait, s.Extend} {
			row = append(row, number(d.Percentile(50)), number(d.Percentile(99)))
		}
		t.rows = append(t.rows, row)
	}
	return t, len(t.rows) > 0
}

// switchText explains the parts.
const switchText = "What a change of model takes in TokenRouter. Enqueue: the sender's work, set aside here and put into the peer's " +
	"inbox, by the requests of its step that leave. Transport: until the peer's scheduler has it. Wait: until the peer's step " +
	"starts. Its step: the one that feeds what the peer has not seen, with all else in its batch."
