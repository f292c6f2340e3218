package experiment

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/calibrate"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/fidelity"
	"github.com/trbench/trbench/results/metrics"
	"github.com/trbench/trbench/sim"
)

const (
	// FidelityRounds is how often a point is calibrated and measured, in turn, unless a caller says: what else runs on the
	// machine changes from one second to the next.
	FidelityRounds = 30
	// calibrationSeed tells the calibration's requests from those that are predicted.
	calibrationSeed = 0x63616c
)

// FidelityOptions are how EngineFidelity runs.
type FidelityOptions struct {
	Rounds   int    // 0 is FidelityRounds
	Dir      string // where the step logs go, steps.NNN.csv a point; "" keeps none
	Progress func() // is told of each run that has ended; may be nil
	// Pooled is told of all requests of a point, as they were and as they were predicted; may be nil.
	Pooled func(point string, real, predicted []fidelity.Sample)
}

// EngineFidelity runs each point of a plan for --engine cpu for real and sets the simulator's prediction beside it.
//
// A round of a point is two runs: one of other requests, whose step log the simulator is fitted to, and one of the
// plan's, which it predicts. The simulated requests are the measured ones: their prompts, and step by step what the
// models said of them, so that they meet the same routing draws and end where they ended. What is predicted is time.
func (p *Plan) EngineFidelity(ctx context.Context, o FidelityOptions) (*fidelity.Report, error) {
	switch {
	case p.local == nil:
		return nil, usagef("fidelity: engine %s: want cpu", p.Config.Engine)
	case o.Rounds < 0:
		return nil, usagef("fidelity: %d rounds: want at least 1", o.Rounds)
	case o.Rounds == 0:
		o.Rounds = FidelityRounds
	}
	other := *p.Config
	other.Seed += calibrationSeed
	c := &Plan{Config: &other, Name: "calibration", sets: p.sets, local: p.local}
	if err := c.resolve(ctx); err != nil {
		return nil, err
	}
	report := &fidelity.Report{}
	for i := range p.Points {
		t := &trial{plan: p, calibration: c, point: &p.Points[i], rounds: o.Rounds}
		if err := t.run(ctx, o); err != nil {
			return nil, fmt.Errorf("%s: %w", t.point, err)
		}
		run, err := t.compare(ctx, o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.point, err)
		}
		report.Runs = append(report.Runs, *run)
	}
	return report, nil
}

// trial is one point, measured and to be predicted.
type trial struct {
	plan, calibration *Plan
	point             *Point
	rounds            int

	log      *calibrate.StepLog // of the calibration runs, one after the other
	starts   []clock.Instant    // of each of them, on the log's clock
	woken    [][]wake           // in each of them
	measured []measured
}

// measured is one run of the plan's requests.
type measured struct {
	point results.Point
	tap   *tap
}

// run measures the rounds.
func (t *trial) run(ctx context.Context, o FidelityOptions) error {
	path := filepath.Join(o.Dir, fmt.Sprintf("steps.%03d.csv", t.point.Index))
	if o.Dir == "" {
		f, err := os.CreateTemp("", "trbench-steps-*.csv")
		if err != nil {
			return err
		}
		path = f.Name()
		defer os.Remove(path)
		if err := f.Close(); err != nil {
			return err
		}
	}
	f, err := os.Create(path)
	if err != nil {
		return usage(err)
	}
	out := bufio.NewWriterSize(f, 1<<16)
	var names []string
	for _, c := range t.plan.serving(t.point) {
		names = append(names, c.Name)
	}
	writer := calibrate.NewStepWriter(out, names)
	var since clock.Instant
	err = func() error {
		for round := range t.rounds {
			fit := &tap{log: writer, since: since}
			t.starts = append(t.starts, since)
			seed := t.calibration.Config.Seed + uint64(round)
			if _, err := t.calibration.serve(ctx, &t.calibration.Points[t.point.Index], seed, &recorder{tap: fit}); err != nil {
				return err
			}
			since = since.Add(time.Duration(fit.last) + time.Second) // apart, so that no step follows on one of another run
			t.woken = append(t.woken, fit.woken)
			o.tick()
			real := &tap{}
			d, err := t.plan.serve(ctx, t.point, t.plan.Config.Seed, &recorder{tap: real})
			if err != nil {
				return err
			}
			if err := finished(real.requests); err != nil {
				return err
			}
			slices.SortFunc(real.requests, func(a, b results.Request) int { return cmp.Compare(a.ID, b.ID) })
			t.measured = append(t.measured, measured{d.point, real})
			o.tick()
		}
		return nil
	}()
	if err = errors.Join(err, writer.Err(), out.Flush(), f.Close()); err != nil {
		return err
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	t.log, err = calibrate.ReadSteps(path, in)
	return err
}

func (o *FidelityOptions) tick() {
	if o.Progress != nil {
		o.Progress()
	}
}

// finished fails unless every request got its answer: what was refused says nothing of the simulator.
func finished(requests []results.Request) error {
	for i := range requests {
		if q := &requests[i]; q.Status != results.Finished {
			return usagef("request %d %s: %s", q.ID, q.Status, q.Error)
		}
	}
	return nil
}

// compare fits the simulator to the log, predicts each measured run, and pools the rounds.
func (t *trial) compare(ctx context.Context, o FidelityOptions) (*fidelity.Run, error) {
	kappa, beside := calibrate.FitContention(t.log)
	fit, err := calibrate.FitSteps(ctx, t.log, calibrate.Options{Contention: kappa})
	if err != nil {
		return nil, err
	}
	replay, err := t.replay(fit, kappa)
	if err != nil {
		return nil, err
	}
	fitted, err := t.fitted(fit)
	if err != nil {
		return nil, err
	}
	all, err := t.predict(ctx, replay, kappa, true)
	if err != nil {
		return nil, err
	}
	if o.Pooled != nil {
		o.Pooled(t.name(), all.real, all.predicted)
	}
	cards := t.plan.serving(t.point)
	wakes, each := t.wakes()
	run := &fidelity.Run{
		Name: t.name(), Figures: all.figures(), Requests: t.rounds * len(t.point.Set.Requests),
		Real: fmt.Sprintf("measured: %s and %s on this CPU (%s, %d cores), %d runs", cards[0].Name, cards[len(cards)-1].Name,
			results.DescribeHost().CPU, results.DescribeHost().Cores, t.rounds),
		Predicted: fmt.Sprintf("simulated: steps replayed from a log of other requests (%d steps), contention %.2f, %d wake-ups, %s on average",
			len(t.log.Steps), kappa, wakes, each.Round(100*time.Nanosecond)),
		Warnings: t.doubts(beside),
	}
	for _, a := range []struct {
		without string
		machine machine
		wakes   bool
	}{
		{"step log (law instead)", fitted, true},
		{"wake-ups of schedulers", replay, false},
	} {
		f, err := t.predict(ctx, a.machine, kappa, a.wakes)
		if err != nil {
			return nil, err
		}
		run.Ablations = append(run.Ablations, fidelity.Ablation{Without: a.without, Figures: f.figures()})
	}
	return run, nil
}

func (t *trial) name() string {
	name := t.point.System.Name
	if t.point.Algorithm != "" {
		name = t.point.Algorithm
	}
	return fmt.Sprintf("%s, N = %d", name, t.point.Concurrency)
}

// pooled are the requests of all rounds, as they were and as they were predicted, and the mean throughputs.
type pooled struct {
	real, predicted         []fidelity.Sample
	realTokS, predictedTokS float64
}

func (p *pooled) figures() fidelity.Figures {
	return fidelity.Compare(p.real, p.predicted, results.F(p.realTokS), results.F(p.predictedTokS))
}

// predict simulates each measured run, with the wake-ups of sleeping schedulers or without.
func (t *trial) predict(ctx context.Context, m machine, kappa float64, wakes bool) (*pooled, error) {
	p := &pooled{}
	for round := range t.measured {
		r := &t.measured[round]
		var wake func(step.ModelID, bool) time.Duration
		if wakes {
			wake = t.waker(round)
		}
		requests, tokS, err := t.simulate(ctx, r, m(round), kappa, wake)
		if err != nil {
			return nil, err
		}
		for i := range r.tap.requests {
			if q := &r.tap.requests[i]; !q.Warmup {
				p.real, p.predicted = append(p.real, sample(q)), append(p.predicted, sample(&requests[i]))
			}
		}
		p.realTokS += r.point.OutputTokS.Or(math.NaN()) / float64(t.rounds)
		p.predictedTokS += tokS.Or(math.NaN()) / float64(t.rounds)
	}
	return p, nil
}

// simulate runs the requests of a measured run in the simulator.
func (t *trial) simulate(ctx context.Context, r *measured, steps []latency.Model, kappa float64, wake func(step.ModelID, bool) time.Duration) ([]results.Request, results.Float, error) {
	p := t.plan
	said := r.tap.said.Replay()
	c := &sim.Config{
		Topology: t.point.System.Topology, Warmup: len(t.point.Set.Warmup), Clients: t.point.Concurrency, Contention: kappa,
		Wake: wake, Signal: said, Collect: metrics.Config{Concurrency: t.point.Concurrency, Expect: len(r.tap.requests)},
	}
	all := slices.Concat(t.point.Set.Warmup, t.point.Set.Requests)
	for i := range r.tap.requests { // in the order of ids: the list's
		c.Requests = append(c.Requests, sim.Request{Prompt: r.tap.requests[i].PromptTokens, Output: int32(all[i].Output)})
	}
	for m, card := range p.serving(t.point) {
		c.Models = append(c.Models, sim.Model{Name: card.Name, Latency: steps[m], Policy: p.policy(t.point, m), KVTokens: p.KVTokens})
	}
	var err error
	if t.point.System.Routed() {
		if c.Router, err = p.router(t.point.Algorithm); err != nil {
			return nil, results.Float{}, err
		}
	}
	var requests []results.Request
	c.Ended = func(q *results.Request) { requests = append(requests, *q) }
	o, err := sim.Run(ctx, c)
	if err != nil {
		return nil, results.Float{}, err
	}
	if n := said.Strayed(); n > 0 {
		return nil, results.Float{}, fmt.Errorf("the simulation asked for %d steps that the engine did not run", n)
	}
	slices.SortFunc(requests, func(a, b results.Request) int { return cmp.Compare(a.ID, b.ID) })
	for i := range requests {
		if got, want := requests[i].OutputTokens, r.tap.requests[i].OutputTokens; got != want {
			return nil, results.Float{}, fmt.Errorf("request %d has %d tokens in the simulation and had %d on the engine", i, got, want)
		}
	}
	return requests, o.Summarise(results.Point{}).OutputTokS, nil
}

// sample are a request's latencies.
func sample(q *results.Request) (s fidelity.Sample) {
	ms := func(d time.Duration, ok bool) results.Float {
		if !ok {
			return results.Float{}
		}
		return results.F(results.Millis(d))
	}
	s.TTFT, s.E2E = ms(q.TTFT()), ms(q.E2E())
	if x, ok := q.TPOT(); ok {
		s.TPOT = results.F(x)
	}
	return s
}

// doubts says how far the measured runs, of the same requests, lie apart: a prediction can't be nearer than that.
func (t *trial) doubts(beside bool) []string {
	spread := func(of func(*results.Point) results.Float) string {
		var values []float64
		for i := range t.measured {
			values = append(values, of(&t.measured[i].point).Or(math.NaN()))
		}
		mean, off := metrics.Mean(values), 0.0
		for _, v := range values {
			off += (v - mean) * (v - mean)
		}
		return fmt.Sprintf("%.1f %%", 100*math.Sqrt(off/float64(len(values)-1))/mean)
	}
	var doubts []string
	if t.rounds > 1 {
		doubts = append(doubts, fmt.Sprintf("the %d measured runs differ: standard deviation of tok/s %s, of P50 TPOT %s, of P99 TPOT %s", t.rounds,
			spread(func(p *results.Point) results.Float { return p.OutputTokS }),
			spread(func(p *results.Point) results.Float { return p.TPOT.Percentile(50) }),
			spread(func(p *results.Point) results.Float { return p.TPOT.Percentile(99) })))
	}
	if !beside {
		doubts = append(doubts, "steps of both models hardly overlap: contention is not told, and taken as 0")
	}
	return doubts
}
