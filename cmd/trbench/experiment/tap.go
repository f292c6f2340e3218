package experiment

import (
	"context"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/backend"
	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results"
)

// tap keeps what a run on the engine did, for a simulation of the same requests.
type tap struct {
	requests []results.Request // as they ended
	said     signal.Recorder
	step     func(b *step.Batch, start, end clock.Instant)
}

// listen puts the tap between the engine and its backends.
func (t *tap) listen(c *engine.Config) {
	for i := range c.Models {
		c.Models[i].Backend = overheard{c.Models[i].Backend, &t.said}
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
