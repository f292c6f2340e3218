package plot

import (
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// policies are the delayed-batching policies, in the order of their looks.
var policies = [...]string{"threshold", "gate", "timer"}

var (
	// chainStyle is the line of what the exact chain computes.
	chainStyle = draw.LineStyle{Color: ink, Width: vg.Points(1.3), Dashes: dashes(5, 3)}
	// levelStyle is the line of a value to compare with.
	levelStyle = draw.LineStyle{Color: rule, Width: vg.Points(0.9)}
)

// delayFigure shows the objective's metric against how long batches wait, a line a policy and a panel a group, with
// what the exact chain computes for the thresholds; false where no delays were compared.
func delayFigure(t *Tuning) (Figure, bool) {
	all := t.apart(func(a TuningAxis) bool { return !a.Delay })
	all = slices.DeleteFunc(all, func(p panelOf) bool { return len(p.delays()) < 2 })
	if len(all) == 0 {
		return Figure{}, false
	}
	shown, leftOut := few(all)
	label := metricLabel(t.Metric)
	f := Figure{Name: "delay", title: "Delayed batching: " + metricName(t.Metric) + " against how long batches wait"}
	var delays []float64
	var used []string
	longest := 0.
	chain, eager, contention := false, false, false
	for _, p := range shown {
		for _, i := range p.points {
			if q := &p.group.Points[i]; q.Policy != "" {
				delays = append(delays, q.Delay)
				if q.Delay > longest {
					longest = q.Delay
				}
				if !slices.Contains(used, q.Policy) {
					used = append(used, q.Policy)
				}
			}
		}
		if t.predicted(p) != nil {
			chain, contention = true, contention || p.group.Contention > 0
		}
		eager = eager || t.eagerBeside(p.group, &p.group.Points[p.points[0]]) != nil
	}
	var panels []panel
	width := figureWidth(columnsOf(len(shown)))
	for _, p := range shown {
		one := t.delayPanel(p, label, longest)
		one.x = delayAxis("delay", delays, along(width, columnsOf(len(shown))))
		panels = append(panels, one)
	}
	f.place(panels, 3.5*vg.Inch)

	for i, policy := range policies {
		if slices.Contains(used, policy) {
			f.legend = append(f.legend, policySign(i))
		}
	}
	computed := ""
	if chain {
		f.legend = append(f.legend, sign{name: "exact chain (threshold)", stroke: chainStyle})
		computed = "Dashed: computed, the exact Markov chain of the thresholds in its steady state"
		if contention {
			computed += ", without contention, which the simulation has"
		}
		computed += "."
	}
	if eager {
		f.legend = append(f.legend, sign{name: "eager", stroke: levelStyle})
	}
	f.legend = append(f.legend, sign{name: "best", glyph: bestGlyph})
	f.subtitle = sentences(t.subject()+".", t.simulated(), computed, t.sought()+".")
	gain := ""
	if slices.ContainsFunc(panels, func(p panel) bool { return strings.Contains(p.caption, "%") }) {
		gain = "In percent: the change against eager"
		if t.Repeats > 1 {
			gain += ", with its 95 % interval over paired seeds"
		}
		gain += "."
	}
	f.notes = notesOf("Delay: "+delayUnits(used)+".", sentences(gain, t.onceNote(), axesNote(f.rows, false)), leftOut)
	return f, true
}

// delays are the different delays of the panel's points.
func (p *panelOf) delays() []TuningPoint {
	var found []TuningPoint
	for _, i := range p.points {
		q := p.group.Points[i]
		same := func(o TuningPoint) bool { return o.Policy == q.Policy && o.Delay == q.Delay }
		if q.Policy != "" && !slices.ContainsFunc(found, same) {
			found = append(found, q)
		}
	}
	return found
}

// delayUnits says what the x axis counts for the policies in a figure.
func delayUnits(used []string) string {
	var parts []string
	for i, unit := range [len(policies)]string{
		"a threshold's B (fewest requests that start a batch)",
		"a gate's K (requests that join a running batch together)",
		"a timer's wait in decode steps of the small model",
	} {
		if slices.Contains(used, policies[i]) {
			parts = append(parts, unit)
		}
	}
	return joinParts(parts...)
}

// predicted is what the chain computes of a panel; nil where that is not what the panel shows.
func (t *Tuning) predicted(p panelOf) []Prediction {
	// It knows throughput only, and no other setting: where there are several, it does not say which one it is.
	if len(p.points) < len(p.group.Points) || t.Metric != "output_tok_s" && t.Metric != "steady_tok_s" {
		return nil
	}
	return p.group.Predicted
}

// delayPanel draws a panel of the figure; longest is the longest delay in any.
func (t *Tuning) delayPanel(p panelOf, label string, longest float64) panel {
	out := panel{title: p.title}
	g := p.group
	var values []float64
	if q := t.eagerBeside(g, &g.Points[p.points[0]]); q != nil {
		if v, ok := q.Value.Get(); ok {
			out.layers = append(out.layers, &level{at: v, style: levelStyle})
			values = append(values, v)
		}
	}
	if curve := t.predicted(p); curve != nil {
		line := &path{style: chainStyle}
		for _, c := range curve {
			if x := float64(c.Threshold); x <= longest {
				line.xs, line.ys = append(line.xs, x), append(line.ys, c.OutputTokS)
			}
		}
		out.layers, values = append(out.layers, line), append(values, line.ys...)
	}
	// The thresholds are drawn last: they lie on top.
	for i := len(policies) - 1; i >= 0; i-- {
		s := &strand{look: policyLooks[i]}
		for _, q := range p.sorted(policies[i]) {
			v, half := q.Value.Or(math.NaN()), q.CI95.Or(math.NaN())
			s.add(q.Delay, v, half, t.Repeats > 1 && q.Runs < 2)
			values = append(values, v)
			if half > 0 {
				values = append(values, v-half, v+half)
			}
		}
		if len(s.xs) > 0 {
			out.layers = append(out.layers, s)
		}
	}
	if g.Best >= 0 && slices.Contains(p.points, g.Best) {
		q := &g.Points[g.Best]
		if v, ok := q.Value.Get(); ok && q.Policy != "" {
			out.layers = append(out.layers, &ring{q.Delay, v})
			out.caption = "best: " + joinParts(q.delayName(), t.gain(g))
		}
	} else if g.Best < 0 {
		out.caption = nothingBest
	}
	out.y = fittedAxis(label, values, upright)
	return out
}

// add adds a value.
func (s *strand) add(x, y, half float64, once bool) {
	s.xs, s.ys = append(s.xs, x), append(s.ys, y)
	s.halves, s.once = append(s.halves, half), append(s.once, once)
}

// sorted lists the panel's points under a policy, by their delay.
func (p *panelOf) sorted(policy string) []*TuningPoint {
	var found []*TuningPoint
	for _, i := range p.points {
		if q := &p.group.Points[i]; q.Policy == policy {
			found = append(found, q)
		}
	}
	slices.SortStableFunc(found, func(a, b *TuningPoint) int {
		switch {
		case a.Delay < b.Delay:
			return -1
		case a.Delay > b.Delay:
			return 1
		}
		return 0
	})
	return found
}

// policySign is a policy's entry in a legend.
func policySign(i int) sign {
	return sign{
		name: policies[i], glyph: policyLooks[i].point(),
		stroke: draw.LineStyle{Color: policyLooks[i].color, Width: vg.Points(1.4)},
	}
}

// simulated says what the points of a figure are.
func (t *Tuning) simulated() string {
	if t.Repeats > 1 {
		return "Points: simulated, with the 95 % interval of the mean over the seeds."
	}
	return "Points: simulated."
}

// sought says what is best.
func (t *Tuning) sought() string { return "Best: " + t.Objective }

// notesOf drops the empty ones.
func notesOf(notes ...string) []string {
	return slices.DeleteFunc(notes, func(s string) bool { return s == "" })
}
