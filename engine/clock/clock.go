// Package clock types a point in time, so that a point and a span can't be mixed. It never reads a clock: a driver
// passes the instant in.
package clock

import (
	"math"
	"time"
)

// Instant is a point in time: nanoseconds since the run began, on the virtual or the wall clock. Spans are
// time.Duration.
type Instant int64

// Never is later than every event: "wake me on the next event only".
const Never Instant = math.MaxInt64

// Add returns the instant d after t; it saturates at Never.
func (t Instant) Add(d time.Duration) Instant {
	u := t + Instant(d)
	if d > 0 && u < t {
		return Never
	}
	return u
}

// Sub returns the span from u to t.
func (t Instant) Sub(u Instant) time.Duration { return time.Duration(t - u) }

// Seconds returns t as seconds since the run began.
func (t Instant) Seconds() float64 { return float64(t) / 1e9 }

// Milliseconds returns t as milliseconds since the run began.
func (t Instant) Milliseconds() float64 { return float64(t) / 1e6 }

func (t Instant) String() string {
	if t == Never {
		return "never"
	}
	return time.Duration(t).String()
}
