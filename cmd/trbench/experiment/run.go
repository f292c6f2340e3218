package experiment

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/calibrate"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/metrics"
)

// RunOptions are what a run needs beside its plan.
type RunOptions struct {
	CommandLine []string
	Version     string
	// Progress is told how many requests have ended; calls may come from several goroutines. May be nil.
	Progress func(ended int)
	// Now is the wall clock, for the manifest.
	Now func() time.Time
}

// Result is a finished run.
type Result struct {
	Summary *results.Summary
	Folder  *results.Folder
	// TTFT has the times to first token of each point of Summary, ms.
	TTFT [][]float64
	// Interrupted: ctx ended before all points had run.
	Interrupted bool
	manifest    *results.Manifest
}

// ErrNoTokens is the kind of a run that committed no token.
var ErrNoTokens = errors.New("no output token was committed")

// Run runs the points of a plan and gathers the result. The folder is made before any work, and nothing that has ended
// is lost: after an interruption, or an error in one point, what was done is in the result too. Write it with Finish.
func (p *Plan) Run(ctx context.Context, o RunOptions) (*Result, error) {
	folder, err := results.Create(p.Folder(), p.Hash)
	if err != nil {
		return nil, usage(err)
	}
	r := &Result{Folder: folder, manifest: p.manifest(o)}
	if err := folder.Describe(r.manifest); err != nil {
		return nil, errors.Join(err, folder.Discard())
	}
	outcomes, err := p.runPoints(ctx, folder, o)
	if err != nil && !errors.Is(err, context.Canceled) {
		if !slices.ContainsFunc(outcomes, func(d *done) bool { return d != nil }) {
			return nil, errors.Join(err, folder.Discard())
		}
	}
	r.gather(p, outcomes)
	r.Interrupted = ctx.Err() != nil
	if r.Interrupted {
		r.warn(fmt.Sprintf("interrupted: %d of %d points are complete; requests.jsonl has the finished requests of the others too",
			len(r.Summary.Points), len(p.Points)))
		err = &Error{ExitInterrupted, errors.New("interrupted")}
	}
	return r, err
}

// runPoints runs every point, Workers at a time. An outcome is nil where its point was not completed.
func (p *Plan) runPoints(ctx context.Context, folder *results.Folder, o RunOptions) ([]*done, error) {
	outcomes := make([]*done, len(p.Points))
	workers := p.Config.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	run := p.simulate
	if p.Config.Engine != "sim" {
		run, workers = p.serve, 1 // points at once would measure each other
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, i := range p.order() {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			d, err := p.runPoint(gctx, &p.Points[i], folder, o, run)
			if err == nil {
				outcomes[i] = d
			}
			return err
		})
	}
	err := g.Wait()
	if err == nil {
		err = ctx.Err()
	}
	return outcomes, err
}

// order starts the longest points first, so that no core ends with one of them alone: few workers mean many steps.
func (p *Plan) order() []int {
	order := make([]int, len(p.Points))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareCost(&p.Points[b], &p.Points[a]) })
	return order
}

// runPoint runs one point under each of its seeds and reports the mean.
func (p *Plan) runPoint(ctx context.Context, pt *Point, folder *results.Folder, o RunOptions,
	run func(context.Context, *Point, uint64, *recorder) (*done, error)) (*done, error) {
	rec, err := newRecorder(p, pt, folder, o.Progress)
	if err != nil {
		return nil, err
	}
	var repeats []*done
	for k := range p.Config.Repeat {
		d, err := run(ctx, pt, p.Config.Seed+uint64(k), rec)
		if err != nil {
			return nil, errors.Join(err, rec.close())
		}
		repeats = append(repeats, d)
	}
	return mean(repeats), rec.close()
}

// gather makes the summary of the completed points.
func (r *Result) gather(p *Plan, outcomes []*done) {
	s := &results.Summary{Run: p.Hash, Clock: "virtual", Seed: p.Config.Seed}
	if p.Config.Engine != "sim" {
		s.Clock = "wall"
	}
	r.Summary = s
	for _, w := range p.Warnings {
		r.warn(w)
	}
	for _, d := range outcomes {
		if d == nil {
			continue
		}
		s.Points = append(s.Points, d.point)
		r.TTFT = append(r.TTFT, d.ttft)
		for _, w := range d.warnings {
			r.warn(w)
		}
	}
	for _, w := range metrics.Doubts(s.Points) {
		r.warn(w)
	}
	s.Comparisons = results.Comparisons(s.Points)
}

func (r *Result) warn(w string) {
	if !slices.Contains(r.Summary.Warnings, w) {
		r.Summary.Warnings = append(r.Summary.Warnings, w)
	}
}

// Finish writes the summary and gives the folder its name.
func (r *Result) Finish(o RunOptions) error {
	at := o.Now()
	r.manifest.FinishedAt = &at
	r.manifest.Interrupted = r.Interrupted
	r.manifest.Warnings = r.Summary.Warnings
	return r.Folder.Finish(r.manifest, r.Summary)
}

// Check is nil for a result that holds what was asked for: tokens, and no more failures than allowed.
func (r *Result) Check(p *Plan) error {
	failed, tokens := 0, int64(0)
	for i := range r.Summary.Points {
		failed += r.Summary.Points[i].Failed
		tokens += r.Summary.Points[i].OutputTokens
	}
	if failed > p.Config.MaxFail {
		first := ""
		for rec, err := range r.Folder.Records() {
			if err == nil && rec.Request.Error != "" {
				first = fmt.Sprintf("; the first: request %d of %s: %s", rec.Request.ID, rec.Label.Workload, rec.Request.Error)
				break
			}
		}
		return &Error{ExitNoTokens, fmt.Errorf("%d requests failed, %d allowed (--max-failed)%s", failed, p.Config.MaxFail, first)}
	}
	if tokens == 0 {
		return &Error{ExitNoTokens, ErrNoTokens}
	}
	return nil
}

// manifest describes the run.
func (p *Plan) manifest(o RunOptions) *results.Manifest {
	at := o.Now()
	m := &results.Manifest{
		Run: p.Hash, Version: o.Version, CommandLine: o.CommandLine, Config: p.ConfigJSON(), Seed: p.Config.Seed,
		Clock: "virtual", StartedAt: &at, Host: results.DescribeHost(),
	}
	if p.Config.Engine != "sim" {
		m.Clock = "wall"
	}
	m.Workloads = p.workloadRecords()
	m.Latency = p.LatencySources()
	return m
}

// workloadRecords describes the request lists.
func (p *Plan) workloadRecords() []results.WorkloadRecord {
	var records []results.WorkloadRecord
	for _, s := range p.Sets {
		w := results.WorkloadRecord{Name: s.Name, Dataset: results.Name(s.Source), Count: len(s.Requests), SHA256: s.SHA256, Notes: s.Notes}
		for _, k := range s.Skipped {
			w.Skips = append(w.Skips, results.Skip{Reason: k.Reason, Count: k.Count})
		}
		records = append(records, w)
	}
	return records
}

// LatencySources says of every model where its step times come from.
func (p *Plan) LatencySources() []string {
	lines := []string{p.Latency.Label()}
	for _, m := range p.Latency.Models {
		lines = append(lines, m.String())
	}
	if p.Contention > 0 {
		origin := "as given"
		if p.Config.Contention < 0 {
			origin = "fitted to one cell of the paper's ablation (eager, N = 4)"
		}
		lines = append(lines, fmt.Sprintf("contention %g while both models are busy on shared GPUs: %s", p.Contention, origin))
	}
	if p.Modulation.Name() != "none" {
		lines = append(lines, "modulation "+p.Modulation.Name()+": "+p.Modulation.Label())
	}
	return lines
}

// ConfigJSON is every key with its value, in the order of Keys.
func (p *Plan) ConfigJSON() json.RawMessage {
	buf := []byte{'{'}
	for i, k := range Keys() {
		if i > 0 {
			buf = append(buf, ',')
		}
		name, _ := json.Marshal(k.Name)
		value, _ := json.Marshal(k.Get(p.Config))
		buf = append(append(append(buf, name...), ':'), value...)
	}
	return append(buf, '}')
}

// recorder takes the requests of one point as they end.
type recorder struct {
	part  *results.Part
	trace *tracer
	steps *stepLog
	tick  func(int)
	tap   *tap       // nil: nobody listens
	mu    sync.Mutex // the engine ends requests on several goroutines
	err   error
}

func newRecorder(p *Plan, pt *Point, folder *results.Folder, tick func(int)) (*recorder, error) {
	part, err := folder.Part(&results.Label{
		Point: pt.Index, System: pt.System.Name, Algorithm: pt.Algorithm, Workload: pt.Set.Name, Pair: p.Pair.Name, Concurrency: pt.Concurrency,
	})
	if err != nil {
		return nil, err
	}
	r := &recorder{part: part, tick: tick}
	if p.Config.Trace {
		if r.trace, err = newTracer(folder.Dir(), p, pt); err != nil {
			return nil, errors.Join(err, part.Close())
		}
	}
	if p.Config.Steps {
		if r.steps, err = newStepLog(folder.Dir(), p, pt); err != nil {
			return nil, errors.Join(err, r.close())
		}
	}
	return r, nil
}

// ended writes one request.
func (r *recorder) ended(q *results.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tap != nil {
		r.tap.requests = append(r.tap.requests, *q)
	}
	if r.part == nil { // a sweep keeps no requests
		return
	}
	if err := r.part.Write(q); err != nil && r.err == nil {
		r.err = err
	}
	if r.tick != nil {
		r.tick(1)
	}
}

func (r *recorder) close() error {
	err := r.part.Close()
	if r.trace != nil {
		err = errors.Join(err, r.trace.close())
	}
	if r.steps != nil {
		err = errors.Join(err, r.steps.close())
	}
	return err
}

// stepped is what is told of each step: nil if nobody wants to know.
func (r *recorder) stepped() func(b *step.Batch, start, end clock.Instant) {
	if r.trace == nil && r.steps == nil && r.tap == nil {
		return nil
	}
	return func(b *step.Batch, start, end clock.Instant) {
		if r.tap != nil {
			r.tap.step(b, start, end)
		}
		if r.trace != nil {
			r.trace.step(b, start, end)
		}
		if r.steps != nil {
			r.steps.writer.Step(b, start, end)
		}
	}
}

// stepLog is the log of one point's steps, in the form that trbench calibrate reads.
type stepLog struct {
	file   *os.File
	out    *bufio.Writer
	writer *calibrate.StepWriter
}

func newStepLog(dir string, p *Plan, pt *Point) (*stepLog, error) {
	f, err := os.Create(filepath.Join(dir, fmt.Sprintf("steps.%03d.csv", pt.Index)))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range p.serving(pt) {
		names = append(names, c.Name)
	}
	out := bufio.NewWriterSize(f, 1<<16)
	return &stepLog{f, out, calibrate.NewStepWriter(out, names)}, nil
}

func (s *stepLog) close() error { return errors.Join(s.writer.Err(), s.out.Flush(), s.file.Close()) }
