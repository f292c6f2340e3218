package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/backend/fake"
	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/sim"
)

// turnstile lets decode loops decide one after another, lowest model first, and only when every goroutine has taken in
// what this Instant brought: the simulator's order within an Instant.
type turnstile struct {
	asks   chan int
	grants []chan struct{}
	done   chan struct{}
}

func newTurnstile(models int) *turnstile {
	t := &turnstile{asks: make(chan int, models), done: make(chan struct{})}
	for range models {
		t.grants = append(t.grants, make(chan struct{}))
	}
	return t
}

func (t *turnstile) settle(i int) {
	select {
	case t.asks <- i:
	case <-t.done:
		return
	}
	select {
	case <-t.grants[i]:
	case <-t.done:
	}
}

func (t *turnstile) run() {
	waiting := make([]bool, len(t.grants))
	for {
		synctest.Wait()
		for len(t.asks) > 0 {
			waiting[<-t.asks] = true
		}
		i := slices.Index(waiting, true)
		if i < 0 {
			select {
			case i := <-t.asks:
				waiting[i] = true
			case <-t.done:
				return
			}
			continue
		}
		waiting[i] = false
		select {
		case t.grants[i] <- struct{}{}:
		case <-t.done:
			return
		}
	}
}

// twin is one configuration that both drivers run.
type twin struct {
	name      string
	algorithm string
	rates     []float64
	latency   func() []latency.Model
	requests  []sim.Request
	arrivals  []clock.Instant
	clients   int
	policy    func(i int) core.Policy
	kvTokens  int
	kappa     float64
	stepSync  bool
	bursty    float64
	router    time.Duration
	program   bool
}

func (w *twin) signal(t *testing.T) (route.Router, signal.Source) {
	models := len(w.latency())
	r, err := route.New(w.algorithm, route.Options{Models: models, Program: w.program})
	if err != nil {
		t.Fatal(err)
	}
	var rules []signal.Rule
	for i := range models {
		rules = append(rules, r.(route.Ruled).Rule(step.ModelID(i)))
	}
	s, err := signal.New(signal.Config{Seed: 5, Rules: rules, Rates: w.rates, Correlation: w.bursty})
	if err != nil {
		t.Fatal(err)
	}
	return r, s
}

func (w *twin) simulate(t *testing.T) []string {
	log := &core.EventLog{}
	c := &sim.Config{Requests: w.requests, Arrivals: w.arrivals, Clients: w.clients, Contention: w.kappa, RouterCost: w.router, Log: log, Check: true}
	if w.stepSync {
		c.Topology = sim.StepSync
	}
	c.Router, c.Signal = w.signal(t)
	for i, l := range w.latency() {
		c.Models = append(c.Models, sim.Model{Name: fmt.Sprint(i), Latency: l, Policy: w.policy(i), KVTokens: w.kvTokens})
	}
	if _, err := sim.Run(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	return log.Lines
}

// serve runs the engine inside a synctest bubble. It must not call t's fatal methods from other goroutines.
func (w *twin) serve(t *testing.T) []string {
	log := &core.EventLog{}
	router, source := w.signal(t)
	begin := time.Now()
	now := func() clock.Instant { return clock.Instant(time.Since(begin)) }
	machine := fake.New(fake.Config{Latency: w.latency(), Signal: source, Contention: w.kappa, Overhead: w.router, Rows: 256, Now: now})
	turns := newTurnstile(len(w.latency()))
	go turns.run()
	c := engine.Config{Router: router, StepSync: w.stepSync, Now: now, Log: log, Settle: turns.settle, Admit: machine.Admit}
	for i := range w.latency() {
		c.Models = append(c.Models, engine.Model{
			Name: fmt.Sprint(i), Backend: machine.Backend(step.ModelID(i)), Policy: w.policy(i), KVTokens: w.kvTokens,
		})
	}
	e, err := engine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	submit := func(id int) *engine.Stream {
		r := w.requests[id]
		s, err := e.Submit(ctx, engine.Request{ID: step.RequestID(id), Prompt: int(r.Prompt), Max: int(r.Output)})
		if err != nil {
			t.Error(err)
		}
		return s
	}
	drain := func(s *engine.Stream) {
		for ok := s != nil; ok; {
			_, ok = s.Next(ctx)
		}
		if s != nil && s.Err() != nil {
			t.Error(s.Err())
		}
	}
	var clients sync.WaitGroup
	if w.arrivals != nil {
		for id, at := range w.arrivals {
			time.Sleep(at.Sub(now()))
			s := submit(id)
			clients.Go(func() { drain(s) })
		}
	} else {
		var next atomic.Int64
		for range w.clients {
			clients.Go(func() {
				for {
					id := int(next.Add(1)) - 1
					if id >= len(w.requests) {
						return
					}
					drain(submit(id))
				}
			})
		}
	}
	clients.Wait()
	time.Sleep(time.Millisecond) // the last peers let go
	if err := e.Idle(); err != nil {
		t.Error(err)
	}
	close(turns.done)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	return log.Lines
}

// byInstant sorts the lines of one Instant: which of two things that happen at once is logged first says nothing.
func byInstant(lines []string) []string {
	stamp := func(l string) string { return l[:strings.IndexByte(l, ' ')] }
	for i := 0; i < len(lines); {
		j := i + 1
		for j < len(lines) && stamp(lines[j]) == stamp(lines[i]) {
			j++
		}
		slices.Sort(lines[i:j])
		i = j
	}
	return lines
}

func constants(d ...time.Duration) func() []latency.Model {
	return func() []latency.Model {
		var m []latency.Model
		for _, x := range d {
			m = append(m, latency.Constant(x))
		}
		return m
	}
}

func measured(t *testing.T) func() []latency.Model {
	return func() []latency.Model {
		var m []latency.Model
		for _, k := range []struct {
			name string
			tp   int
		}{{"llama3-8b", 1}, {"llama3-70b", 4}} {
			p, err := latency.Lookup("a100", k.name, k.tp)
			if err != nil {
				t.Fatal(err)
			}
			m = append(m, latency.WithHost(p.New(), latency.DefaultHost(len(m))))
		}
		return m
	}
}

// The simulator and the engine make the same decisions at the same instants, ties included: their event logs agree line
// by line.
func TestTwinClocks(t *testing.T) {
	lengths := make([]sim.Request, 60)
	for i := range lengths {
		lengths[i] = sim.Request{Prompt: int32(20 + 37*i%400), Output: int32(5 + 13*i%60)}
	}
	var arrivals []clock.Instant
	for i := range lengths {
		arrivals = append(arrivals, clock.Instant(i)*clock.Instant(97*time.Millisecond))
	}
	eager := func(int) core.Policy { return core.Policy{} }
	table := core.Table{{1, 4}}.Lowered()
	batched := func(i int) core.Policy { return core.Policy{Threshold: table.Column(i)} }
	everybody := core.Table{{1, 8}}.Lowered()
	for _, w := range []twin{
		{name: "ties", algorithm: "r2r", rates: []float64{.35, 0}, latency: constants(6e6, 6e6), clients: 4, policy: eager},
		{name: "threshold", algorithm: "r2r", rates: []float64{.35, 0}, latency: constants(6e6, 279e5), clients: 8, policy: batched},
		{name: "router cost", algorithm: "citer", rates: []float64{.2, 0}, latency: constants(6e6, 279e5), clients: 8, policy: batched, router: 75e3},
		{name: "timer", algorithm: "r2r", rates: []float64{.35, 0}, latency: constants(6e6, 279e5), clients: 8,
			policy: func(i int) core.Policy {
				return core.Policy{Threshold: everybody.Column(i), Timer: time.Duration(i) * 9 * time.Millisecond}
			}},
		{name: "gate", algorithm: "r-stitch", rates: []float64{.2, .8}, latency: constants(6e6, 279e5), clients: 8,
			policy: func(i int) core.Policy { return core.Policy{Gate: 3 * i} }},
		{name: "three models", algorithm: "me", rates: []float64{0, 0, 0}, latency: constants(6e6, 12e6, 24e6), clients: 6, policy: eager},
		{name: "step-sync", algorithm: "r2r", rates: []float64{.35, 0}, latency: constants(6e6, 279e5), clients: 4, policy: eager, stepSync: true},
		{name: "contention", algorithm: "r2r", rates: []float64{.3, 0}, latency: constants(6e6, 279e5), clients: 8, policy: batched, kappa: .47},
		{name: "measured, open loop", algorithm: "r2r", rates: []float64{.1, 0}, latency: measured(t), arrivals: arrivals, policy: batched, kappa: .47},
		{name: "measured, bursty", algorithm: "co-llm", rates: []float64{.1, 0}, latency: measured(t), clients: 8, policy: eager, bursty: .4},
		{name: "program", algorithm: "r2r", program: true, rates: []float64{.35, 0}, latency: constants(6e6, 6e6), clients: 4, policy: eager},
		{name: "speculative decoding", algorithm: "specdec", rates: []float64{0, 0}, latency: measured(t), clients: 8, policy: batched, kappa: .47},
		{name: "rollback", algorithm: "bild", rates: []float64{.2, .1}, latency: measured(t), clients: 8, policy: eager},
		{name: "cascade of three", algorithm: "cascade", rates: []float64{.4, .4, 0}, latency: constants(6e6, 12e6, 24e6), clients: 6, policy: eager},
		{name: "reasoning steps", algorithm: "specreason", rates: []float64{0, .3}, latency: measured(t), arrivals: arrivals, policy: eager},
		{name: "whole answers", algorithm: "automix", rates: []float64{.3, 0}, latency: measured(t), clients: 8, policy: eager},
		{name: "by query", algorithm: "query", rates: []float64{.3, 0}, latency: measured(t), clients: 8, policy: batched},
		{name: "KV pressure", algorithm: "r2r", rates: []float64{.2, 0}, latency: measured(t), clients: 16, kvTokens: 1600,
			policy: func(i int) core.Policy {
				return core.Policy{Threshold: table.Column(i), TokenBudget: 128, MaxBatch: 6}
			}},
	} {
		t.Run(w.name, func(t *testing.T) {
			w.requests = lengths
			virtual := byInstant(w.simulate(t))
			var wall []string
			synctest.Test(t, func(t *testing.T) { wall = byInstant(w.serve(t)) })
			for i := range min(len(virtual), len(wall)) {
				if virtual[i] != wall[i] {
					t.Fatalf("line %d of %d / %d:\nsim    %s\nengine %s", i, len(virtual), len(wall), virtual[i], wall[i])
				}
			}
			if len(virtual) != len(wall) {
				t.Fatalf("sim wrote %d lines, the engine %d", len(virtual), len(wall))
			}
			t.Logf("%d equal lines", len(wall))
		})
	}
}
