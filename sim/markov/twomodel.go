package markov

import (
	"context"
	"fmt"
	"math"
)

// twoModel is the fast exact solver for two models with B_0 = 1 and step times that don't depend on the batch.
//
// Seen only at the launches of model 1, the system needs no residual time but model 0's, and that one takes few
// values: after a launch of both models it runs through a fixed list of phases, one a step of model 1, until both
// complete together. Within a phase model 0 makes a known number of steps and nobody joins, so that a request at it
// is still there with a power of the stay probability: all those steps are one binomial. The state at the start of a
// phase is the number c of requests at model 0 and how many of them, b, run; the N - c others have just been launched
// by model 1.
//
// Whenever model 0 empties, or model 1 waits for its threshold, or the two complete together, both launch next. Such
// a state is given by the number of requests that model 0 launches. These are the heads, N - B_1 + 1 of them, and one
// pass forward or backward is one walk through the phases.
type twoModel struct {
	grid         *grid
	n, threshold int // requests; B_1
	committed    []float64
	absorbing    int        // the model that all requests end up at, or -1 where they circulate
	move         float64    // P_01
	back         float64    // P_10
	hops         float64    // steps on model 0 for each on model 1: P_10 / P_01, since as many come back as go
	reward       float64    // tokens for one request's step on model 1 and for the steps on model 0 that go with it
	active       [2]float64 // activity of a step, by model
	small, large int        // step times, in quanta
	phases       []phase
	stays        []float64         // binomial rows for P_00
	survive      map[int][]float64 // by j: binomial rows for the chance to stay at model 0 for j steps
	completed    map[int][]float64 // see stepsIn
	returning    []float64         // binomial rows for P_10

	// Triangles, see at. Forward they hold mass, backward values.
	running, next []float64 // (c, b) at the start of a phase and of the next
	idle          []float64 // (h, y): model 1 waits, model 0 is in mid-step with y of the h requests it holds
	launched      []float64 // by m: model 0 launches m, and model 1 the rest unless it waits for more
	thinned, left []float64 // scratch
}

// phase is one step of model 1.
type phase struct {
	steps int  // completions of model 0 meanwhile, one at the very end included
	sync  bool // model 0 completes together with model 1
	left  int  // quanta that model 0 has left when model 1 completes, if it still runs
}

// maxPhases bounds the phases: with more, the time is no longer short, and the quantum far below what matters.
const maxPhases = 1 << 16

// triangles is how many tables of N^2 / 2 numbers the solver keeps: five, and two for each number of small steps that
// fits a large one, of which there are three at most.
const triangles = 5 + 2*3

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

func solveTwoModel(ctx context.Context, m Model, g *grid, n, threshold int, figures bool, o Options) (Result, error) {
	s, err := newTwoModel(m, g, n, o.MaxBytes)
	if err != nil {
		return Result{}, err
	}
	return s.solve(ctx, threshold, figures, o)
}

// solve returns the figures for one threshold of model 1.
func (s *twoModel) solve(ctx context.Context, threshold int, figures bool, o Options) (Result, error) {
	r := Result{
		Busy: make([]float64, 2), MeanBatch: make([]float64, 2),
		Quantum: s.grid.quantum, Rounding: s.grid.rounding, States: 1,
	}
	second := s.grid.quantum.Seconds()
	if all := s.absorbing; all >= 0 {
		rate := float64(s.n) * s.committed[all] / float64(s.grid.steps[all][1])
		r.take(solution{estimate{rate: rate}, bounds{rate, rate, rate}, TwoModel, true}, second)
		r.Busy[all], r.MeanBatch[all] = 1, float64(s.n)
		return r, nil
	}
	s.threshold = threshold
	o.Method = Auto
	sol, err := settle(ctx, s, figures, o)
	if err != nil {
		return Result{}, err
	}
	sol.method = TwoModel
	r.States = s.heads()
	if !sol.figures {
		r.take(sol, second)
		return r, nil
	}
	t := s.walk(sol.mass, negligible)
	r.Busy[0] = t.small * float64(s.small) / t.quanta
	r.Busy[1] = t.large * float64(s.large) / t.quanta
	r.MeanBatch[0] = t.requests * s.hops / t.small
	r.MeanBatch[1] = t.requests / t.large
	r.take(sol, second)
	return r, nil
}

// newTwoModel prepares for n requests and any threshold, within a memory limit in bytes. Errors: ErrTooLarge.
func newTwoModel(m Model, g *grid, n int, limit int64) (*twoModel, error) {
	p := m.normalized()
	s := &twoModel{
		grid: g, n: n, threshold: 1, committed: m.committed(), move: p[0][1], back: p[1][0], absorbing: -1,
		small: int(g.steps[0][1]), large: int(g.steps[1][1]),
	}
	switch {
	case s.move == 0:
		s.absorbing = 0
		return s, nil
	case s.back == 0:
		s.absorbing = 1
		return s, nil
	case s.small > maxPhases: // the common divisor is out, so there are that many
		return nil, fmt.Errorf("%w: %q goes through %d phases, at most %d: use a coarser quantum than %v",
			ErrTooLarge, TwoModel, s.small, maxPhases, g.quantum)
	}
	if bytes := 8 * triangles * float64(n) * float64(n) / 2; bytes > float64(limit) {
		return nil, &TooLargeError{States: float64(n), Bytes: bytes, Limit: limit, Estimated: true}
	}
	s.hops = s.back / s.move
	s.active = [2]float64{activityOf(0, g.steps[0][1]), activityOf(1, g.steps[1][1])}
	s.reward = s.committed[1] + s.committed[0]*s.hops
	s.survive, s.completed = map[int][]float64{}, map[int][]float64{}
	s.stays, s.returning = binomials(n, p[0][0], s.move), binomials(n, s.back, p[1][1])
	for _, t := range []*[]float64{&s.running, &s.next, &s.idle} {
		*t = make([]float64, at(n+1, 0))
	}
	for _, v := range []*[]float64{&s.launched, &s.thinned, &s.left} {
		*v = make([]float64, n+1)
	}
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
			return s, nil
		}
		r = ph.left
	}
}

// stepsIn returns how many of the steps of model 0 that fit a phase are expected to take place, that is to find it
// not empty: a triangle by requests at it and running on it at the start. The first always does; after j steps, b
// running and w waiting requests have all left with the chance (1 - stay^j)^b (1 - stay^(j-1))^w.
func (s *twoModel) stepsIn(ph *phase) []float64 {
	t, ok := s.completed[ph.steps]
	if ok {
		return t
	}
	t = make([]float64, len(s.running))
	if ph.steps > 0 {
		for c := 1; c <= s.n; c++ {
			row := rowOf(t, c)
			for b := range row {
				row[b] = float64(ph.steps)
			}
		}
	}
	now, before := make([]float64, s.n+1), make([]float64, s.n+1)
	for j := 1; j < ph.steps; j++ {
		_, left := s.stayFor(j)
		powers(now, left)
		_, left = s.stayFor(j - 1)
		powers(before, left)
		for c := 1; c <= s.n; c++ {
			row := rowOf(t, c)
			for b := range row {
				row[b] -= now[b] * before[c-b]
			}
		}
	}
	s.completed[ph.steps] = t
	return t
}

// powers fills t with p^0, p^1, ...
func powers(t []float64, p float64) {
	x := 1.0
	for i := range t {
		t[i] = x
		x *= p
	}
}

// stayFor returns the chances that a request at model 0 stays through so many of its steps, and that it does not.
func (s *twoModel) stayFor(steps int) (stay, leave float64) {
	if steps == 0 {
		return 1, 0
	}
	log := float64(steps) * math.Log1p(-s.move)
	return math.Exp(log), -math.Expm1(log)
}

// staying returns the binomial rows for requests that stay at model 0 through so many steps.
func (s *twoModel) staying(steps int) []float64 {
	t, ok := s.survive[steps]
	if !ok {
		p, q := s.stayFor(steps)
		t = binomials(s.n, p, q)
		s.survive[steps] = t
	}
	return t
}

// most is how many requests can be at model 0 when model 1 launches.
func (s *twoModel) most() int { return s.n - s.threshold }

// fewest is how many of b requests at least return from model 1.
func (s *twoModel) fewest(b int) int {
	if s.back == 1 {
		return b
	}
	return 0
}

func (s *twoModel) heads() int { return s.most() + 1 }

func (s *twoModel) start(x []float64) {
	clear(s.launched)
	s.launched[s.n] = 1
	s.leaveLone()
	copy(x, s.launched)
}

func (s *twoModel) forward(x []float64, drop float64) yield { return s.walk(x, drop).yield(s) }

// walked is what happens, on average, in one walk.
type walked struct {
	quanta   float64
	small    float64 // steps of model 0
	large    float64 // steps of model 1
	requests float64 // in the steps of model 1, summed
}

func (t walked) yield(s *twoModel) yield {
	return yield{tokens: t.requests * s.reward, activity: t.small*s.active[0] + t.large*s.active[1], quanta: t.quanta}
}

// walk sets x, the mass of the heads, to what it is at the next ones.
func (s *twoModel) walk(x []float64, drop float64) walked {
	var t walked
	clear(s.launched)
	clear(s.running)
	for j, w := range x {
		s.running[at(j, j)] = w
	}
	for i := range s.phases {
		if !s.walkPhase(&s.phases[i], drop, &t) {
			break
		}
		s.running, s.next = s.next, s.running
	}
	steps := s.leaveLone()
	t.small += steps
	t.quanta += steps * float64(s.small)
	copy(x, s.launched)
	return t
}

// walkPhase takes the mass of running through one step of model 1, to next or launched; false if none reached next.
func (s *twoModel) walkPhase(ph *phase, drop float64, t *walked) bool {
	clear(s.next)
	clear(s.idle)
	most, more, waiting := s.most(), false, false
	small := s.stepsIn(ph)
	for c := 0; c <= most; c++ {
		mass := rowOf(s.running, c)
		total := 0.0
		for _, w := range mass {
			total += w
		}
		if total <= drop {
			continue
		}
		t.quanta += total * float64(s.large)
		t.small += dot(mass, rowOf(small, c))
		t.large += total
		t.requests += total * float64(s.n-c)
		left := s.thin(ph, c, mass, drop)
		returning := rowOf(s.returning, s.n-c)
		for z := s.fewest(s.n - c); z < len(returning); z++ {
			p := returning[z]
			for y, w := range left {
				held := y + z
				if ph.steps == 0 {
					held = c + z
				}
				switch {
				case ph.sync || y == 0:
					s.launched[held] += w * p
				case held <= most:
					s.next[at(held, y)] += w * p
					more = true
				default:
					s.idle[at(held, y)] += w * p
					waiting = true
				}
			}
		}
	}
	if waiting {
		for h := most + 1; h <= s.n; h++ {
			for y, w := range rowOf(s.idle, h) {
				if w <= drop {
					continue
				}
				t.quanta += w * float64(ph.left)
				t.small += w
				axpy(s.launched[h-y:h+1], w, rowOf(s.stays, y))
			}
		}
	}
	return more
}

// thin returns the mass by requests that still run, or still are, at model 0 at the end of the phase, from that by b of
// the c running at its start. Those that wait join at the first completion: they see one step less.
func (s *twoModel) thin(ph *phase, c int, mass []float64, drop float64) []float64 {
	if ph.steps == 0 {
		return mass
	}
	first := s.thinned[:c+1]
	clear(first)
	spread(first, s.stays, mass, true, drop)
	if ph.steps == 1 {
		return first
	}
	left := s.left[:c+1]
	clear(left)
	spread(left, s.staying(ph.steps-1), first, false, drop)
	return left
}

// leaveLone lets model 0 run while model 1 waits for more requests than are left to it, until enough have come: mass of
// launched moves from above most to below. It returns the steps of model 0 that takes.
func (s *twoModel) leaveLone() (steps float64) {
	for m := s.n; m > s.most(); m-- {
		if s.launched[m] == 0 {
			continue
		}
		row := rowOf(s.stays, m)
		w := s.launched[m] / leave(row, int32(m))
		steps += w
		axpy(s.launched[:m], w, row[:m])
	}
	return steps
}

// backward is the adjoint of forward: the same walk from its end to its start, with expectations in place of mass.
func (s *twoModel) backward(columns []valuation) {
	for _, col := range columns {
		s.walkBack(col.h, col.price)
	}
}

// walkBack is backward for one column.
func (s *twoModel) walkBack(h []float64, price yield) {
	worth := walked{
		quanta:   price.quanta,
		small:    price.activity * s.active[0],
		large:    price.activity * s.active[1],
		requests: price.tokens * s.reward,
	}
	most := s.most()
	value := s.launched
	copy(value, h)
	for m := most + 1; m <= s.n; m++ {
		row := rowOf(s.stays, m)
		value[m] = (dot(row[:m], value) + worth.small + worth.quanta*float64(s.small)) / leave(row, int32(m))
	}
	for i := len(s.phases) - 1; i >= 0; i-- {
		s.backPhase(&s.phases[i], &worth)
		s.running, s.next = s.next, s.running
	}
	for j := range h {
		h[j] = s.next[at(j, j)]
	}
}

// backPhase fills running with the values at the start of a phase, from those of next and of the launches.
func (s *twoModel) backPhase(ph *phase, worth *walked) {
	most := s.most()
	if !ph.sync {
		wait := worth.small + worth.quanta*float64(ph.left)
		for y := 1; y <= most; y++ {
			for h := max(most+1, y+s.fewest(s.threshold)); h <= s.n; h++ {
				s.idle[at(h, y)] = wait + dot(rowOf(s.stays, y), s.launched[h-y:])
			}
		}
	}
	small := s.stepsIn(ph)
	for c := 0; c <= most; c++ {
		value := s.valueLeft(ph, c)
		if ph.steps > 1 {
			expect(s.thinned[:c+1], s.staying(ph.steps-1), value, false)
			value = s.thinned[:c+1]
		}
		now := rowOf(s.running, c)
		if ph.steps > 0 {
			expect(now, s.stays, value, true)
		} else {
			copy(now, value)
		}
		earned := worth.quanta*float64(s.large) + worth.large + worth.requests*float64(s.n-c)
		for b, steps := range rowOf(small, c) {
			now[b] += earned + worth.small*steps
		}
	}
}

// valueLeft returns the value at the end of a phase that began with c requests at model 0, by those that still run, or
// still are, there; averaged over what model 1 returns.
func (s *twoModel) valueLeft(ph *phase, c int) []float64 {
	most := s.most()
	left := s.left[:c+1]
	clear(left)
	returning := rowOf(s.returning, s.n-c)
	for z := s.fewest(s.n - c); z < len(returning); z++ {
		p := returning[z]
		for y := range left {
			held := y + z
			if ph.steps == 0 {
				held = c + z
			}
			switch {
			case ph.sync || y == 0:
				left[y] += p * s.launched[held]
			case held <= most:
				left[y] += p * s.next[at(held, y)]
			default:
				left[y] += p * s.idle[at(held, y)]
			}
		}
	}
	return left
}
