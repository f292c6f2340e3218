package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/results"
)

// A subserver that sleeps decides once it is awake, on all that has come by then; one at work decides at once.
func TestWakes(t *testing.T) {
	const ms = time.Millisecond
	at := func(d time.Duration) clock.Instant { return clock.Instant(0).Add(d) }
	first := map[int32]time.Duration{}
	wakes := 0
	c := &Config{
		Topology: Single,
		Models:   []Model{{Name: "m", Latency: latency.Constant(10 * ms)}},
		Requests: []Request{{5, 1}, {5, 1}, {5, 1}, {5, 1}},
		Arrivals: []clock.Instant{0, at(1 * ms), at(5 * ms), at(40 * ms)},
		Wake: func(step.ModelID, bool) time.Duration {
			wakes++
			return time.Duration(1+wakes) * ms
		},
		Check: true,
		Ended: func(q *results.Request) { first[q.ID] = time.Duration(q.First) },
	}
	if _, err := Run(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[int32]time.Duration{
		0: 12 * ms, // asleep at 0, awake at 2 ms
		1: 12 * ms, // came before it was awake: the same step
		2: 22 * ms, // came during the step: no sleep before the next
		3: 53 * ms, // asleep again: the second wake-up takes 3 ms
	} {
		if first[id] != want {
			t.Errorf("request %d: first token at %v, want %v", id, first[id], want)
		}
	}
}

// Whoever wakes a subserver is told whether another one has work then: the sender goes on with other requests, or not.
func TestWakesBesideOthers(t *testing.T) {
	const ms = time.Millisecond
	type wake struct {
		m      step.ModelID
		beside bool
	}
	var woken []wake
	at := func(d time.Duration) clock.Instant { return clock.Instant(0).Add(d) }
	c := &Config{
		Models: constants(10*ms, 30*ms), Requests: equal(3, 5, 1),
		Arrivals: []clock.Instant{0, at(200 * ms), at(205 * ms)},
		Check:    true,
		Wake: func(m step.ModelID, beside bool) time.Duration {
			woken = append(woken, wake{m, beside})
			return ms
		},
	}
	routed(t, c, "entropy", 1, 0, 1) // each draft is dropped, and the large model writes the token
	mustRun(t, c)
	want := []wake{
		{0, false}, {1, false}, // the first request, alone
		{0, false}, // the second; the third comes during its step
		{1, true},  // for the second, while the third is the small model's
	}
	if !slices.Equal(woken, want) {
		t.Errorf("woken: %v, want %v", woken, want)
	}
}
