package markov

// negligible is the mass below which a state is passed over: nothing is lost at double precision, and no product of such
// masses becomes denormal, which is slow.
const negligible = 1e-250

// push carries mass forward through all states in order, each state's share to its successors: Gauss-Seidel on the
// balance equations, in the form that needs no transpose. Mass that goes back in the order stays in acc, at the heads,
// for the next sweep; so one sweep is one step of the chain embedded at the heads, times the mass put in. It returns the
// tokens committed and the quanta passed meanwhile, and adds to visits, if not nil, how often each row's batches
// completed.
//
// acc is indexed by state: on entry the mass at each, on return nonzero at heads only.
func (c *chain) push(acc, visits []float64) (tokens, quanta float64) {
	loops := c.loops
	to := c.to
	for u, v := range acc {
		row := &c.rows[c.row[u]]
		targets := to[:row.len]
		to = to[row.len:]
		loop := len(loops) > 0 && loops[0].state == int32(u)
		if v > negligible {
			if loop {
				v /= loops[0].leave
			}
			tokens += v * row.tokens
			quanta += v * float64(c.tau[u])
			if visits != nil {
				visits[c.row[u]] += v
			}
			acc[u] = 0
			prob := c.prob[row.first:][:len(targets)]
			for x, w := range targets {
				acc[w] += v * prob[x]
			}
		}
		if loop {
			acc[u] = 0
			loops = loops[1:]
		}
	}
	return tokens, quanta
}

// pull is the adjoint of push: it carries values backward. A state's new value is what it earns until its next
// completion, tokens tokens for each committed less rate for each quantum, plus the expected value of its successor:
// the new value where the successor comes later, the old one at heads that come before.
func (c *chain) pull(value []float64, tokens, rate float64) {
	loops := c.loops
	end := len(c.to)
	for u := len(value) - 1; u >= 0; u-- {
		row := &c.rows[c.row[u]]
		targets := c.to[end-int(row.len) : end]
		end -= int(row.len)
		sum := tokens*row.tokens - rate*float64(c.tau[u])
		prob := c.prob[row.first:][:len(targets)]
		if n := len(loops); n > 0 && loops[n-1].state == int32(u) {
			value[u] = 0
			for x, w := range targets {
				sum += prob[x] * value[w]
			}
			sum /= loops[n-1].leave
			loops = loops[:n-1]
		} else {
			for x, w := range targets {
				sum += prob[x] * value[w]
			}
		}
		value[u] = sum
	}
}
