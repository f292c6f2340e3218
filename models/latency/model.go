package latency

import (
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
)

// Model is a whole latency model: the time from a step's launch to its result.
//
// StepTime is a whole number of nanoseconds, at least 1, and doesn't allocate. It depends on the shape alone, except in
// Modulated, where it advances a chain. A Model may keep notes between calls (the cell it last looked up, what lay
// beyond its data), so an instance belongs to one goroutine.
type Model interface {
	StepTime(step.Shape) time.Duration
}

// Clocked is a Model whose step times depend on when a step begins.
type Clocked interface {
	Model
	// StepTimeAt is StepTime of a step that begins at an Instant of the run.
	StepTimeAt(now clock.Instant, s step.Shape) time.Duration
}

// Extrapolator is a Model that knows where its data ends.
type Extrapolator interface {
	// Extrapolated returns a warning for each way in which steps so far lay beyond the data, with the furthest: none
	// where all lay within.
	Extrapolated() []string
}

// Extrapolated returns m's warnings, none if it has no bounds.
func Extrapolated(m Model) []string {
	if e, ok := m.(Extrapolator); ok {
		return e.Extrapolated()
	}
	return nil
}

const (
	nsPerMS = 1e6

	// longest bounds a step, so that sums of steps with an instant stay far from overflow: 73 years.
	longest = time.Duration(1 << 61)
)

// duration rounds a step time to the nanosecond, within [1 ns, longest].
func duration(ns float64) time.Duration {
	switch {
	case !(ns >= 1): // a NaN too
		return 1
	case ns >= float64(longest):
		return longest
	}
	return time.Duration(ns + .5)
}
