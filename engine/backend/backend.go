// Package backend runs the steps that the scheduler decides on: the one thing that takes time in an engine.
package backend

import (
	"context"

	"github.com/trbench/trbench/engine/step"
)

// Backend runs one model. Forward returns when the step has run; the batch is valid until then, and the result until
// the next Forward. Calls come one at a time, from any of the engine's decode loops. Forward may lock its goroutine to its
// OS thread while it works, as a GPU's context wants, but must unlock it: routing programs, which are coroutines, are
// resumed there.
type Backend interface {
	Forward(ctx context.Context, b *step.Batch) (*step.Result, error)
}

// Releaser is a Backend that keeps something of a request between its steps. Release may be called while Forward runs
// on other requests.
type Releaser interface{ Release(h step.Handle) }
