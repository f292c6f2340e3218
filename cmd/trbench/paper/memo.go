package paper

import "sync"

// memo holds throughputs that several cells need, each computed once.
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
	tokS float64
	at   int // the threshold
	err  error
}

func (m *memo) get(k memoKey, compute func() (float64, int, error)) (float64, int, error) {
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
	e.once.Do(func() { e.tokS, e.at, e.err = compute() })
	return e.tokS, e.at, e.err
}
