package markov

import (
	"context"
	"fmt"
	"math"
)

// eliminate returns the stationary distribution of an irreducible stochastic matrix, n rows of n, which it overwrites.
// States are taken out one by one, last first; what a state sent to itself is never formed, its leaving probability is
// the sum of the rest, so nothing is subtracted and every entry keeps its relative accuracy. It fails only where the
// probabilities of some transitions and their products leave the range of a float64. Source: W. K. Grassmann,
// M. I. Taksar, D. P. Heyman, Operations Research 33 (1985).
func eliminate(ctx context.Context, a []float64, n int) ([]float64, error) {
	for k := n - 1; k > 0; k-- {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row := a[k*n : k*n+k]
		leave := 0.0
		for _, p := range row {
			leave += p
		}
		for i := range k {
			p := a[i*n+k]
			if p == 0 {
				continue
			}
			p /= leave
			a[i*n+k] = p
			axpy(a[i*n:i*n+k], p, row)
		}
	}
	const much = 1e150
	pi := make([]float64, n)
	pi[0] = 1
	for k := 1; k < n; k++ {
		for i := range k {
			pi[k] += pi[i] * a[i*n+k]
		}
		if pi[k] > much { // what is so much rarer than state k need not be told from 0
			for i := range k {
				pi[i] /= pi[k]
			}
			pi[k] = 1
		}
	}
	scale(pi)
	for _, p := range pi {
		if math.IsNaN(p) {
			return nil, fmt.Errorf("%w: elimination of %d states left the range of numbers", ErrNotConverged, n)
		}
	}
	return pi, nil
}

// closedClasses finds the sets of vertices that are never left again. class is the number of a vertex's closed set,
// or -1 if it is left for ever sooner or later.
func closedClasses(n int, next func(v int) []int32) (class []int32, closed int) {
	component, components := stronglyConnected(n, next)
	open := make([]bool, components)
	for v := range n {
		for _, w := range next(v) {
			if component[w] != component[v] {
				open[component[v]] = true
			}
		}
	}
	number := make([]int32, components)
	for i := range number {
		number[i] = -1
		if !open[i] {
			number[i] = int32(closed)
			closed++
		}
	}
	for v := range component {
		component[v] = number[component[v]]
	}
	return component, closed
}

// stronglyConnected numbers the strongly connected components: Tarjan's algorithm, without recursion.
func stronglyConnected(n int, next func(v int) []int32) (component []int32, components int) {
	component = make([]int32, n)
	order := make([]int32, n) // of discovery, from 1; 0 is unseen
	low := make([]int32, n)   // least order reached within the vertex's component, so far
	at := make([]int32, n)    // next successor to look at
	var path, open []int32    // vertices being explored; vertices whose component is not complete
	count := int32(0)
	enter := func(v int32) {
		count++
		order[v], low[v], component[v] = count, count, -1
		path, open = append(path, v), append(open, v)
	}
	for root := range n {
		if order[root] != 0 {
			continue
		}
		enter(int32(root))
		for len(path) > 0 {
			v := path[len(path)-1]
			if succ := next(int(v)); int(at[v]) < len(succ) {
				w := succ[at[v]]
				at[v]++
				if order[w] == 0 {
					enter(w)
				} else if component[w] < 0 {
					low[v] = min(low[v], order[w])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				u := path[len(path)-1]
				low[u] = min(low[u], low[v])
			}
			if low[v] == order[v] {
				for w := int32(-1); w != v; {
					w = open[len(open)-1]
					open = open[:len(open)-1]
					component[w] = int32(components)
				}
				components++
			}
		}
	}
	return component, components
}
