// Package fake is a backend that computes nothing: it sleeps as long as a latency model says and reports drawn signals.
// It turns the engine into a simulator on the wall clock: what `--engine fake` runs, and the twin of package sim.
package fake

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/signal"
)

// Config describes the machine that the backends pretend to be.
type Config struct {
	Latency    []latency.Model // by model
	Signal     signal.Source   // nil: rows report no score
	Contention float64         // kappa, as in the simulator
	Overhead   time.Duration   // added to every step: the router's cost
	Rows       int             // the largest batch
	// Now is the engine's clock.
	Now func() clock.Instant
}

// Machine is the GPUs that the models share. Its methods may be called by several goroutines.
type Machine struct {
	cfg    Config
	mu     sync.Mutex
	gpu    *latency.Contention
	change chan struct{} // closed when a step starts or ends: others must look at their end again
}

// New returns a machine; Backend gives one backend a model.
func New(c Config) *Machine {
	m := &Machine{cfg: c, change: make(chan struct{})}
	if c.Contention > 0 && len(c.Latency) > 1 {
		m.gpu = latency.NewContention(c.Contention, len(c.Latency))
	}
	return m
}

// Backend is model i's backend.
func (m *Machine) Backend(i step.ModelID) *Backend {
	return &Backend{machine: m, model: i, results: signal.NewResults(m.cfg.Signal, m.cfg.Rows)}
}

// Backend sleeps for one model.
type Backend struct {
	machine *Machine
	model   step.ModelID
	results *signal.Results
}

// Forward sleeps for the step's time.
func (b *Backend) Forward(ctx context.Context, batch *step.Batch) (*step.Result, error) {
	m := b.machine
	if n := batch.Len(); n > m.cfg.Rows {
		return nil, fmt.Errorf("backend fake: batch of %d rows, want at most %d", n, m.cfg.Rows)
	}
	if err := m.sleep(ctx, int(b.model), m.cfg.Latency[b.model].StepTime(batch.Shape)+m.cfg.Overhead); err != nil {
		return nil, err
	}
	m.mu.Lock() // a signal may keep state that all models share
	defer m.mu.Unlock()
	return b.results.Of(batch), nil
}

// Admit tells the signal of a new request: what an engine.Config.Admit does.
func (m *Machine) Admit(h step.Handle, id step.RequestID, prompt int32) float64 {
	a, ok := m.cfg.Signal.(signal.Admitter)
	if !ok {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return a.Admit(h, id, prompt)
}

// sleep waits until the step ends; a step that starts or ends on another model moves that Instant.
func (m *Machine) sleep(ctx context.Context, i int, work time.Duration) error {
	if m.gpu == nil {
		return until(ctx, work, nil)
	}
	m.mu.Lock()
	m.gpu.Start(m.cfg.Now(), i, work)
	m.changed()
	for {
		now, end, change := m.cfg.Now(), m.gpu.End(i), m.change
		if now >= end {
			m.gpu.Finish(now, i)
			m.changed()
			m.mu.Unlock()
			return nil
		}
		m.mu.Unlock()
		if err := until(ctx, end.Sub(now), change); err != nil {
			return err
		}
		m.mu.Lock()
	}
}

func (m *Machine) changed() {
	close(m.change)
	m.change = make(chan struct{})
}

// until sleeps for d, or less if change is closed.
func until(ctx context.Context, d time.Duration, change <-chan struct{}) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-change:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
