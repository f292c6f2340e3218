package calibrate

import (
	"math"
)

// chain is a hidden Markov chain behind the logarithms of residuals: in state k they are normal around mu[k], all
// states with the same spread. One spread, because states of their own could each shrink onto a handful of equal
// values; and because the simulator's chain has multipliers and no spread, so that a wide state is better told as two.
type chain struct {
	mu    []float64 // logarithm of the multiplier, by state
	sigma float64   // of the logarithm, about the relative spread; no less than a bound
	left  float64   // what sigma would be without the bound
	start []float64 // of the first step
	trans []float64 // from row to column, states x states
}

func newChain(states int) *chain {
	c := &chain{mu: make([]float64, states), start: make([]float64, states), trans: make([]float64, states*states)}
	for i := range c.start {
		c.start[i] = 1 / float64(states)
	}
	for i := range c.trans {
		c.trans[i] = 1 / float64(states)
	}
	return c
}

func (c *chain) states() int { return len(c.mu) }

func (c *chain) clone() *chain {
	d := *c
	d.mu = append([]float64(nil), c.mu...)
	d.start = append([]float64(nil), c.start...)
	d.trans = append([]float64(nil), c.trans...)
	return &d
}

// posterior is what a sequence of residuals says about the states it went through, given a chain.
type posterior struct {
	gamma    []float64   // steps x states: the probability of each state at each step
	moves    [][]float64 // by block of steps: the expected number of moves from row to column
	start    []float64   // gamma of the sequence's first step
	log      float64     // likelihood of the residuals
	observed int         // residuals that are not NaN

	emission []float64
	scale    []float64
	back     []float64
}

// expect runs the forward and backward recursions over residuals, of which NaN is one that wasn't seen. blocks is how
// many parts of the sequence keep their moves apart. The work is states^2 a step.
//
// Source: Rabiner, A tutorial on hidden Markov models (1989), with the scaling of its section V.
func (p *posterior) expect(c *chain, x []float64, blocks int) {
	n, k := len(x), c.states()
	p.gamma, p.emission = resize(p.gamma, n*k), resize(p.emission, n*k)
	p.scale, p.back = resize(p.scale, n), resize(p.back, 2*k)
	if len(p.moves) != blocks || blocks > 0 && len(p.moves[0]) != k*k {
		p.moves = make([][]float64, blocks)
		for b := range p.moves {
			p.moves[b] = make([]float64, k*k)
		}
	}
	for _, m := range p.moves {
		clear(m)
	}
	p.log, p.observed = 0, 0
	if n == 0 {
		p.start = append(p.start[:0], c.start...)
		return
	}
	p.forward(c, x)
	p.backward(c, n, blocks)
	p.start = append(p.start[:0], p.gamma[:k]...)
}

func resize(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n)
	}
	return s[:n]
}

// faintest bounds the exponent of a density relative to the likeliest state's: no state is ever ruled out, so that the
// recursions stay above 0.
const faintest = -600

func (p *posterior) forward(c *chain, x []float64) {
	k := c.states()
	unit := -math.Log(c.sigma * math.Sqrt(2*math.Pi))
	half := 1 / (2 * c.sigma * c.sigma)
	before := c.start
	for t, v := range x {
		e := p.emission[t*k : t*k+k]
		if math.IsNaN(v) {
			for j := range e {
				e[j] = 1
			}
		} else {
			top := math.Inf(-1)
			for j := range e {
				d := v - c.mu[j]
				e[j] = -d * d * half
				top = max(top, e[j])
			}
			for j := range e {
				e[j] = math.Exp(max(e[j]-top, faintest))
			}
			p.log += top + unit
			p.observed++
		}
		alpha := p.gamma[t*k : t*k+k]
		sum := 0.0
		for j := range alpha {
			a := 0.0
			if t == 0 {
				a = before[j]
			} else {
				for i, b := range before {
					a += b * c.trans[i*k+j]
				}
			}
			alpha[j] = a * e[j]
			sum += alpha[j]
		}
		for j := range alpha {
			alpha[j] /= sum
		}
		p.scale[t] = sum
		p.log += math.Log(sum)
		before = alpha
	}
}

func (p *posterior) backward(c *chain, n, blocks int) {
	k := c.states()
	beta, next := p.back[:k], p.back[k:2*k]
	for j := range beta {
		beta[j] = 1
	}
	for t := n - 2; t >= 0; t-- {
		for j := range next {
			next[j] = p.emission[(t+1)*k+j] * beta[j] / p.scale[t+1]
		}
		alpha := p.gamma[t*k : t*k+k]
		var moves []float64
		if blocks > 0 {
			moves = p.moves[t*blocks/n]
		}
		for i := range beta {
			sum := 0.0
			for j, v := range next {
				m := c.trans[i*k+j] * v
				sum += m
				if moves != nil {
					moves[i*k+j] += alpha[i] * m
				}
			}
			beta[i] = sum
		}
		total := 0.0
		for i := range alpha {
			alpha[i] *= beta[i]
			total += alpha[i]
		}
		for i := range alpha { // 1 but for rounding
			alpha[i] /= total
		}
	}
}

// maximise sets c to what the posteriors of sequences say: one step of Baum-Welch. least bounds the spread from below.
func (c *chain) maximise(x [][]float64, p []posterior, least float64) {
	k := c.states()
	mean, weight := make([]float64, k), make([]float64, k)
	for s := range x {
		for t, v := range x[s] {
			if math.IsNaN(v) {
				continue
			}
			for j, g := range p[s].gamma[t*k : t*k+k] {
				weight[j] += g
				mean[j] += g * v
			}
		}
	}
	for j := range mean {
		if weight[j] > 0 {
			c.mu[j] = mean[j] / weight[j]
		}
	}
	squares, total := 0.0, 0.0
	for s := range x {
		for t, v := range x[s] {
			if math.IsNaN(v) {
				continue
			}
			for j, g := range p[s].gamma[t*k : t*k+k] {
				squares += g * (v - c.mu[j]) * (v - c.mu[j])
				total += g
			}
		}
	}
	if total > 0 {
		c.left = math.Sqrt(squares / total)
		c.sigma = max(c.left, least)
	}
	clear(c.start)
	moves := make([]float64, k*k)
	for s := range p {
		for j, g := range p[s].start {
			c.start[j] += g / float64(len(p))
		}
		for _, block := range p[s].moves {
			for i, m := range block {
				moves[i] += m
			}
		}
	}
	for i := range k {
		sum := 0.0
		for _, m := range moves[i*k : i*k+k] {
			sum += m
		}
		if sum > 0 {
			for j := range k {
				c.trans[i*k+j] = moves[i*k+j] / sum
			}
		}
	}
}

// stationary is the long-run share of each state, by repeated squaring of the matrix: chains of a handful of states
// that all reach each other, which is what a fit gives. Where a state is never left it has all.
func (c *chain) stationary() []float64 {
	k := c.states()
	m := append([]float64(nil), c.trans...)
	for i := range k { // a chain that never stands still would not settle
		for j := range k {
			m[i*k+j] /= 2
		}
		m[i*k+i] += .5
	}
	next := make([]float64, k*k)
	for range 64 {
		for i := range k {
			row := 0.0
			for j := range k {
				v := 0.0
				for l := range k {
					v += m[i*k+l] * m[l*k+j]
				}
				next[i*k+j] = v
				row += v
			}
			for j := range k {
				next[i*k+j] /= row
			}
		}
		m, next = next, m
	}
	share := make([]float64, k)
	for i := range k { // rows are equal where there is one class; the start weighs them where there are more
		for j := range k {
			share[j] += c.start[i] * m[i*k+j]
		}
	}
	return share
}

// permuted is c with its states in another order.
func (c *chain) permuted(order []int) *chain {
	k := c.states()
	d := c.clone()
	for i, from := range order {
		d.mu[i], d.start[i] = c.mu[from], c.start[from]
		for j, to := range order {
			d.trans[i*k+j] = c.trans[from*k+to]
		}
	}
	return d
}
