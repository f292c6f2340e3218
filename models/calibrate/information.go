package calibrate

import (
	"context"
	"math"

	"gonum.org/v1/gonum/mat"
)

// blocks is how many parts of a sequence an interval is checked on.
const blocks = 40

// Kinds of parameters of a joint fit.
const (
	ofLaw    = iota // index: the term
	ofState         // index: the state; its mu
	ofSpread        // the logarithm of sigma
	ofMove          // index: the entry of the matrix; its logarithm over that of the row's greatest entry
)

// parameter is one that the log tells something about.
type parameter struct {
	kind, index int
	step        float64 // for differences: a twentieth of the error that it would have with the states known
}

// covariance is what a fit knows of its parameters' errors.
type covariance struct {
	parameters []parameter
	cov        *mat.SymDense
	exact      bool // of the likelihood; otherwise as if the states were known
}

// error is the standard error of a parameter, false where it isn't one.
func (c *covariance) error(kind, index int) (float64, bool) {
	for i, p := range c.parameters {
		if p.kind == kind && p.index == index {
			return math.Sqrt(c.cov.At(i, i)), true
		}
	}
	return 0, false
}

// moves is the covariance of two entries of the matrix; 0 where one is no parameter.
func (c *covariance) moves(a, b int) float64 {
	i, j := -1, -1
	for k, p := range c.parameters {
		if p.kind == ofMove && p.index == a {
			i = k
		}
		if p.kind == ofMove && p.index == b {
			j = k
		}
	}
	if i < 0 || j < 0 {
		return 0
	}
	return c.cov.At(i, j)
}

// top is the greatest entry of a row of the matrix, the one that the others are measured against.
func (c *chain) top(row int) int {
	k := c.states()
	best := row * k
	for i := row * k; i < row*k+k; i++ {
		if c.trans[i] > c.trans[best] {
			best = i
		}
	}
	return best
}

// covariance inverts the observed information of the fit: the second derivatives of its likelihood, hidden states and
// all. The first derivatives are exact (Fisher's identity: those of the complete data, averaged over the states given
// the log; Louis, 1982), the second ones are central differences of them.
//
// That holds if the residuals within a state are independent. So the scores of 40 blocks of the log are looked at too:
// where their spread says that the errors are larger (White, 1982), it is believed.
func (j *joint) covariance(ctx context.Context) (*covariance, error) {
	base := *j
	base.post = make([]posterior, len(j.x))
	base.expect(1)
	c := &covariance{parameters: base.parameters()}
	n := len(c.parameters)
	if n == 0 {
		return c, nil
	}
	h := mat.NewDense(n, n, nil)
	for i, p := range c.parameters {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		up, _ := base.score(c.parameters, base.moved(p, p.step), 1)
		down, _ := base.score(c.parameters, base.moved(p, -p.step), 1)
		for k := range n {
			h.Set(k, i, (down[k]-up[k])/(2*p.step))
		}
	}
	_, parts := base.score(c.parameters, &base, blocks)
	// In units of each parameter's step, so that all are alike.
	info := mat.NewSymDense(n, nil)
	for a := range n {
		for b := a; b < n; b++ {
			info.SetSym(a, b, (h.At(a, b)+h.At(b, a))/2*c.parameters[a].step*c.parameters[b].step)
		}
	}
	var cholesky mat.Cholesky
	inverse := mat.NewSymDense(n, nil)
	if c.exact = cholesky.Factorize(info) && cholesky.Cond() < 1e12; c.exact {
		c.exact = cholesky.InverseTo(inverse) == nil
	}
	if !c.exact { // a step is a twentieth of an error
		inverse.Zero()
		for i := range n {
			inverse.SetSym(i, i, 400)
		}
	}
	c.cov = robust(inverse, parts, c.parameters)
	return c, nil
}

// robust raises a covariance to that of the blocks' scores where that is larger, and puts it into natural units.
func robust(inverse *mat.SymDense, parts [][]float64, parameters []parameter) *mat.SymDense {
	n := len(parameters)
	cov := mat.NewSymDense(n, nil)
	cov.CopySym(inverse)
	if count := float64(len(parts)); count > 1 {
		mean := make([]float64, n)
		for _, s := range parts {
			for i := range s {
				mean[i] += s[i] / count
			}
		}
		middle := mat.NewSymDense(n, nil)
		for _, s := range parts {
			v := mat.NewVecDense(n, nil)
			for i := range s {
				v.SetVec(i, (s[i]-mean[i])*parameters[i].step)
			}
			middle.SymRankOne(middle, count/(count-1), v)
		}
		var half, wide mat.Dense
		half.Mul(inverse, middle)
		wide.Mul(&half, inverse)
		// A correlation keeps its size as its errors grow.
		for a := range n {
			for b := a; b < n; b++ {
				scale := 1.0
				for _, i := range []int{a, b} {
					if now := inverse.At(i, i); now > 0 {
						scale *= math.Sqrt(max(1, wide.At(i, i)/now))
					}
				}
				cov.SetSym(a, b, inverse.At(a, b)*scale)
			}
		}
	}
	for a := range n {
		for b := a; b < n; b++ {
			cov.SetSym(a, b, cov.At(a, b)*parameters[a].step*parameters[b].step)
		}
	}
	return cov
}

// parameters lists what the log tells, with their scale.
func (j *joint) parameters() []parameter {
	var all []parameter
	add := func(kind, index int, information float64) {
		if information > 0 {
			all = append(all, parameter{kind, index, .05 / math.Sqrt(information)})
		}
	}
	s2 := j.chain.sigma * j.chain.sigma
	if j.steps != nil {
		g := j.law.gather(j.steps, j.x[0], nil)
		for i, known := range g.identified(byPriority) {
			if known {
				add(ofLaw, i, g.a[i][i]/s2)
			}
		}
	}
	k := j.chain.states()
	weight, moves := make([]float64, k), make([]float64, k*k)
	for s := range j.x {
		for t, v := range j.x[s] {
			if math.IsNaN(v) {
				continue
			}
			for i, g := range j.post[s].gamma[t*k : t*k+k] {
				weight[i] += g
			}
		}
		for i, m := range j.post[s].moves[0] {
			moves[i] += m
		}
	}
	for i := range k {
		if i > 0 || j.steps == nil {
			add(ofState, i, weight[i]/s2)
		}
	}
	if j.chain.sigma > j.least {
		add(ofSpread, 0, 2*float64(j.observed))
	}
	const seen = .5 // a move that is expected less often says nothing but that it is rare
	for i := range k {
		row := 0.0
		for _, m := range moves[i*k : i*k+k] {
			row += m
		}
		for e := i * k; e < i*k+k; e++ {
			if p := j.chain.trans[e]; e != j.chain.top(i) && moves[e] > seen {
				add(ofMove, e, row*p*(1-p))
			}
		}
	}
	return all
}

// moved is the fit with one parameter moved. The law's maxima stay decided as they are.
func (j *joint) moved(p parameter, by float64) *joint {
	m := *j
	m.chain = j.chain.clone()
	m.post = nil
	switch p.kind {
	case ofLaw:
		m.law[p.index] += by
		m.x = [][]float64{j.residualsAt(&m.law)}
	case ofState:
		m.chain.mu[p.index] += by
	case ofSpread:
		m.chain.sigma *= math.Exp(by)
	case ofMove:
		k := m.chain.states()
		row := m.chain.trans[p.index/k*k : p.index/k*k+k]
		grown := row[p.index%k] * math.Expm1(by)
		row[p.index%k] += grown
		for i := range row {
			row[i] /= 1 + grown
		}
	}
	return &m
}

// residualsAt are the log residuals of another law with j.law's decisions.
func (j *joint) residualsAt(a *affine) []float64 {
	x := make([]float64, len(j.steps))
	for t := range j.steps {
		x[t] = math.NaN()
		if o := &j.steps[t]; o.known() {
			columns := j.law.columns(&o.shape)
			x[t] = o.log - math.Log(a.dot(&columns))
		}
	}
	return x
}

// score is the gradient of m's likelihood by the parameters, and its parts by block of each sequence's steps. The law's
// maxima are those of j.
func (j *joint) score(parameters []parameter, m *joint, blocks int) (total []float64, parts [][]float64) {
	k := m.chain.states()
	s2 := m.chain.sigma * m.chain.sigma
	total = make([]float64, len(parameters))
	var p posterior
	for s := range m.x {
		x := m.x[s]
		p.expect(m.chain, x, blocks)
		mine := make([][]float64, blocks)
		for b := range mine {
			mine[b] = make([]float64, len(parameters))
		}
		pull := make([]float64, k) // by state: gamma times the distance, over the variance
		for t, v := range x {
			if math.IsNaN(v) {
				continue
			}
			out := mine[t*blocks/len(x)]
			all, squares := 0.0, 0.0
			for i, g := range p.gamma[t*k : t*k+k] {
				d := v - m.chain.mu[i]
				pull[i] = g * d / s2
				all += pull[i]
				squares += g * d * d / s2
			}
			var columns [terms]float64
			f := 1.0
			if m.steps != nil {
				columns = j.law.columns(&m.steps[t].shape)
				f = m.law.dot(&columns)
			}
			for i, q := range parameters {
				switch q.kind {
				case ofLaw:
					out[i] += all * columns[q.index] / f
				case ofState:
					out[i] += pull[q.index]
				case ofSpread:
					out[i] += squares - 1
				}
			}
		}
		for b, moves := range p.moves {
			for i, q := range parameters {
				if q.kind != ofMove {
					continue
				}
				row := 0.0
				for _, n := range moves[q.index/k*k : q.index/k*k+k] {
					row += n
				}
				mine[b][i] += moves[q.index] - row*m.chain.trans[q.index]
			}
		}
		for _, out := range mine {
			for i, v := range out {
				total[i] += v
			}
		}
		parts = append(parts, mine...)
	}
	return total, parts
}

// multipliers are those of the states with their intervals.
func (j *joint) multipliers(c *covariance) []Estimate {
	var out []Estimate
	for i, mu := range j.chain.mu {
		e := Estimate{Value: math.Exp(mu)}
		switch se, ok := c.error(ofState, i); {
		case ok:
			e = between(e.Value, math.Exp(mu-z95*se), math.Exp(mu+z95*se))
		case i == 0 && j.steps != nil: // by definition
			e = between(e.Value, e.Value, e.Value)
		}
		out = append(out, e)
	}
	return out
}

// transition is the matrix with intervals, which are symmetric in the logarithm of the odds and so stay within [0, 1].
// A move that was never seen may be as likely as the exact bound for so many steps in its state; one that is certain as
// far from it.
func (j *joint) transition(c *covariance) [][]Estimate {
	k := j.chain.states()
	rows := make([]float64, k)
	for s := range j.post {
		for _, m := range j.post[s].moves {
			for i, n := range m {
				rows[i/k] += n
			}
		}
	}
	out := make([][]Estimate, k)
	for i := range k {
		for e := i * k; e < i*k+k; e++ {
			out[i] = append(out[i], j.move(c, e, rows[i]))
		}
	}
	return out
}

func (j *joint) move(c *covariance, entry int, row float64) Estimate {
	k := j.chain.states()
	first := entry / k * k
	p := j.chain.trans[entry]
	top := j.chain.top(entry / k)
	// The derivatives of log p/(1-p) by the row's parameters.
	slope := make([]float64, k)
	for l := range k {
		other := first + l
		switch {
		case other == top:
		case other == entry:
			slope[l] = 1
		case p < 1:
			slope[l] = -j.chain.trans[other] / (1 - p)
		}
	}
	variance := 0.0
	for a := range k {
		for b := range k {
			variance += slope[a] * slope[b] * c.moves(first+a, first+b)
		}
	}
	_, told := c.error(ofMove, entry)
	if !(variance > 0) || !told && entry != top {
		bound := atMost(row)
		return between(p, max(0, p-bound), min(1, p+bound))
	}
	logit, half := math.Log(p/(1-p)), z95*math.Sqrt(variance)
	return between(p, 1/(1+math.Exp(half-logit)), 1/(1+math.Exp(-half-logit)))
}
