package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/metrics"
)

// Recover makes a result of what a killed run left in dir, the folder PATH.partial-PID: the summary of the points whose
// requests had all ended, and all finished requests. Nothing runs. Write it with Finish, which gives the folder the name
// that the run would have given it. What only the process knew is null: see results.Recover.
func Recover(dir string) (*Result, error) {
	folder, m, err := results.Recover(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usage(err)
		}
		return nil, &Error{ExitData, err}
	}
	c, err := configOf(m)
	if err != nil {
		return nil, &Error{ExitData, fmt.Errorf("%s/%s: %w", dir, results.ManifestFile, err)}
	}
	r := &Result{
		Folder: folder, manifest: m, Interrupted: true,
		Summary: &results.Summary{Run: m.Run, Clock: m.Clock, Seed: m.Seed, Warnings: slices.Clone(m.Warnings)},
	}
	points, requests, err := recorded(folder)
	if err != nil {
		return nil, &Error{ExitData, err}
	}
	for _, pt := range points {
		d := pt.summarise(c, m)
		if d == nil {
			continue
		}
		r.Summary.Points = append(r.Summary.Points, d.point)
		r.TTFT = append(r.TTFT, d.ttft)
	}
	r.warn(fmt.Sprintf("recovered from a run that was killed: %d of %d points that had begun are complete; requests.jsonl "+
		"has %d finished requests; gaps between tokens, switch costs, batches and busy shares are lost",
		len(r.Summary.Points), len(points), requests))
	for _, w := range metrics.Doubts(r.Summary.Points) {
		r.warn(w)
	}
	r.Summary.Comparisons = results.Comparisons(r.Summary.Points)
	return r, nil
}

// configOf is the config that a manifest records.
func configOf(m *results.Manifest) (*Config, error) {
	var values map[string]string
	if err := json.Unmarshal(m.Config, &values); err != nil {
		return nil, fmt.Errorf("field config: %w", err)
	}
	c := Defaults()
	for _, k := range Keys() {
		value, ok := values[k.Name]
		if !ok {
			continue
		}
		if err := k.set(c, value); err != nil {
			return nil, fmt.Errorf("field config: key %s: %w", k.Name, err)
		}
	}
	return c, nil
}

// recordedPoint is what a folder holds of one point.
type recordedPoint struct {
	label   results.Label
	repeats [][]results.Request // a new one begins where an id comes again
	seen    map[int32]bool      // ids of the last repeat
}

// recorded reads the finished requests of a folder, by point, and counts them.
func recorded(folder *results.Folder) ([]*recordedPoint, int, error) {
	var points []*recordedPoint
	n := 0
	for rec, err := range folder.Records() {
		if err != nil {
			return nil, 0, err
		}
		n++
		i, ok := slices.BinarySearchFunc(points, rec.Label.Point, func(p *recordedPoint, at int) int { return p.label.Point - at })
		if !ok {
			points = slices.Insert(points, i, &recordedPoint{label: rec.Label})
		}
		points[i].add(rec.Request)
	}
	return points, n, nil
}

func (p *recordedPoint) add(q results.Request) {
	if p.seen == nil || p.seen[q.ID] {
		p.repeats = append(p.repeats, nil)
		p.seen = map[int32]bool{}
	}
	p.seen[q.ID] = true
	last := &p.repeats[len(p.repeats)-1]
	*last = append(*last, q)
}

// summarise is the point as far as its requests tell; nil where some of them had not ended.
func (p *recordedPoint) summarise(c *Config, m *results.Manifest) *done {
	want := c.Warmup
	for _, w := range m.Workloads {
		if w.Name == p.label.Workload {
			want += w.Count
		}
	}
	if len(p.repeats) < c.Repeat {
		return nil
	}
	base := results.Point{
		System: p.label.System, Algorithm: p.label.Algorithm, Workload: p.label.Workload, Pair: p.label.Pair,
		Concurrency: p.label.Concurrency, Source: sourceOf(c.Engine), Arrival: c.Arrival.String(), Latency: c.Latency,
	}
	slo, _ := metrics.ParseSLO(c.SLO) // setting the key has checked it
	var repeats []*done
	for _, requests := range p.repeats {
		if len(requests) != want {
			return nil
		}
		collector := metrics.NewCollector(metrics.Config{
			Percentiles: c.Percentiles, SLO: slo, Concurrency: p.label.Concurrency, Expect: len(requests)})
		var written quality
		for i := range requests {
			collector.Add(&requests[i])
			written.add(&requests[i])
		}
		d := &done{point: collector.Summarise(base), ttft: collector.TTFT()}
		written.point(&d.point)
		repeats = append(repeats, d)
	}
	return mean(repeats)
}
