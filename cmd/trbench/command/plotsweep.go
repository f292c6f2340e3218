package command

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/metrics"
	"github.com/trbench/trbench/results/plot"
)

// plotSweep draws a sweep into dir, in those of the formats that are files: svg and png.
func plotSweep(dir string, formats []string, r *experiment.SweepReport) error {
	files := slices.DeleteFunc(slices.Clone(formats), func(f string) bool { return f != "svg" && f != "png" })
	if len(files) == 0 {
		return nil
	}
	t, err := tuning(r)
	if err != nil {
		return err
	}
	_, _, err = plot.SaveTuning(dir, t, files...)
	return err
}

// tuning is a sweep as its figures need it.
func tuning(r *experiment.SweepReport) (*plot.Tuning, error) {
	objective, err := experiment.ParseObjective(r.Objective)
	if err != nil {
		return nil, err
	}
	t := &plot.Tuning{
		Summary: r.Summary, Objective: objective.Text, Metric: objective.Metric, Minimise: !objective.Maximise,
		Repeats: r.Repeat, Traces: traces(r),
	}
	for _, l := range objective.Limits {
		t.Limits = append(t.Limits, plot.Limit{Metric: l.Metric, Op: l.Op, Bound: l.Bound})
	}
	axes, err := tuningAxes(r)
	if err != nil {
		return nil, err
	}
	for _, a := range axes {
		t.Axes = append(t.Axes, a.TuningAxis)
	}
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		g := plot.TuningGroup{Title: v.Group, Best: -1, Eager: -1, Gain: v.Gain, GainCI: v.GainCI, Noise: !v.Worth}
		for k := range r.Points {
			p := &r.Points[k]
			if p.Job.Group != v.Group {
				continue
			}
			if p == v.Best {
				g.Best = len(g.Points)
			}
			if p == v.Eager {
				g.Eager = len(g.Points)
			}
			g.Points = append(g.Points, tuningPoint(p, objective, axes))
		}
		if e := v.Exact; e != nil {
			g.Contention = e.Contention
			for _, c := range e.Curve {
				large := c.Threshold[len(c.Threshold)-1]
				g.Predicted = append(g.Predicted, plot.Prediction{Threshold: large, OutputTokS: c.Throughput})
			}
		}
		t.Groups = append(t.Groups, g)
	}
	return t, nil
}

// traces are the names of the files that the points of a sweep replay, without their folders.
func traces(r *experiment.SweepReport) []string {
	var names []string
	for i := range r.Points {
		path, ok := strings.CutPrefix(r.Points[i].Job.Plan.Config.Signal, "replay:")
		if name := filepath.Base(path); ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// tuningAxis is an axis and where a point stands on it.
type tuningAxis struct {
	plot.TuningAxis
	of func(*experiment.SweepPoint) string
}

// tuningAxes are the swept keys, with their values as a config writes them, and what differs between points although it
// is no axis: a list of systems or algorithms.
func tuningAxes(r *experiment.SweepReport) ([]tuningAxis, error) {
	var axes []tuningAxis
	for _, a := range r.Axes {
		key, err := experiment.FindKey(a.Key)
		if err != nil {
			return nil, err
		}
		axis := tuningAxis{TuningAxis: plot.TuningAxis{Key: a.Key, Delay: a.Key == "threshold" || a.Key == "batching"}}
		for _, value := range a.Values {
			c := experiment.Defaults()
			if err := c.Set(a.Key, value); err != nil {
				return nil, err
			}
			axis.Values = append(axis.Values, key.Get(c))
		}
		axis.of = func(p *experiment.SweepPoint) string {
			if d := p.Job.Delay; a.Key == "threshold" && d.Policy != "" {
				return strconv.FormatFloat(sideBySide(d), 'g', -1, 64)
			}
			return key.Get(p.Job.Plan.Config)
		}
		axes = append(axes, axis)
	}
	for _, listed := range []struct {
		key string
		of  func(*results.Point) string
	}{
		{"system", func(p *results.Point) string { return p.System }},
		{"algorithm", func(p *results.Point) string { return p.Algorithm }},
	} {
		if slices.ContainsFunc(axes, func(a tuningAxis) bool { return a.Key == listed.key }) {
			continue
		}
		axis := tuningAxis{
			TuningAxis: plot.TuningAxis{Key: listed.key},
			of:         func(p *experiment.SweepPoint) string { return listed.of(&p.Point) },
		}
		for i := range r.Points {
			if v := axis.of(&r.Points[i]); v != "" && !slices.Contains(axis.Values, v) {
				axis.Values = append(axis.Values, v)
			}
		}
		if len(axis.Values) > 1 {
			axes = append(axes, axis)
		}
	}
	return axes, nil
}

// sideBySide is the threshold that a delay under any policy stands beside.
func sideBySide(d experiment.Delay) float64 {
	if d.Policy == "timer" {
		return 2*d.K + 1
	}
	return d.K
}

func tuningPoint(p *experiment.SweepPoint, o experiment.Objective, axes []tuningAxis) plot.TuningPoint {
	out := plot.TuningPoint{
		Point: &p.Point, Value: experiment.Metric(&p.Point, o.Metric), Runs: len(p.Repeats), Meets: o.Meets(&p.Point),
	}
	out.Policy, out.Delay = delayOf(p)
	for _, a := range axes {
		out.Values = append(out.Values, a.of(p))
	}
	var values []float64
	for i := range p.Repeats {
		if x, ok := experiment.Metric(&p.Repeats[i], o.Metric).Get(); ok {
			values = append(values, x)
		}
	}
	if len(values) > 1 {
		_, half := metrics.MeanCI(values)
		out.CI95 = results.F(half)
	}
	return out
}

// delayOf says how long a point's batches wait; no policy where no single number does, as for a baseline or a threshold
// of the small model.
func delayOf(p *experiment.SweepPoint) (policy string, delay float64) {
	plan := p.Job.Plan
	switch d := p.Job.Delay; {
	case d.Policy != "":
		return d.Policy, d.K
	case p.Point.Batching == "":
		return "", 0
	case plan.Policy.Gate > 0:
		return "gate", float64(plan.Policy.Gate)
	case plan.Policy.Timer > 0:
		unit := plan.Latency.New(0).StepTime(step.Shape{Decodes: 1, DecodeContext: 512, Longest: 512})
		return "timer", math.Round(100*float64(plan.Policy.Timer)/float64(unit)) / 100
	}
	vector := p.Point.Threshold
	if len(vector) == 0 {
		return "threshold", 1
	}
	last := len(vector) - 1
	if slices.ContainsFunc(vector[:last], func(b int) bool { return b != 1 }) {
		return "", 0
	}
	return "threshold", float64(vector[last])
}
