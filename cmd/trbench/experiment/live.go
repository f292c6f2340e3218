package experiment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/backend/fake"
	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/results/metrics"
	"github.com/trbench/trbench/sim"
	"github.com/trbench/trbench/workloads"
)

// serve runs one point on the engine, on the wall clock, over the fake backend: real loops, real timers, and steps that
// sleep as long as the latency model says.
func (p *Plan) serve(ctx context.Context, pt *Point, seed uint64, rec *recorder) (*done, error) {
	begin := time.Now()
	now := func() clock.Instant { return clock.Instant(time.Since(begin)) }
	cfg, err := p.engineConfig(pt, seed, now)
	if err != nil {
		return nil, usage(err)
	}
	l := &load{
		plan: p, point: pt, rec: rec, now: now, seed: seed,
		collect: metrics.NewCollector(metrics.Config{
			Percentiles: p.Config.Percentiles, SLO: p.SLO, Concurrency: pt.Concurrency, Expect: len(pt.Set.Requests),
		}),
	}
	if rec.tap != nil {
		rec.tap.listen(cfg)
	}
	cfg.Switched, cfg.Stepped = l.switched, l.stepped(rec.stepped())
	e, err := engine.New(*cfg)
	if err != nil {
		return nil, usage(err)
	}
	l.engine = e
	err = l.run(ctx, seed)
	if rec.err != nil {
		err = rec.err
	}
	if err = errors.Join(err, e.Close()); err != nil {
		return nil, err
	}
	d := &done{point: l.collect.Summarise(p.base(pt)), ttft: l.collect.TTFT()}
	p.bill(pt, &d.point)
	for _, s := range e.Stats() {
		d.tokens += s.Rows
		d.point.BatchMean = append(d.point.BatchMean, results.Ratio(results.F(float64(s.Rows)), results.F(float64(s.Steps))))
		d.point.Preempted += s.Preempted
		d.point.KVDropped += s.Dropped
	}
	return d, nil
}

// engineConfig sets up the engine of one point, with its backends.
func (p *Plan) engineConfig(pt *Point, seed uint64, now func() clock.Instant) (*engine.Config, error) {
	if p.local != nil {
		return p.localEngine(pt, seed, now)
	}
	machine, cfg, err := p.fakeEngine(pt, seed, now)
	if err != nil {
		return nil, err
	}
	for i := range cfg.Models {
		cfg.Models[i].Backend = machine.Backend(step.ModelID(i))
	}
	return cfg, nil
}

// fakeEngine sets up the engine and the machine that it pretends to run on.
func (p *Plan) fakeEngine(pt *Point, seed uint64, now func() clock.Instant) (*fake.Machine, *engine.Config, error) {
	cfg := &engine.Config{Now: now, StepSync: pt.System.Topology == sim.StepSync}
	fc := fake.Config{Now: now, Rows: max(p.Config.MaxBatch, core.DefaultMaxBatch)}
	add := func(i, kv int) {
		fc.Latency = append(fc.Latency, p.stepTimes(i, seed))
		cfg.Models = append(cfg.Models, engine.Model{Name: p.Pair.Models[i].Name, Policy: p.policy(pt, i), KVTokens: kv})
	}
	if !pt.System.Routed() {
		i, kv, err := p.single(pt.System)
		if err != nil {
			return nil, nil, err
		}
		add(i, kv)
		return fake.New(fc), cfg, nil
	}
	for i := range p.Pair.Models {
		add(i, p.KVTokens)
	}
	fc.Contention, fc.Overhead = p.Contention, micros(p.Config.RouterUS)
	var err error
	cfg.Router, fc.Signal, err = p.routed(pt.Algorithm, seed)
	return fake.New(fc), cfg, err
}

// load is the clients of one point: it issues the requests and measures them where a client would.
type load struct {
	plan   *Plan
	point  *Point
	engine *engine.Engine
	rec    *recorder
	now    func() clock.Instant
	seed   uint64

	mu      sync.Mutex // guards collect and next
	collect *metrics.Collector
	next    int
}

// warm says that a request is of the warm-up.
func (l *load) warm(id step.RequestID) bool { return int(id) < len(l.point.Set.Warmup) }

// switched records what a change of model cost until the peer's scheduler had the request.
func (l *load) switched(h engine.Handover) {
	if l.rec.tap != nil {
		l.rec.tap.handover(h)
	}
	if l.warm(h.ID) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.collect.Switch(metrics.Enqueue, h.Enqueue)
	l.collect.Switch(metrics.Transport, h.Transport)
}

// stepped records what the rows of a step that came from a peer paid for the switch, and passes the step on.
func (l *load) stepped(on func(b *step.Batch, start, end clock.Instant)) func(b *step.Batch, start, end clock.Instant) {
	return func(b *step.Batch, start, end clock.Instant) {
		if on != nil {
			on(b, start, end)
		}
		for i, t := range b.Since {
			if t == step.Fresh || l.warm(b.ID[i]) {
				continue
			}
			l.mu.Lock()
			l.collect.Switch(metrics.Wait, start.Sub(t))
			l.collect.Switch(metrics.Extend, end.Sub(start))
			l.mu.Unlock()
		}
	}
}

// request is the next of the list; warm-up requests come first.
func (l *load) request() (id int, r workloads.Request, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	warm, measured := l.point.Set.Warmup, l.point.Set.Requests
	id = l.next
	if id >= len(warm)+len(measured) {
		return 0, r, false
	}
	l.next++
	if id < len(warm) {
		return id, warm[id], true
	}
	return id, measured[id-len(warm)], true
}

// run issues every request: N workers in a closed loop, or at the scheduled arrivals.
func (l *load) run(ctx context.Context, seed uint64) error {
	var clients sync.WaitGroup
	errs := make(chan error, 1)
	fail := func(err error) {
		select {
		case errs <- err:
		default:
		}
	}
	arrivals := l.plan.Config.Arrival
	if arrivals.Closed() {
		for range l.point.Concurrency {
			clients.Go(func() {
				for ctx.Err() == nil {
					id, r, ok := l.request()
					if !ok {
						return
					}
					if err := l.one(ctx, id, r, l.now()); err != nil {
						fail(err)
						return
					}
				}
			})
		}
	} else {
		n := len(l.point.Set.Warmup) + len(l.point.Set.Requests)
		at, err := arrivals.Times(n, seed, l.point.Set.Arrivals())
		if err != nil {
			return usage(err)
		}
		for _, t := range at {
			select {
			case <-time.After(t.Sub(l.now())):
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				break
			}
			id, r, _ := l.request()
			clients.Go(func() {
				if err := l.one(ctx, id, r, t); err != nil {
					fail(err)
				}
			})
		}
	}
	clients.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return ctx.Err()
	}
}

// one issues a request and follows its stream to the end.
func (l *load) one(ctx context.Context, id int, r workloads.Request, scheduled clock.Instant) error {
	q := &results.Request{ID: int32(id), Arrival: scheduled, Sent: l.now(), PromptTokens: int32(r.Prompt), Warmup: id < len(l.point.Set.Warmup)}
	req := engine.Request{ID: step.RequestID(id), Prompt: r.Prompt, Max: r.Output}
	var text []int32
	if local := l.plan.local; local != nil {
		var err error
		if req.Tokens, err = local.ids(r, id, l.seed, l.plan.Config.Chat); err != nil {
			return err
		}
		req.Prompt = len(req.Tokens)
		q.PromptTokens = int32(req.Prompt)
		if n, most := req.Prompt+req.Max, local.positions(); n > most {
			q.Status, q.Error = results.Rejected, fmt.Sprintf("prompt %d + output %d = %d tokens exceed the model's %d positions", req.Prompt, req.Max, n, most)
			l.ended(q)
			return nil
		}
	}
	s, err := l.engine.Submit(ctx, req)
	switch {
	case errors.Is(err, core.ErrTooLong), errors.Is(err, engine.ErrOverloaded):
		q.Status, q.Error = results.Rejected, err.Error()
		l.ended(q)
		return nil
	case err != nil:
		return err
	}
	for {
		c, ok := s.Next(ctx)
		if !ok {
			break
		}
		l.took(q, c)
		text = append(text, c.IDs...)
	}
	if l.plan.local != nil && l.plan.local.stops {
		q.Text = l.plan.local.Tokenizer.Decode(text)
	}
	q.Hops = int32(s.Hops())
	switch err := s.Err(); {
	case ctx.Err() != nil || errors.Is(err, engine.ErrCancelled):
		q.Status = results.Cancelled
	case err != nil:
		q.Status, q.Error = results.Failed, err.Error()
	}
	l.ended(q)
	return nil
}

// took records a chunk.
func (l *load) took(q *results.Request, c engine.Chunk) {
	if c.Model > 0 || l.point.System.AllLarge() {
		q.LargeTokens += int32(c.Own)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if q.OutputTokens == 0 {
		q.First = c.At
		if !q.Warmup {
			l.collect.CommitFirst(c.Tokens)
		}
	} else {
		gap := c.At.Sub(q.Last)
		q.MaxITL = max(q.MaxITL, gap)
		if !q.Warmup {
			l.collect.Commit(gap, c.Tokens)
		}
	}
	q.OutputTokens += int32(c.Tokens)
	q.Last = c.At
}

func (l *load) ended(q *results.Request) {
	l.mu.Lock()
	l.collect.Add(q)
	l.mu.Unlock()
	l.rec.ended(q)
}
