package markov

import (
	"context"
	"fmt"
	"math"
)

// direct solves the chain by elimination instead of iteration: it forms the chain embedded at the heads, one sweep a
// row, and eliminates that. Nothing is subtracted anywhere, so every entry is accurate to rounding however slowly the
// chain mixes. It takes as many sweeps as there are heads, and their number cubed / 3 multiplications.
func (c *chain) direct(ctx context.Context) (estimate, error) {
	class, _, err := c.classes()
	if err != nil {
		return estimate{}, err
	}
	var recurrent []int // by position in c.heads
	for i, h := range c.heads {
		if class[h] == 0 {
			recurrent = append(recurrent, i)
		}
	}
	n := len(recurrent)
	kernel := make([]float64, n*n)
	acc := make([]float64, c.states())
	for a, i := range recurrent {
		if err := ctx.Err(); err != nil {
			return estimate{}, err
		}
		acc[c.heads[i]] = 1
		c.push(acc, nil)
		for b, j := range recurrent {
			kernel[a*n+b] = acc[c.heads[j]]
			acc[c.heads[j]] = 0
		}
	}
	e := estimate{mass: make([]float64, len(c.heads)), sweeps: n + 1}
	for a, x := range eliminate(kernel, n) {
		e.mass[recurrent[a]] = x
	}
	for i, h := range c.heads {
		acc[h] = e.mass[i]
	}
	tokens, quanta := c.push(acc, nil)
	e.rate = tokens / quanta
	for i, h := range c.heads {
		e.residual += math.Abs(acc[h] - e.mass[i])
	}
	return e, nil
}

// dense solves the whole chain by elimination, state by state, without the order, the heads or the sweeps: an oracle for
// small chains. It returns how often each row's batches complete, to scale, and the quanta that takes. Time grows with
// the cube of the states, memory with the square.
func (c *chain) dense() (visits []float64, quanta float64, err error) {
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
	visits = make([]float64, len(c.rows))
	for a, x := range eliminate(matrix, n) {
		visits[c.row[states[a]]] += x
		quanta += x * float64(c.tau[states[a]])
	}
	return visits, quanta, nil
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
		return nil, nil, fmt.Errorf("%w: %d of them, so the throughput depends on chance", ErrReducible, closed)
	}
	return class, next, nil
}
