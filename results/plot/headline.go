package plot

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"github.com/trbench/trbench/results"
)

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
	f.named = onlyBars(f.rows)
	f.notes = append(f.notes, doubt(shown)...)
	if len(groups) > len(shown) {
		f.notes = append(f.notes, fmt.Sprintf("The first %d of %d groups of points.", len(shown), len(groups)))
	}
	return f
}

func headlineTitle(groups []results.Group) string {
	systems := systemsOf(groups...)
	overRPC := func(s string) bool { return strings.HasPrefix(s, "rpc:") }
	if systems[0] == results.TokenRouter && slices.ContainsFunc(systems, overRPC) {
		return "Token-level routing: TokenRouter against the same models over RPC"
	}
	return "Output and tail latency by system"
}
