package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/sim/markov"
)

// SweepReport is a finished sweep: what sweep.json holds, with the summary, the points and the table beside it.
type SweepReport struct {
	SweepSpec
	Run            string    `json:"run"`
	Metric         string    `json:"metric"`
	Pair           string    `json:"pair"`
	Latency        string    `json:"latency"`
	Repeat         int       `json:"repeat"`
	Verdicts       []Verdict `json:"verdicts"`
	Recommendation string    `json:"recommendation"`
	Skipped        []string  `json:"skipped"`

	Summary *results.Summary `json:"-"`
	Points  []SweepPoint     `json:"-"`
	Table   *markov.Table    `json:"-"`
}

// Report judges the points and computes what the exact chain says of the same groups.
func (s *Sweep) Report(ctx context.Context, points []SweepPoint) (*SweepReport, error) {
	r := &SweepReport{
		SweepSpec: s.Spec, Run: s.Hash, Metric: s.Objective.Metric, Repeat: s.Repeat, Skipped: s.Skipped,
		Pair: s.Jobs[0].Plan.Pair.Name, Latency: s.Jobs[0].Plan.Latency.Name, Points: points,
	}
	r.Verdicts = s.Verdicts(points)
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if !s.comparesThresholds(v) {
			continue
		}
		exact, why := s.exactCurve(ctx, v)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if why != "" && !slices.Contains(s.Warnings, why) {
			s.Warnings = append(s.Warnings, why)
		}
		v.Exact = exact
	}
	r.Recommendation = s.Recommendation(r.Verdicts)
	r.Summary = s.Summary(points)
	r.Table = s.table(r.Verdicts)
	return r, nil
}

// comparesThresholds says that a group holds points that differ in their threshold.
func (s *Sweep) comparesThresholds(v *Verdict) bool {
	first := fmt.Sprint(v.members[0].Point.Threshold)
	return slices.ContainsFunc(v.members, func(m *SweepPoint) bool {
		return m.Point.Threshold != nil && fmt.Sprint(m.Point.Threshold) != first
	})
}

// table is the table of the best thresholds that the sweep found, in the form that run loads; nil where there is none.
func (s *Sweep) table(verdicts []Verdict) *markov.Table {
	if !slices.ContainsFunc(verdicts, func(v Verdict) bool { return s.comparesThresholds(&v) }) {
		return nil
	}
	rows := s.Thresholds(verdicts)
	if rows == nil {
		return nil
	}
	p := s.Jobs[0].Plan
	m, err := p.chain(s.Jobs[0].Point.Algorithm, s.Jobs[0].Point.Set, len(rows))
	if err != nil {
		return nil
	}
	t := &markov.Table{
		Provenance: fmt.Sprintf("simulated: trbench sweep %s; rows between the concurrencies that ran repeat the next lower one, and have 0 tok/s", s.Hash),
		Routing:    m.Routing, Quantum: time.Microsecond,
	}
	for i, c := range p.Pair.Models {
		t.Models = append(t.Models, markov.TableModel{Name: c.Name, Step: m.Step[i]})
	}
	byN := map[int]*Verdict{}
	for i := range verdicts {
		byN[verdicts[i].Concurrency] = &verdicts[i]
	}
	for n, row := range rows {
		eager, best := 0., 0.
		if v := byN[n+1]; v != nil && v.Eager != nil {
			eager, best = v.Eager.Point.OutputTokS.Or(0), s.thresholdPoint(v).Point.OutputTokS.Or(0)
		}
		t.Rows = append(t.Rows, markov.TableRow{Threshold: row, Eager: eager, Best: best})
	}
	return t
}

// Manifest is run.json of the sweep.
func (s *Sweep) Manifest(version string, commandLine []string) *results.Manifest {
	config, err := json.Marshal(s.Spec)
	if err != nil {
		config = nil // a spec is strings: it always marshals
	}
	p := s.Jobs[0].Plan
	m := &results.Manifest{
		Run: s.Hash, Version: version, CommandLine: commandLine, Config: config, Seed: s.base.Seed, Clock: "virtual", Host: results.DescribeHost(),
		Latency: p.LatencySources(), Warnings: s.Warnings,
	}
	m.Workloads = p.workloadRecords()
	return m
}
