package markov

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// chain is the reachable part of the Markov chain, numbered breadth first from the start state. A state is the system
// right after a completion and the launches it allows. Its transitions are the outcomes of the batches that complete
// next; their targets lie in to, state after state, and their probabilities in the shared row.
type chain struct {
	grid  *grid
	rows  []outcomeRow
	prob  []float64
	row   []int32 // by state: the batches that complete next
	tau   []int32 // by state: quanta until they do
	to    []int32
	loops []selfLoop // ascending; sweeps solve them in place
	head  []int32    // ascending; targets of transitions that go back in the order: every cycle meets one
}

// selfLoop is a state that can follow itself.
type selfLoop struct {
	state int32
	leave float64 // probability that it does not, > 0
}

// maxStates is what the numbers of states can count, with room for the successors of checkEvery states.
const maxStates = 1 << 30

// checkEvery is how many states are expanded between two looks at the context and at the memory.
const checkEvery = 1024

// build enumerates the states that can follow the start, all N requests waiting at model 0.
func build(ctx context.Context, g *grid, r Routing, threshold []int, n int, limit int64) (*chain, error) {
	if err := refuse(g, threshold, n, limit); err != nil {
		return nil, err
	}
	fields, ok := layout(g, n)
	if !ok {
		return nil, fmt.Errorf("%w: a state of %d models and %d requests does not fit 128 bits: use a coarser quantum",
			ErrTooLarge, len(threshold), n)
	}
	m := len(threshold)
	launch := make([][]key, m) // launch[i][k]: what idle model i adds when k requests wait
	single := make([][]int32, m)
	out := newOutcomes(fields, g, r)
	for i := range m {
		launch[i] = make([]key, n+1)
		single[i] = make([]int32, n+1)
		for k := threshold[i]; k <= n; k++ {
			launch[i][k] = fields[i].pack(0, k, g.steps[i][k]).minus(fields[i].pack(k, 0, 0))
		}
		for b := 1; b <= n; b++ {
			single[i][b] = out.of(fields[i].pack(0, b, 0))
			if bytes := out.bytes(); bytes > limit {
				return nil, &TooLargeError{States: 1, Bytes: float64(bytes), Limit: limit}
			}
		}
	}

	room := int(min(stateBound(g, threshold, n), float64(limit)/bytesPerState))
	set := newStateSet(room)
	c := &chain{
		grid: g,
		row:  make([]int32, 0, room),
		tau:  make([]int32, 0, room),
		to:   make([]int32, 0, int(min(float64(room)*averageRow(m, n)*5/8, float64(limit)/bytesPerEdge))),
	}
	var back []bool // by state: reached from a later one
	start := fields[0].pack(n, 0, 0)
	set.numbers(nil, []key{start.plus(launch[0][n])})
	var next []key
	for u := int32(0); int(u) < len(set.keys); u++ {
		if u%checkEvery == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			bytes := int64(len(set.keys))*bytesPerState + int64(len(c.to))*bytesPerEdge + out.bytes()
			if bytes > limit || len(set.keys) > maxStates {
				return nil, &TooLargeError{States: float64(len(set.keys)), Bytes: float64(bytes), Limit: limit}
			}
		}
		s := set.keys[u]
		tau := int32(math.MaxInt32)
		for i := range fields {
			if fields[i].runningIn(&s) > 0 {
				tau = min(tau, fields[i].leftIn(&s))
			}
		}
		// after is s with the completing batches taken out and the other steps tau further.
		after := s
		var batches key
		var idle [maxModels]int
		done, idles, last := 0, 0, 0
		for i := range fields {
			f := &fields[i]
			b := f.runningIn(&s)
			switch left := f.leftIn(&s); {
			case b == 0:
				idle[idles] = i
				idles++
			case left == tau:
				idle[idles] = i
				idles++
				done++
				last = i
				after = after.minus(f.pack(0, b, left))
				batches = batches.plus(f.pack(0, b, 0))
			default:
				after = after.minus(f.pack(0, 0, tau))
			}
		}
		number := single[last][fields[last].runningIn(&s)]
		if done > 1 {
			number = out.of(batches)
		}
		row := out.rows[number]
		c.row, c.tau = append(c.row, number), append(c.tau, tau)
		if cap(c.to)-len(c.to) < int(row.len) {
			c.to = slices.Grow(c.to, max(int(row.len), len(c.to)/4))
		}
		next = next[:0]
		for x := row.first; x < row.first+row.len; x++ {
			k := after.plus(out.delta[x])
			for _, i := range idle[:idles] {
				k = k.plus(launch[i][fields[i].waitingIn(&k)])
			}
			next = append(next, k)
		}
		c.to = set.numbers(c.to, next)
		for x, v := range c.to[len(c.to)-len(next):] {
			if v > u {
				continue
			}
			for len(back) <= int(u) {
				back = append(back, false)
			}
			if v == u && row.len > 1 {
				c.loops = append(c.loops, selfLoop{u, leave(out.prob[row.first:row.first+row.len], int32(x))})
			} else {
				back[v] = true
			}
		}
	}
	c.rows, c.prob = out.rows, out.prob
	for v, is := range back {
		if is {
			c.head = append(c.head, int32(v))
		}
	}
	return c, nil
}

func (c *chain) states() int { return len(c.row) }

// leave is the probability of all outcomes but one: a sum, since 1 - p loses digits where p is near 1.
func leave(prob []float64, but int32) float64 {
	sum := 0.0
	for x, p := range prob {
		if int32(x) != but {
			sum += p
		}
	}
	return sum
}

// classes tells the states that are visited for ever, class 0, from those that are not, class -1, and returns the
// successors of a state; ErrReducible if the requests can get caught in one of several parts of the state space.
func (c *chain) classes() (class []int32, next func(u int) []int32, err error) {
	first := make([]int, c.states()+1)
	for u, r := range c.row {
		first[u+1] = first[u] + int(c.rows[r].len)
	}
	next = func(u int) []int32 { return c.to[first[u]:first[u+1]] }
	class, closed := closedClasses(c.states(), next)
	if closed > 1 {
		return nil, nil, reducible(closed)
	}
	return class, next, nil
}

// dense solves the whole chain by elimination, state by state, without the order, the heads or the sweeps: an oracle
// for small chains. It returns how often each row's batches complete, to scale, and the quanta that takes. Time grows
// with the cube of the states, memory with the square.
func (c *chain) dense(ctx context.Context) (visits []float64, quanta float64, err error) {
	class, next, err := c.classes()
	if err != nil {
		return nil, 0, err
	}
	at := make([]int, c.states())
	var states []int
	for u := range at {
		if class[u] == 0 {
			at[u] = len(states)
			states = append(states, u)
		}
	}
	n := len(states)
	matrix := make([]float64, n*n)
	for a, u := range states {
		prob := c.prob[c.rows[c.row[u]].first:]
		for x, v := range next(u) {
			matrix[a*n+at[v]] += prob[x]
		}
	}
	pi, err := eliminate(ctx, matrix, n)
	if err != nil {
		return nil, 0, err
	}
	visits = make([]float64, len(c.rows))
	for a, x := range pi {
		visits[c.row[states[a]]] += x
		quanta += x * float64(c.tau[states[a]])
	}
	return visits, quanta, nil
}
