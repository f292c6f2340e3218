package experiment

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/metrics"
	"github.com/trbench/trbench/workloads"
)

// SweepSpec is everything that decides a sweep, as it stands in sweep.json: what --resume reads.
type SweepSpec struct {
	Schema    string            `json:"schema"`
	Config    map[string]string `json:"config"` // every key, as text
	Axes      []Axis            `json:"axes"`
	Policies  []string          `json:"policies"` // of threshold, gate, timer: those set side by side; empty: as configured
	Objective string            `json:"objective"`
}

// SweepSchema names the version of sweep.json.
const SweepSchema = "trbench.sweep/1"

// Policies are the delayed-batching policies that a sweep sets side by side.
func Policies() []string { return []string{"threshold", "gate", "timer"} }

// decides lists the keys that an operator chooses; the others are what is given. The best point is sought over these,
// for each value of the others.
var decides = []string{
	"threshold", "threshold.strict", "batching", "max_batch", "token_budget", "algorithm", "algorithm.threshold", "algorithm.weights", "system",
	"deployment.gpus", "deployment.small_tp", "deployment.large_tp", "deployment.shared", "deployment.memory_share", "rpc.calls",
}

// shown are the axes that a point's own fields say.
var shown = []string{"threshold", "batching", "concurrency", "workload", "algorithm", "pair", "arrival", "latency", "system"}

// Sweep is a spec resolved into jobs; nothing has run.
type Sweep struct {
	Spec      SweepSpec
	Objective Objective
	Repeat    int
	Hash      string
	Jobs      []SweepJob
	Skipped   []string // combinations left out, and why
	Warnings  []string
	Workers   int // runs, and exact chains, at once; 0: one a core
	base      *Config
}

// SweepJob is one point of the sweep.
type SweepJob struct {
	Plan  *Plan
	Point *Point
	Axes  results.Axes // swept keys that the point does not say itself
	Group string       // the jobs to choose among: same value of everything that is given
	Delay Delay
}

// Delay is how long a job's batches wait: the x axis of the curves.
type Delay struct {
	Policy string  // threshold, gate or timer; "" where the sweep sets none side by side
	K      float64 // of threshold and gate; a timer's duration in steps of the small model
}

// NewSweep resolves a spec.
func NewSweep(ctx context.Context, spec SweepSpec) (*Sweep, error) {
	spec.Schema = SweepSchema
	s := &Sweep{Spec: spec, base: Defaults()}
	for _, k := range Keys() {
		if v, ok := spec.Config[k.Name]; ok {
			if err := s.base.Set(k.Name, v); err != nil {
				return nil, usage(err)
			}
		}
	}
	s.Repeat = s.base.Repeat
	var err error
	if s.Objective, err = ParseObjective(spec.Objective); err != nil {
		return nil, err
	}
	for _, q := range s.Objective.Percentiles() {
		if !slices.Contains(s.base.Percentiles, q) {
			s.base.Percentiles = append(s.base.Percentiles, q)
		}
	}
	slices.Sort(s.base.Percentiles)
	seen := map[string]bool{}
	for _, a := range spec.Axes {
		if seen[a.Key] {
			return nil, usagef("axis %s stands there twice", a.Key)
		}
		seen[a.Key] = true
	}
	if err := s.expand(ctx); err != nil {
		return nil, err
	}
	if len(s.Jobs) == 0 {
		return nil, usagef("nothing to sweep: every combination is left out; the first: %s", s.Skipped[0])
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	h.Write(text)
	for _, j := range s.Jobs {
		fmt.Fprintln(h, j.Plan.Hash, j.Point.Index)
	}
	s.Hash = hex.EncodeToString(h.Sum(nil))[:16]
	return s, nil
}

// expand makes the jobs: the axes' values in order, the last one fastest, and for each combination the policies.
func (s *Sweep) expand(ctx context.Context) error {
	sets := map[string]*workloads.Set{}
	n := 1
	for _, a := range s.Spec.Axes {
		n *= len(a.Values)
		if n > maxJobs {
			return usagef("the axes span more than %d combinations", maxJobs)
		}
	}
	for i := range n {
		values := make([]string, len(s.Spec.Axes))
		rest := i
		for k := len(values) - 1; k >= 0; k-- {
			v := s.Spec.Axes[k].Values
			values[k], rest = v[rest%len(v)], rest/len(v)
		}
		if err := s.combine(ctx, values, sets); err != nil {
			return err
		}
	}
	return nil
}

// maxJobs bounds the combinations of a sweep.
const maxJobs = 1_000_000

// combine makes the jobs of one combination of values.
func (s *Sweep) combine(ctx context.Context, values []string, sets map[string]*workloads.Set) error {
	policies := s.Spec.Policies
	if len(policies) == 0 {
		policies = []string{""}
	}
	for _, policy := range policies {
		c := *s.base
		for k, a := range s.Spec.Axes {
			if err := c.Set(a.Key, values[k]); err != nil {
				return usage(err)
			}
		}
		delay := Delay{Policy: policy}
		if policy != "" {
			ok, err := s.side(&c, &delay)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
		}
		p := &Plan{Config: &c, Name: "sweep", sets: sets}
		err := p.resolve(ctx)
		if errors.Is(err, core.ErrInfeasible) {
			s.skip(err.Error())
			continue
		}
		if err != nil {
			return err
		}
		for _, w := range p.Warnings {
			if !slices.Contains(s.Warnings, w) {
				s.Warnings = append(s.Warnings, w)
			}
		}
		for i := range p.Points {
			j := SweepJob{Plan: p, Point: &p.Points[i], Delay: delay}
			j.Axes, j.Group = s.place(p, j.Point, values)
			s.Jobs = append(s.Jobs, j)
		}
	}
	return nil
}

// side turns a threshold K into the same delay under another policy: gate:K, or a timer of K - 1 half steps of the small
// model. The eager point, K = 1, stands under threshold alone.
func (s *Sweep) side(c *Config, d *Delay) (ok bool, err error) {
	if c.Threshold == "eager" {
		c.Threshold = "1"
	}
	k, err := strconv.Atoi(c.Threshold)
	if err != nil {
		return false, usagef("policies %s side by side need thresholds that are whole numbers, not %q: name them with --axis threshold=1..16",
			strings.Join(s.Spec.Policies, ", "), c.Threshold)
	}
	d.K = float64(k)
	switch d.Policy {
	case "threshold":
		return true, nil
	case "gate":
		if !s.stays(c) {
			s.skip("gate: the large model's batches never go on, because it keeps no request after a token: a gate can't act")
			return false, nil
		}
		c.Threshold, c.Batching = "eager", fmt.Sprintf("gate:%d", k)
	case "timer":
		p := &Plan{Config: c}
		if err := errors.Join(p.models(), p.machine()); err != nil {
			return false, err
		}
		unit := p.Latency.New(0).StepTime(step.Shape{Decodes: 1, DecodeContext: 512, Longest: 512})
		d.K = float64(k-1) / 2
		c.Threshold, c.Batching = "eager", fmt.Sprintf("timer:%s", time.Duration(d.K*float64(unit)))
	default:
		return false, usagef("unknown policy %q (known: %s)", d.Policy, strings.Join(Policies(), ", "))
	}
	return k > 1, nil
}

// stays says that the large model may keep a request after a token, under some algorithm of c.
func (s *Sweep) stays(c *Config) bool {
	p := &Plan{Config: c}
	if p.models() != nil {
		return true // the error comes up again where it is reported
	}
	for _, name := range c.Algorithm {
		r, err := p.router(name)
		chained, ok := r.(route.Chained)
		if err != nil || !ok {
			return true
		}
		moves, _ := chained.Chain(p.rates())
		last := len(moves) - 1
		if moves[last][last] > 0 {
			return true
		}
	}
	return false
}

func (s *Sweep) skip(why string) {
	if !slices.Contains(s.Skipped, why) {
		s.Skipped = append(s.Skipped, why)
	}
}

// place says which axes a point carries, and which points it competes with.
func (s *Sweep) place(p *Plan, pt *Point, values []string) (results.Axes, string) {
	var axes results.Axes
	var group []string
	if n := len(s.base.Workload) + len(s.base.Data); n > 1 || slices.ContainsFunc(s.Spec.Axes, func(a Axis) bool { return a.Key == "workload" || a.Key == "data" }) {
		group = append(group, pt.Set.Name)
	}
	if pt.Concurrency > 0 {
		group = append(group, fmt.Sprintf("N = %d", pt.Concurrency))
	}
	for k, a := range s.Spec.Axes {
		if !slices.Contains(shown, a.Key) {
			axes = append(axes, results.Axis{Key: a.Key, Value: values[k]})
		}
		if !slices.Contains(decides, a.Key) && a.Key != "workload" && a.Key != "concurrency" {
			group = append(group, a.Key+" "+values[k])
		}
	}
	if len(group) == 0 {
		group = append(group, pt.Set.Name)
	}
	return axes, strings.Join(group, ", ")
}

// SweepPoint is what a job gave: its mean over repeats, and each repeat's objective.
type SweepPoint struct {
	Job     *SweepJob
	Point   results.Point
	Repeats []results.Point // paired: repeat k of every job runs under the same seed
}

// entry is one line of the journal.
type entry struct {
	Job    int           `json:"job"`
	Repeat int           `json:"repeat"`
	Point  results.Point `json:"point"`
	Warn   []string      `json:"warnings"`
}

// SweepOptions are what a sweep needs beside its spec.
type SweepOptions struct {
	Progress func(done int) // runs that have ended; may be nil
}

// Runs is how many runs the sweep makes at most.
func (s *Sweep) Runs() int { return len(s.Jobs) * s.Repeat }

// Run runs the jobs that the journal does not hold, and writes each into it as it ends. First every job runs once; then
// those that are not clearly dominated run again under further seeds.
func (s *Sweep) Run(ctx context.Context, j *Journal, o SweepOptions) ([]SweepPoint, error) {
	first := make([]int, len(s.Jobs))
	for i := range first {
		first[i] = i
	}
	slices.SortStableFunc(first, func(a, b int) int { return compareCost(s.Jobs[b].Point, s.Jobs[a].Point) })
	if err := s.round(ctx, j, first, 0, 1, o); err != nil {
		return nil, err
	}
	if s.Repeat > 1 {
		if err := s.round(ctx, j, s.contenders(j), 1, s.Repeat, o); err != nil {
			return nil, err
		}
	}
	return s.gather(j), nil
}

// compareCost orders points by how long they take to simulate.
func compareCost(a, b *Point) int {
	cost := func(pt *Point) float64 {
		_, output := pt.Set.Tokens()
		return float64(output) / float64(max(pt.Concurrency, 1))
	}
	switch x, y := cost(a), cost(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// round runs repeats from..to-1 of the given jobs.
func (s *Sweep) round(ctx context.Context, j *Journal, jobs []int, from, to int, o SweepOptions) error {
	workers := s.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	for _, i := range jobs {
		for k := from; k < to; k++ {
			if gctx.Err() != nil {
				break
			}
			if j.has(i, k) {
				if o.Progress != nil {
					o.Progress(1)
				}
				continue
			}
			g.Go(func() error {
				job := &s.Jobs[i]
				d, err := job.Plan.simulate(gctx, job.Point, job.Plan.Config.Seed+uint64(k), &recorder{})
				if err != nil {
					return err
				}
				d.point.Axes = job.Axes
				if o.Progress != nil {
					o.Progress(1)
				}
				return j.add(entry{Job: i, Repeat: k, Point: d.point, Warn: d.warnings})
			})
		}
	}
	err := g.Wait()
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// dominated is how much worse than the best of its group a point must be after one run to run no more.
const dominated = .1

// contenders are the jobs that may yet be the best of their group. It depends on the first round alone, not on the
// order in which it ran.
func (s *Sweep) contenders(j *Journal) []int {
	best := map[string]*results.Point{}
	for i := range s.Jobs {
		p := &j.at(i, 0).Point
		if b := best[s.Jobs[i].Group]; s.Objective.Meets(p) && (b == nil || s.Objective.Better(p, b)) {
			best[s.Jobs[i].Group] = p
		}
	}
	var keep []int
	for i := range s.Jobs {
		b := best[s.Jobs[i].Group]
		if b == nil || !s.far(&j.at(i, 0).Point, b) || s.Jobs[i].Delay == (Delay{"threshold", 1}) {
			keep = append(keep, i)
		}
	}
	return keep
}

// far says that p is clearly worse than b.
func (s *Sweep) far(p, b *results.Point) bool {
	x, y := Metric(p, s.Objective.Metric).Or(math.NaN()), Metric(b, s.Objective.Metric).Or(math.NaN())
	if s.Objective.Maximise {
		return x < y*(1-dominated)
	}
	return x > y*(1+dominated)
}

// gather makes the points, in the order of the jobs.
func (s *Sweep) gather(j *Journal) []SweepPoint {
	var out []SweepPoint
	for i := range s.Jobs {
		sp := SweepPoint{Job: &s.Jobs[i]}
		var repeats []*done
		for k := range s.Repeat {
			if e := j.at(i, k); e != nil {
				sp.Repeats = append(sp.Repeats, e.Point)
				repeats = append(repeats, &done{point: e.Point, warnings: e.Warn})
				for _, w := range e.Warn {
					if !slices.Contains(s.Warnings, w) {
						s.Warnings = append(s.Warnings, w)
					}
				}
			}
		}
		sp.Point = mean(repeats).point
		out = append(out, sp)
	}
	return out
}

// Summary is summary.json of the sweep.
func (s *Sweep) Summary(points []SweepPoint) *results.Summary {
	sum := &results.Summary{Run: s.Hash, Clock: "virtual", Seed: s.base.Seed, Warnings: slices.Clone(s.Warnings)}
	for _, p := range points {
		sum.Points = append(sum.Points, p.Point)
	}
	switch n := len(s.Skipped); n {
	case 0:
	case 1:
		sum.Warnings = append(sum.Warnings, "left out: "+s.Skipped[0])
	default:
		sum.Warnings = append(sum.Warnings, fmt.Sprintf("%d combinations left out (sweep.json lists them); the first: %s", n, s.Skipped[0]))
	}
	if early := s.early(points); early > 0 {
		sum.Warnings = append(sum.Warnings, fmt.Sprintf("%d of %d points ran once, not %d times: they are more than %g %% worse than the best of their group",
			early, len(points), s.Repeat, 100*dominated))
	}
	sum.Warnings = append(sum.Warnings, metrics.Doubts(sum.Points)...)
	sum.Comparisons = results.Comparisons(sum.Points)
	return sum
}

func (s *Sweep) early(points []SweepPoint) int {
	n := 0
	for _, p := range points {
		if len(p.Repeats) < s.Repeat {
			n++
		}
	}
	return n
}

// Journal keeps what has run, in a file that is appended to: a kill loses no run that has ended.
type Journal struct {
	mu   sync.Mutex
	file *os.File
	done map[[2]int]*entry
}

// OpenJournal opens or makes the journal at path. A torn last line, left by a kill, is cut off.
func OpenJournal(path string) (*Journal, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, usage(err)
	}
	j := &Journal{file: f, done: map[[2]int]*entry{}}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	whole := 0
	for line := 1; whole < len(data); line++ {
		n := slices.Index(data[whole:], '\n')
		if n < 0 {
			break
		}
		var e entry
		if err := json.Unmarshal(data[whole:whole+n], &e); err != nil {
			return nil, errors.Join(usagef("%s:%d: not a line of a journal: %w", path, line, err), f.Close())
		}
		j.done[[2]int{e.Job, e.Repeat}] = &e
		whole += n + 1
	}
	if err := f.Truncate(int64(whole)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.Seek(int64(whole), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return j, nil
}

// Len is how many runs it holds.
func (j *Journal) Len() int { return len(j.done) }

func (j *Journal) has(job, repeat int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.done[[2]int{job, repeat}] != nil
}

func (j *Journal) at(job, repeat int) *entry { return j.done[[2]int{job, repeat}] }

func (j *Journal) add(e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.done[[2]int{e.Job, e.Repeat}] = &e
	_, err = j.file.Write(append(line, '\n'))
	return err
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }
