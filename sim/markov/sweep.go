package markov

// sweeper is the enumerated chain embedded at its heads. A sweep passes over all states in their order and carries what
// goes forward; what goes back stays at the heads, for the next sweep.
type sweeper struct {
	*chain
	scratch []float64    // by state; zero between calls
	pairs   [][2]float64 // by state, for two columns of values; nil until needed
}

func newSweeper(c *chain) *sweeper { return &sweeper{chain: c, scratch: make([]float64, c.states())} }

func (s *sweeper) heads() int { return len(s.head) }

func (s *sweeper) start(x []float64) {
	s.scratch[0] = 1
	s.push(s.scratch, nil, negligible)
	s.gather(x)
}

func (s *sweeper) forward(x []float64, drop float64) yield { return s.count(x, nil, drop) }

// count is forward, and adds to visits how often each row's batches completed.
func (s *sweeper) count(x, visits []float64, drop float64) yield {
	for i, u := range s.head {
		s.scratch[u] = x[i]
	}
	y := s.push(s.scratch, visits, drop)
	s.gather(x)
	return y
}

// gather moves the mass at the heads to x.
func (s *sweeper) gather(x []float64) {
	for i, u := range s.head {
		x[i] = s.scratch[u]
		s.scratch[u] = 0
	}
}

func (s *sweeper) backward(columns []valuation) {
	first := columns[0]
	if len(columns) == 1 {
		for i, u := range s.head {
			s.scratch[u] = first.h[i]
		}
		s.pull(s.scratch, first.price)
		for i, u := range s.head {
			first.h[i] = s.scratch[u]
		}
		clear(s.scratch)
		return
	}
	if s.pairs == nil {
		s.pairs = make([][2]float64, s.states())
	}
	second := columns[1]
	for i, u := range s.head {
		s.pairs[u] = [2]float64{first.h[i], second.h[i]}
	}
	s.pullPairs(s.pairs, first.price, second.price)
	for i, u := range s.head {
		first.h[i], second.h[i] = s.pairs[u][0], s.pairs[u][1]
	}
}

// push carries mass forward through all states in order, each state's share to its successors: Gauss-Seidel on the
// balance equations, in the form that needs no transpose. It returns the yield, and adds to visits, if not nil, how
// often each row's batches completed. A state with no more mass than drop is passed over.
//
// acc is indexed by state: on entry the mass at each, on return nonzero at heads only.
func (c *chain) push(acc, visits []float64, drop float64) yield {
	var sum yield
	loops := c.loops
	to := c.to
	for u, v := range acc {
		row := &c.rows[c.row[u]]
		targets := to[:row.len]
		to = to[row.len:]
		loop := len(loops) > 0 && loops[0].state == int32(u)
		if v > 0 {
			acc[u] = 0
		}
		if v > drop {
			if loop {
				v /= loops[0].leave
			}
			sum.tokens += v * row.tokens
			sum.activity += v * row.activity
			sum.quanta += v * float64(c.tau[u])
			if visits != nil {
				visits[c.row[u]] += v
			}
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
	return sum
}

// pull is the adjoint of push: it carries values backward. A state's new value is the worth of what it yields until its
// next completion, plus the expected value of its successor: the new value where the successor comes later, the old one
// at heads that come before. Old values elsewhere are not read.
func (c *chain) pull(value []float64, price yield) {
	loops := c.loops
	end := len(c.to)
	for u := len(value) - 1; u >= 0; u-- {
		row := &c.rows[c.row[u]]
		targets := c.to[end-int(row.len) : end]
		end -= int(row.len)
		sum := price.tokens*row.tokens + price.activity*row.activity + price.quanta*float64(c.tau[u])
		n := len(loops)
		loop := n > 0 && loops[n-1].state == int32(u)
		if loop {
			value[u] = 0
		}
		prob := c.prob[row.first:][:len(targets)]
		for x, w := range targets {
			sum += prob[x] * value[w]
		}
		if loop {
			sum /= loops[n-1].leave
			loops = loops[:n-1]
		}
		value[u] = sum
	}
}

// pullPairs is pull for two columns side by side: the transitions, which take longest to read, are read once.
func (c *chain) pullPairs(value [][2]float64, first, second yield) {
	loops := c.loops
	end := len(c.to)
	for u := len(value) - 1; u >= 0; u-- {
		row := &c.rows[c.row[u]]
		targets := c.to[end-int(row.len) : end]
		end -= int(row.len)
		quanta := float64(c.tau[u])
		a := first.tokens*row.tokens + first.activity*row.activity + first.quanta*quanta
		b := second.tokens*row.tokens + second.activity*row.activity + second.quanta*quanta
		n := len(loops)
		loop := n > 0 && loops[n-1].state == int32(u)
		if loop {
			value[u] = [2]float64{}
		}
		prob := c.prob[row.first:][:len(targets)]
		for x, w := range targets {
			a += prob[x] * value[w][0]
			b += prob[x] * value[w][1]
		}
		if loop {
			a /= loops[n-1].leave
			b /= loops[n-1].leave
			loops = loops[:n-1]
		}
		value[u] = [2]float64{a, b}
	}
}
