package markov

const (
	// bytesPerState is what a state costs beside its transitions: its key, its slots in the set (2 to 8 of 8 bytes),
	// its row and duration, a flag, and three float64 to sweep with.
	bytesPerState = 16 + 32 + 4 + 4 + 1 + 24
	// bytesPerEdge is a transition's target; its probability is shared.
	bytesPerEdge = 4
	// boundSlack is how far below the combinatorial bound a chain may fall: with a bound of so many times the limit it
	// is refused unbuilt. Measured: 1 to 2 for eager chains of 2 and 3 models, 33 at N = 64 with B_1 = 32. Near B = N
	// it is more, but there the bound itself is small.
	boundSlack = 64
)

// stateBound bounds the number of reachable states from above. Right after a completion some model i has just
// completed: it has either launched again, with nothing waiting and its step whole, or it is idle with fewer than B_i
// waiting. Every other model is either in mid-step, or idle. The bound counts the ways to share N requests out like
// that.
func stateBound(g *grid, threshold []int, n int) float64 {
	m := len(threshold)
	idle := make([][]float64, m)  // idle[i][x]: states of an idle model that holds x requests
	fresh := make([][]float64, m) // just launched
	mid := make([][]float64, m)   // at any point of a step, with any number waiting, or idle
	for i, b := range threshold {
		idle[i], fresh[i], mid[i] = make([]float64, n+1), make([]float64, n+1), make([]float64, n+1)
		sum := 0.0
		for x := range n + 1 {
			if x < b {
				idle[i][x] = 1
			} else {
				fresh[i][x] = 1
				sum += float64(g.steps[i][x])
			}
			mid[i][x] = idle[i][x] + sum
		}
	}
	total := 0.0
	for i := range threshold {
		ways := make([]float64, n+1)
		for x := range ways {
			ways[x] = idle[i][x] + fresh[i][x]
		}
		for j := range threshold {
			if j != i {
				ways = convolve(ways, mid[j])
			}
		}
		total += ways[n]
	}
	return total
}

// convolve returns the first len(a) terms of the product of two power series.
func convolve(a, b []float64) []float64 {
	c := make([]float64, len(a))
	for i, x := range a {
		for j := 0; i+j < len(c); j++ {
			c[i+j] += x * b[j]
		}
	}
	return c
}

// averageRow estimates the transitions of a state: the outcomes of a batch of N/M over M destinations,
// C(N/M + M - 1, M - 1).
func averageRow(models, n int) float64 {
	c := 1.0
	for j := 1; j < models; j++ {
		c *= (float64(n)/float64(models) + float64(j)) / float64(j)
	}
	return c
}

// refuse returns an error if the chain is sure to be too large for the limit, in bytes.
func refuse(g *grid, threshold []int, n int, limit int64) error {
	if square := float64(n) * float64(n); square > float64(limit) { // the bound would take long; eager ones have more
		return &TooLargeError{States: square / 2, Bytes: square / 2 * bytesPerState, Limit: limit, Estimated: true}
	}
	states := stateBound(g, threshold, n)
	bytes := states * (bytesPerState + bytesPerEdge*averageRow(len(threshold), n))
	if bytes > boundSlack*float64(limit) {
		return &TooLargeError{States: states, Bytes: bytes, Limit: limit, Estimated: true}
	}
	return nil
}
