package paper

import (
	"sync"

	"github.com/trbench/trbench/results"
)

// outcome is what a run came to.
type outcome struct {
	tokS      float64 // output while all requests run
	ttft, e2e float64 // means over requests, seconds
	threshold int     // of the large model
}

func outcomeOf(p *results.Point, threshold int) outcome {
	return outcome{p.SteadyTokS.Or(0), p.TTFT.MeanValue().Or(0) / 1000, p.E2E.MeanValue().Or(0) / 1000, threshold}
}

// memo holds runs that several cells need, each made once.
type memo struct {
	mu   sync.Mutex
	done map[memoKey]*memoEntry
}

type memoKey struct {
	law string
	s   Setup
}

type memoEntry struct {
	once sync.Once
	outcome
	err error
}

func (m *memo) get(k memoKey, compute func() (outcome, error)) (outcome, error) {
	m.mu.Lock()
	if m.done == nil {
		m.done = map[memoKey]*memoEntry{}
	}
	e := m.done[k]
	if e == nil {
		e = &memoEntry{}
		m.done[k] = e
	}
	m.mu.Unlock()
	e.once.Do(func() { e.outcome, e.err = compute() })
	return e.outcome, e.err
}
