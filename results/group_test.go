package results

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func (g *Group) describe() string {
	var b strings.Builder
	b.WriteString(g.Title() + ":")
	for _, p := range g.Points {
		fmt.Fprintf(&b, " %s@%d", p.System, p.Concurrency)
	}
	return b.String()
}

func TestGroups(t *testing.T) {
	at := func(system, algorithm, workload string, n int, axes ...Axis) Point {
		return Point{
			System: system, Algorithm: algorithm, Workload: workload, Pair: "8b-70b", Arrival: "closed", Concurrency: n,
			Axes: axes,
		}
	}
	for _, c := range []struct {
		name   string
		points []Point
		want   []string
	}{
		{"by system first", []Point{
			at("rpc", "r2r", "gsm8k", 1), at("rpc", "r2r", "gsm8k", 4), at("large-only", "", "gsm8k", 1),
			at(TokenRouter, "r2r", "gsm8k", 1), at(TokenRouter, "r2r", "gsm8k", 4), at("rpc", "r2r", "alpaca", 4),
		}, []string{
			"gsm8k: r2r on 8b-70b, closed loop: tokenrouter@1 rpc@1 large-only@1 tokenrouter@4 rpc@4",
			"alpaca: r2r on 8b-70b, closed loop: rpc@4",
		}},
		{"a system without an algorithm stands beside each", []Point{
			at("large-only", "", "w", 1), at(TokenRouter, "r2r", "w", 1), at(TokenRouter, "me", "w", 1),
		}, []string{
			"w: r2r on 8b-70b, closed loop: tokenrouter@1 large-only@1",
			"w: me on 8b-70b, closed loop: tokenrouter@1 large-only@1",
		}},
		{"alone it is a group", []Point{at("large-only", "", "w", 1)}, []string{"w: 8b-70b, closed loop: large-only@1"}},
		{"a sweep", []Point{
			at("large-only", "", "w", 1), at(TokenRouter, "r2r", "w", 1, Axis{"p", "1"}),
			at("rpc", "r2r", "w", 1, Axis{"p", "2"}),
		}, []string{
			"w: r2r on 8b-70b, closed loop, p 1: tokenrouter@1 large-only@1",
			"w: r2r on 8b-70b, closed loop, p 2: large-only@1 rpc@1",
		}},
		{"an open loop", []Point{{System: "s", Arrival: "poisson:8"}}, []string{"all requests: poisson:8 arrivals: s@0"}},
		{"nothing known", []Point{{System: "s"}}, []string{"all requests: s@0"}},
	} {
		var got []string
		for _, g := range Groups(c.points) {
			got = append(got, g.describe())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, got, c.want)
		}
	}
}

// No point is lost, and none stands twice in a group.
func TestGroupsHoldEveryPoint(t *testing.T) {
	few := rapid.SampledFrom([]string{"", "a", "b"})
	rapid.Check(t, func(t *rapid.T) {
		points := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Point {
			p := Point{System: few.Draw(t, "s"), Algorithm: few.Draw(t, "a"), Workload: few.Draw(t, "w")}
			if v := few.Draw(t, "axis"); v != "" {
				p.Axes = Axes{{"k", v}}
			}
			return p
		}), 0, 12).Draw(t, "points")
		seen := map[*Point]bool{}
		for _, g := range Groups(points) {
			if len(g.Points) == 0 {
				t.Fatal("an empty group")
			}
			for i, p := range g.Points {
				seen[p] = true
				if slices.Contains(g.Points[:i], p) {
					t.Fatalf("%+v stands twice", p)
				}
			}
		}
		if len(seen) != len(points) {
			t.Fatalf("%d of %d points", len(seen), len(points))
		}
	})
}

func TestSystemsAndOrigin(t *testing.T) {
	points := []Point{
		{System: "rpc", Source: "simulated", Latency: "a100"},
		{System: TokenRouter, Source: "simulated", Latency: "h100"},
		{System: "rpc", Source: "simulated", Latency: "a100"},
	}
	if got := Systems(points); !slices.Equal(got, []string{TokenRouter, "rpc"}) {
		t.Errorf("systems %q", got)
	}
	if got := Origin(points); got != "simulated" {
		t.Errorf("origin %q", got)
	}
	if got := Origin(points[:1]); got != "simulated, a100 step times" {
		t.Errorf("origin %q", got)
	}
	if got := Origin(nil); got != "" {
		t.Errorf("origin of nothing %q", got)
	}
}
