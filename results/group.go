package results

import (
	"fmt"
	"slices"
	"strings"
)

// Group is the points that a table or a panel shows together: one workload, algorithm, pair and arrival process, and
// one value of every swept key. What is left to vary is the system and the concurrency.
type Group struct {
	Workload, Algorithm, Pair, Arrival string
	Axes                               Axes
	Points                             []*Point // TokenRouter first in each concurrency, then as in the summary
}

// Groups splits points into groups, in the order in which they first appear. A system that runs no algorithm, or that a
// swept key does not reach, stands in every group that it can be compared in.
func Groups(points []Point) []Group {
	var keys []Group
	for i := range points {
		k := keyOf(&points[i])
		if !slices.ContainsFunc(keys, func(other Group) bool { return covers(&other, &k) && covers(&k, &other) }) {
			keys = append(keys, k)
		}
	}
	systems := Systems(points)
	var groups []Group
	for i := range keys {
		g := keys[i]
		if slices.ContainsFunc(keys, func(other Group) bool { return covers(&other, &g) && !covers(&g, &other) }) {
			continue // its points stand in the other
		}
		for j := range points {
			if k := keyOf(&points[j]); covers(&g, &k) {
				g.Points = append(g.Points, &points[j])
			}
		}
		order := g.Concurrencies()
		slices.SortStableFunc(g.Points, func(a, b *Point) int {
			if d := slices.Index(order, a.Concurrency) - slices.Index(order, b.Concurrency); d != 0 {
				return d
			}
			return slices.Index(systems, a.System) - slices.Index(systems, b.System)
		})
		groups = append(groups, g)
	}
	return groups
}

func keyOf(p *Point) Group {
	return Group{Workload: p.Workload, Algorithm: p.Algorithm, Pair: p.Pair, Arrival: p.Arrival, Axes: p.Axes}
}

// covers says that a point with b's key belongs into group a.
func covers(a, b *Group) bool {
	if a.Workload != b.Workload || a.Pair != b.Pair || a.Arrival != b.Arrival ||
		b.Algorithm != "" && a.Algorithm != b.Algorithm {
		return false
	}
	for _, axis := range b.Axes {
		if !slices.Contains(a.Axes, axis) {
			return false
		}
	}
	return true
}

// Concurrencies lists the concurrencies of the group's points in the order in which they appear; 0 is an open loop.
func (g *Group) Concurrencies() []int {
	var found []int
	for _, p := range g.Points {
		if !slices.Contains(found, p.Concurrency) {
			found = append(found, p.Concurrency)
		}
	}
	return found
}

// At returns the points of one concurrency.
func (g *Group) At(concurrency int) []*Point {
	var found []*Point
	for _, p := range g.Points {
		if p.Concurrency == concurrency {
			found = append(found, p)
		}
	}
	return found
}

// Title says what the group is, in words: "gsm8k: r2r on llama3-8b-70b, closed loop, switch_rate 0.1".
func (g *Group) Title() string {
	var b strings.Builder
	b.WriteString(orElse(g.Workload, "all requests"))
	if of := g.Subtitle(); of != "" {
		b.WriteString(": " + of)
	}
	return b.String()
}

// Subtitle is Title without the workload.
func (g *Group) Subtitle() string {
	var parts []string
	switch {
	case g.Algorithm != "" && g.Pair != "":
		parts = append(parts, g.Algorithm+" on "+g.Pair)
	case g.Algorithm != "" || g.Pair != "":
		parts = append(parts, g.Algorithm+g.Pair)
	}
	switch g.Arrival {
	case "":
	case "closed":
		parts = append(parts, "closed loop")
	default:
		parts = append(parts, g.Arrival+" arrivals")
	}
	for _, a := range g.Axes {
		parts = append(parts, fmt.Sprintf("%s %s", a.Key, a.Value))
	}
	return strings.Join(parts, ", ")
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Systems lists the systems of points: TokenRouter first, the others in the order in which they appear.
func Systems(points []Point) []string {
	var found []string
	for i := range points {
		if s := points[i].System; !slices.Contains(found, s) {
			found = append(found, s)
		}
	}
	if i := slices.Index(found, TokenRouter); i > 0 {
		found = slices.Insert(slices.Delete(found, i, i+1), 0, TokenRouter)
	}
	return found
}

// Origin says where the figures of points come from, in words: "simulated, a100 step times". What differs between
// points is left out.
func Origin(points []Point) string {
	var parts []string
	if source := common(points, func(p *Point) string { return p.Source }); source != "" {
		parts = append(parts, source)
	}
	if latency := common(points, func(p *Point) string { return p.Latency }); latency != "" {
		parts = append(parts, latency+" step times")
	}
	return strings.Join(parts, ", ")
}

// common is the value that all points share; "" where they don't.
func common(points []Point, of func(*Point) string) string {
	if len(points) == 0 {
		return ""
	}
	first := of(&points[0])
	for i := range points {
		if of(&points[i]) != first {
			return ""
		}
	}
	return first
}
