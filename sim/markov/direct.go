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
	recurrent, err := c.recurrentHeads()
	if err != nil {
		return estimate{}, err
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

// recurrentHeads returns the heads that are visited for ever, by position in c.heads; ErrReducible if the requests can
// get caught in one of several parts of the state space.
func (c *chain) recurrentHeads() ([]int, error) {
	first := make([]int, c.states()+1)
	for u, r := range c.row {
		first[u+1] = first[u] + int(c.rows[r].len)
	}
	class, closed := closedClasses(c.states(), func(u int) []int32 { return c.to[first[u]:first[u+1]] })
	if closed > 1 {
		return nil, fmt.Errorf("%w: %d of them, so the throughput depends on chance", ErrReducible, closed)
	}
	var heads []int
	for i, h := range c.heads {
		if class[h] == 0 {
			heads = append(heads, i)
		}
	}
	return heads, nil
}

// dense solves the whole chain by elimination, state by state, without the order, the heads or the rows' sharing of
// sweeps: an oracle for small chains. Time grows with the cube of the states, memory with the square.
func (c *chain) dense() (rate float64, err error) {
	n := c.states()
	first := make([]int, n+1)
	for u, r := range c.row {
		first[u+1] = first[u] + int(c.rows[r].len)
	}
	class, closed := closedClasses(n, func(u int) []int32 { return c.to[first[u]:first[u+1]] })
	if closed > 1 {
		return 0, fmt.Errorf("%w: %d of them, so the throughput depends on chance", ErrReducible, closed)
	}
	at := make([]int, n)
	var states []int
	for u := range n {
		if class[u] == 0 {
			at[u] = len(states)
			states = append(states, u)
		}
	}
	k := len(states)
	matrix := make([]float64, k*k)
	for a, u := range states {
		row := c.rows[c.row[u]]
		for x, v := range c.to[first[u]:first[u+1]] {
			matrix[a*k+at[v]] += c.prob[int(row.first)+x]
		}
	}
	tokens, quanta := 0.0, 0.0
	for a, x := range eliminate(matrix, k) {
		tokens += x * c.rows[c.row[states[a]]].tokens
		quanta += x * float64(c.tau[states[a]])
	}
	return tokens / quanta, nil
}
