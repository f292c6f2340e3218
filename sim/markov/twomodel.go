package markov

import (
	"context"
	"fmt"
	"math"
)

// twoModel is the fast exact solver for two models with B_0 = 1 and step times that don't depend on the batch.
//
// Seen only at the launches of model 1, the chain needs no residual time but model 0's, and that one takes few values:
// after a launch of both models it runs through a fixed list of phases, one a launch of model 1, until both complete
// together. Within a phase model 0 makes a known number of steps with nobody joining, so that a request at it is still
// there with a power of the stay probability: all those steps are one binomial. A phase's states are the requests c at
// model 0 and b of them running; the N - c others run at model 1.
//
// Whenever model 0 empties, or model 1 waits for its threshold, or the two complete together, both launch next: a sync
// state, given by the number of requests that model 0 launches. So what is iterated, or eliminated, is a chain of at most
// N + 1 states, one step of which is one walk through the phases.
type twoModel struct {
	n, threshold  int
	stay, back    float64 // P_00 and P_10
	small, large  int     // step times in quanta
	tokens        [2]float64
	phases        []phase
	survive       map[int][]float64 // binomial rows for stay^j, by j
	returned      []float64         // binomial rows for back
	running, next []float64         // mass of a phase's states, see at
	idle          []float64         // mass where model 1 waits while model 0 is in mid-step
	fresh         []float64         // fresh[m]: mass where model 1 waits and model 0 launches m
	count         []float64         // scratch
	left          []float64         // scratch
	negligible    float64           // mass that is dropped
}

// phase is the time of one step of model 1.
type phase struct {
	steps int  // completions of model 0 meanwhile, one at the very end included
	sync  bool // model 0 completes together with model 1
	left  int  // quanta that model 0 has left when model 1 completes, if it still runs
}

// smallSync is the number of sync states up to which the embedded chain is eliminated at once: it costs as many walks
// as iteration would, and no convergence has to be judged.
const smallSync = 24

// twoModelApplies returns nil if the fast solver does, else ErrMethod.
func twoModelApplies(m Model, n int, threshold []int) error {
	switch {
	case m.Models() != 2:
		return fmt.Errorf("%w: %q takes 2 models, not %d", ErrMethod, TwoModel, m.Models())
	case threshold[0] != 1:
		return fmt.Errorf("%w: %q takes B_0 = 1, not %d", ErrMethod, TwoModel, threshold[0])
	case !m.fixed(n):
		return fmt.Errorf("%w: %q takes step times that don't depend on the batch", ErrMethod, TwoModel)
	}
	return nil
}

func newTwoModel(m Model, g *grid, n int) *twoModel {
	p := m.normalized()
	triangle := at(n+1, 0)
	s := &twoModel{
		n: n, stay: p[0][0], back: p[1][0],
		small: int(g.steps[0][1]), large: int(g.steps[1][1]),
		tokens:  [2]float64(m.committed()),
		survive: map[int][]float64{},
		running: make([]float64, triangle), next: make([]float64, triangle), idle: make([]float64, triangle),
		fresh: make([]float64, n+1), count: make([]float64, n+1), left: make([]float64, n+1),
	}
	s.returned = binomials(n, s.back)
	for r := s.small; ; {
		var ph phase
		if r < s.large {
			ph.steps = (s.large - r + s.small - 1) / s.small
		}
		ph.left = r + ph.steps*s.small - s.large
		if ph.left == 0 {
			ph.steps, ph.sync = ph.steps+1, true
		}
		s.phases = append(s.phases, ph)
		if ph.sync {
			return s
		}
		r = ph.left
	}
}

// at is the place of (c, x), 0 <= x <= c, in a triangle stored row after row.
func at(c, x int) int { return c*(c+1)/2 + x }

// row returns row c of a triangle.
func row(triangle []float64, c int) []float64 { return triangle[at(c, 0):at(c+1, 0)] }

// binomials returns the binomial distributions of 0..n trials, a triangle, by Pascal's rule: nothing is subtracted.
func binomials(n int, p float64) []float64 {
	t := make([]float64, at(n+1, 0))
	t[0] = 1
	for c := 1; c <= n; c++ {
		prev, cur := row(t, c-1), row(t, c)
		for x, w := range prev {
			cur[x] += w * (1 - p)
			cur[x+1] += w * p
		}
	}
	return t
}

// surviving returns the binomial rows for requests that stay at model 0 through so many of its steps.
func (s *twoModel) surviving(steps int) []float64 {
	t, ok := s.survive[steps]
	if !ok {
		t = binomials(s.n, math.Pow(s.stay, float64(steps)))
		s.survive[steps] = t
	}
	return t
}

// totals are expectations over one step of the embedded chain.
type totals struct {
	quanta        float64
	launches      [2]float64 // of each model
	largeRequests float64    // summed over the launches of model 1
}

func (t *totals) add(o totals, w float64) {
	t.quanta += w * o.quanta
	t.largeRequests += w * o.largeRequests
	t.launches[0] += w * o.launches[0]
	t.launches[1] += w * o.launches[1]
}

// walk takes the mass of the sync states, to[j] after from[j], one step on. from and to have N - B_1 + 1 entries.
func (s *twoModel) walk(from, to []float64, count bool) totals {
	var t totals
	most := s.n - s.threshold // requests at model 0 when model 1 launches, at most
	clear(to)
	clear(s.fresh)
	clear(s.running)
	for j, w := range from {
		s.running[at(j, j)] = w
	}
	for i := range s.phases {
		if !s.phase(&s.phases[i], most, to, count, &t) {
			break
		}
	}
	// Model 1 waits and model 0 launches m, the rest too few for model 1: until some leave.
	stay := s.surviving(1)
	for m := s.n; m > most; m-- {
		if s.fresh[m] == 0 {
			continue
		}
		row := row(stay, m)
		leave := 0.0
		for _, p := range row[:m] {
			leave += p
		}
		w := s.fresh[m] / leave
		t.quanta += w * float64(s.small)
		t.launches[0] += w
		for x, p := range row[:m] {
			s.launch(x, w*p, to)
		}
	}
	return t
}

// launch adds mass where model 0 has just launched x requests and model 1 may.
func (s *twoModel) launch(x int, w float64, to []float64) {
	if x < len(to) {
		to[x] += w
	} else {
		s.fresh[x] += w
	}
}

// phase takes the mass through one step of model 1; false when none is left for another phase.
func (s *twoModel) phase(ph *phase, most int, to []float64, count bool, t *totals) bool {
	clear(s.next)
	clear(s.idle)
	on := false
	for c := 0; c <= most; c++ {
		mass := row(s.running, c)
		total := 0.0
		for _, w := range mass {
			total += w
		}
		if total <= s.negligible {
			continue
		}
		b1 := s.n - c
		t.quanta += total * float64(s.large)
		t.launches[1]++
		_ = b1
	}
	return on
}
