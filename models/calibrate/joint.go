package calibrate

import (
	"context"
	"math"
	"slices"
)

const (
	// maxStates is the most states that a fit tries.
	maxStates = 4
	// leastSpread is the least spread that a state is credited with, relative. States that differ by less make no
	// difference to a simulation, a law is seldom right to less, and a spread near a log's rounding would take its
	// digits for states.
	leastSpread = 5e-3
	// selectSteps is how many steps the number of states is chosen on, and chainSteps how many are fitted: more change
	// no digit that a run would show.
	selectSteps = 20000
	chainSteps  = 200000

	maxRounds = 400
	tryRounds = 20 // of each start, before the best goes on
	// Gain in log likelihood, in nats, at which rounds end: of a fit that is only compared, and of the one that is
	// kept.
	roughly = 1e-3
	settled = 1e-5
)

// joint is a law and the chain of its residuals, fitted together: the law to what the chain leaves over, and the chain
// to what the law does. Its likelihood is that of the logarithms of step times.
type joint struct {
	steps []observation // of the one sequence whose law is fitted too; nil where laws are given
	law   affine
	free  int // terms of the law that the log tells

	x     [][]float64 // log residuals by sequence; NaN where unknown
	chain *chain
	post  []posterior
	least float64 // bound of the spread

	log      float64
	observed int
}

// newJoint starts a fit of a law and a chain of so many states from a law fitted without.
func newJoint(steps []observation, a affine, c *chain, least float64) *joint {
	j := &joint{steps: steps, law: a, chain: c, least: least}
	j.x = [][]float64{residuals(steps, &j.law, nil)}
	g := a.gather(steps, j.x[0], nil)
	for _, known := range g.identified(byPriority) {
		if known {
			j.free++
		}
	}
	return j
}

// run goes round until the likelihood gains no more than settled: the posterior of the states, then the law given it,
// then the chain given both. No step lowers the likelihood (Meng and Rubin, 1993: ECM; Baum et al., 1970, for the
// chain).
func (j *joint) run(ctx context.Context, settled float64, most int) error {
	j.post = make([]posterior, len(j.x))
	var offset, spare []float64
	before := math.Inf(-1)
	for range most {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		j.expect(1)
		if j.log-before < settled {
			return nil
		}
		before = j.log
		if j.steps != nil {
			k := j.chain.states()
			offset = resize(offset, len(j.steps))
			for t := range offset {
				offset[t] = 0
				for s, g := range j.post[0].gamma[t*k : t*k+k] {
					offset[t] += g * j.chain.mu[s]
				}
			}
			j.law.improve(j.steps, offset, &j.x[0], &spare)
		}
		j.chain.maximise(j.x, j.post, j.least)
	}
	j.expect(1)
	return nil
}

func (j *joint) expect(blocks int) {
	j.log, j.observed = 0, 0
	for i := range j.x {
		j.post[i].expect(j.chain, j.x[i], blocks)
		j.log += j.post[i].log
		j.observed += j.post[i].observed
	}
}

// bic is the Bayesian information criterion (Schwarz, 1978), less is better: each parameter must earn ln(n)/2 nats.
func (j *joint) bic() float64 {
	// The law's terms count in every candidate alike; its scale and the multipliers' are one.
	return chainBIC(j.log, j.chain.states(), j.observed) + float64(max(j.free-1,
		0))*math.Log(float64(max(j.observed, 1)))
}

// chainBIC counts a chain's own parameters: its states, their spread, its moves and where it begins.
func chainBIC(log float64, states, observed int) float64 {
	parameters := states + 1 + states*(states-1) + states - 1
	return -2*log + float64(parameters)*math.Log(float64(max(observed, 1)))
}

// normalise scales law and chain so that the state with the most steps has multiplier 1, puts it first and the others
// behind it by multiplier: the law is then what a step usually takes, and the simulator's chain begins there. Moves
// that would not be seen in a billion steps are dropped.
func (j *joint) normalise() {
	const never = 1e-9
	k := j.chain.states()
	for i := range k {
		row, sum := j.chain.trans[i*k:i*k+k], 0.0
		for e := range row {
			if row[e] < never {
				row[e] = 0
			}
			sum += row[e]
		}
		for e := range row {
			row[e] /= sum
		}
	}
	share := j.occupancy()
	usual := 0
	for i, s := range share {
		if s > share[usual] {
			usual = i
		}
	}
	order := make([]int, len(share))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case a == b:
			return 0
		case a == usual || b != usual && j.chain.mu[a] < j.chain.mu[b]:
			return -1
		}
		return 1
	})
	j.chain = j.chain.permuted(order)
	if j.steps == nil { // given laws stand
		return
	}
	shift := j.chain.mu[0]
	for i := range j.chain.mu {
		j.chain.mu[i] -= shift
	}
	j.law = j.law.scaled(math.Exp(shift))
	j.x[0] = residuals(j.steps, &j.law, j.x[0])
}

// occupancy is the share of each state in the log, which a chain that leaves a state for good has another of in the
// long run.
func (j *joint) occupancy() []float64 {
	share := make([]float64, j.chain.states())
	steps := 0.0
	for s := range j.post {
		for i, g := range j.post[s].gamma {
			share[i%len(share)] += g
			steps += g
		}
	}
	for i := range share {
		share[i] /= steps
	}
	return share
}

// begin is a chain to start from: states by the values of x, or by their running means, which tells states apart that
// lie close but last.
func begin(x [][]float64, states, window int, least float64) *chain {
	var values []float64
	smooth := make([][]float64, len(x))
	for i := range x {
		smooth[i] = smoothed(x[i], window)
		for _, v := range smooth[i] {
			if !math.IsNaN(v) {
				values = append(values, v)
			}
		}
	}
	c := newChain(states)
	c.sigma = least
	if len(values) == 0 {
		return c
	}
	cuts := clusters(values, states)
	state := func(v float64) int {
		k := 0
		for k < len(cuts) && v >= cuts[k] {
			k++
		}
		return k
	}
	// A spread of one level stands for each pair of states: none is ruled out.
	moves, n := make([]float64, states*states), make([]float64, states)
	for i := range moves {
		moves[i] = 1
	}
	clear(c.mu)
	for i := range x {
		before := -1
		for t, v := range smooth[i] {
			if math.IsNaN(v) {
				before = -1
				continue
			}
			now := state(v)
			if !math.IsNaN(x[i][t]) {
				c.mu[now] += x[i][t]
				n[now]++
			}
			if before >= 0 {
				moves[before*states+now]++
			}
			before = now
		}
	}
	for k := range c.mu {
		if n[k] > 0 {
			c.mu[k] /= n[k]
		}
	}
	squares, total := 0.0, 0.0
	for i := range x {
		for t, v := range x[i] {
			if !math.IsNaN(v) {
				d := v - c.mu[state(smooth[i][t])]
				squares += d * d
				total++
			}
		}
	}
	c.sigma = max(least, math.Sqrt(squares/total))
	for i := range states {
		row := moves[i*states : (i+1)*states]
		sum := 0.0
		for _, m := range row {
			sum += m
		}
		for k := range row {
			c.trans[i*states+k] = row[k] / sum
		}
	}
	return c
}

// smoothed are centred running means over a window of values, those that are not NaN.
func smoothed(x []float64, window int) []float64 {
	if window <= 1 {
		return x
	}
	sums, counts := make([]float64, len(x)+1), make([]float64, len(x)+1)
	for t, v := range x {
		sums[t+1], counts[t+1] = sums[t], counts[t]
		if !math.IsNaN(v) {
			sums[t+1] += v
			counts[t+1]++
		}
	}
	out := make([]float64, len(x))
	for t := range x {
		lo, hi := max(0, t-window/2), min(len(x), t+window/2+1)
		out[t] = (sums[hi] - sums[lo]) / (counts[hi] - counts[lo])
	}
	return out
}

// clusters cuts values into k groups of least squares, over a histogram of bins: exact but for the bins, and the same
// whatever their order. It returns the k-1 cuts, ascending.
func clusters(values []float64, k int) []float64 {
	const bins = 400
	lo, hi := slices.Min(values), slices.Max(values)
	if k == 1 || !(hi > lo) {
		return make([]float64, 0)
	}
	width := (hi - lo) / bins
	var n, sum, squares [bins + 1]float64 // cumulative
	for _, v := range values {
		b := min(int((v-lo)/width), bins-1)
		n[b+1]++
		sum[b+1] += v
		squares[b+1] += v * v
	}
	for b := range bins {
		n[b+1] += n[b]
		sum[b+1] += sum[b]
		squares[b+1] += squares[b]
	}
	cost := func(from, to int) float64 { // of bins [from, to)
		m := n[to] - n[from]
		if m == 0 {
			return 0
		}
		s := sum[to] - sum[from]
		return max(0, squares[to]-squares[from]-s*s/m)
	}
	// best[g][b] is the least cost of the first b bins in g+1 groups, cut[g][b] where its last group begins.
	best, cut := make([][bins + 1]float64, k), make([][bins + 1]int, k)
	for b := range bins + 1 {
		best[0][b] = cost(0, b)
	}
	for g := 1; g < k; g++ {
		for b := range bins + 1 {
			best[g][b] = math.Inf(1)
			for c := range b + 1 {
				if v := best[g-1][c] + cost(c, b); v < best[g][b] {
					best[g][b], cut[g][b] = v, c
				}
			}
		}
	}
	cuts := make([]float64, k-1)
	b := bins
	for g := k - 1; g > 0; g-- {
		b = cut[g][b]
		cuts[g-1] = lo + float64(b)*width
	}
	return cuts
}

// Candidate is what one number of states gives.
type Candidate struct {
	States        int     `json:"states"`
	BIC           float64 `json:"bic"`
	LogLikelihood float64 `json:"log_likelihood"`
}

// fitStates fits chains of one state, two, and so on to most, until one more no longer pays by the BIC, and returns the
// best fit with all candidates. start makes a fresh one from a chain, over the first n steps of each sequence. The last
// fit is made from the law found so far and from each of the others: it has less noise to choose by.
func fitStates(ctx context.Context, x [][]float64, most int, least float64, others []affine,
	start func(c *chain, n int) *joint) (*joint, []Candidate, error) {
	head := heads(x, selectSteps)
	var best *joint
	var all []Candidate
	for states := 1; states <= most; states++ {
		var of *joint
		windows := []int{1, 9}
		if states == 1 {
			windows = windows[:1]
		}
		for _, window := range windows {
			j := start(begin(head, states, window, least), selectSteps)
			if err := j.run(ctx, roughly, tryRounds); err != nil {
				return nil, nil, err
			}
			if of == nil || j.log > of.log {
				of = j
			}
		}
		if err := of.run(ctx, roughly, maxRounds); err != nil {
			return nil, nil, err
		}
		all = append(all, Candidate{states, of.bic(), of.log})
		if best != nil && of.bic() >= best.bic() {
			break
		}
		best = of
	}
	var final *joint
	for _, a := range append([]affine{best.law}, others...) {
		j := start(best.chain, chainSteps)
		if j.steps != nil {
			j.law = a
			j.x[0] = residuals(j.steps, &j.law, j.x[0])
		}
		if err := j.run(ctx, settled, maxRounds); err != nil {
			return nil, nil, err
		}
		if final == nil || j.log > final.log {
			final = j
		}
	}
	final.expect(1)
	final.normalise()
	final.expect(1)
	return final, all, nil
}

// heads are the first n values of each sequence.
func heads(x [][]float64, n int) [][]float64 {
	out := make([][]float64, len(x))
	for i := range x {
		out[i] = x[i][:min(n, len(x[i]))]
	}
	return out
}
