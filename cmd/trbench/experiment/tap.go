package experiment

import (
	"context"
	"time"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/backend"
	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/calibrate"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results"
)

// tap keeps what a run on the engine did, for a simulation of the same requests.
type tap struct {
	requests []results.Request // as they ended
	said     signal.Recorder

	// log, if not nil, takes the steps, the host's time before each in it.
	log   *calibrate.StepWriter
	since clock.Instant // what the log's clock showed when this run's began
	host  [step.MaxModels]time.Duration
	last  clock.Instant

	woken []wake // sleeping subservers, in order
}

// wake is how long it took to wake a subserver, from the end of the sender's step to the woken scheduler.
type wake struct {
	of   woken
	took time.Duration
}

// woken is what a wake-up's time depends on: a thread that another core can run at once wakes sooner than one whose
// sender keeps its core busy with the next step.
type woken struct {
	model  step.ModelID
	beside bool // another model has work meanwhile
}

// listen puts the tap between the engine and its backends.
func (t *tap) listen(c *engine.Config) {
	for i := range c.Models {
		c.Models[i].Backend = overheard{c.Models[i].Backend, &t.said}
	}
	c.Host = func(m step.ModelID, d time.Duration) { t.host[m] = d }
}

// step logs a step with the host's part: what the decode loop took from its step before to this one.
func (t *tap) step(b *step.Batch, start, end clock.Instant) {
	host := t.host[b.Model]
	t.host[b.Model] = 0
	t.last = max(t.last, end)
	if t.log != nil {
		t.log.Step(b, t.since.Add(time.Duration(start)-host), t.since.Add(time.Duration(end)))
	}
}

// handover notes how long a request was on its way to a peer that slept. One on its way to a peer in a step waits for
// that anyway.
func (t *tap) handover(h engine.Handover) {
	if h.Woke {
		t.woken = append(t.woken, wake{woken{h.To, h.Beside}, h.Enqueue + h.Transport})
	}
}

// overheard is a backend of which every word is kept.
type overheard struct {
	backend.Backend
	said *signal.Recorder
}

// Forward implements backend.Backend.
func (o overheard) Forward(ctx context.Context, b *step.Batch) (*step.Result, error) {
	res, err := o.Backend.Forward(ctx, b)
	if err == nil {
		o.said.Take(b, res)
	}
	return res, err
}

// Release implements backend.Releaser.
func (o overheard) Release(h step.Handle) {
	if r, ok := o.Backend.(backend.Releaser); ok {
		r.Release(h)
	}
}
