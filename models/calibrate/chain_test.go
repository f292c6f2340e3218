package calibrate

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// drawChain draws any chain of so many states.
func drawChain(t *rapid.T, states int) *chain {
	c := newChain(states)
	c.sigma = rapid.Float64Range(.05, 1).Draw(t, "sigma")
	row := func(out []float64) {
		sum := 0.0
		for i := range out {
			out[i] = rapid.Float64Range(.01, 1).Draw(t, "weight")
			sum += out[i]
		}
		for i := range out {
			out[i] /= sum
		}
	}
	row(c.start)
	for i := range states {
		c.mu[i] = rapid.Float64Range(-1, 1).Draw(t, "mu")
		row(c.trans[i*states : (i+1)*states])
	}
	return c
}

func drawResiduals(t *rapid.T, most int) []float64 {
	x := make([]float64, rapid.IntRange(1, most).Draw(t, "steps"))
	for i := range x {
		if x[i] = rapid.Float64Range(-2, 2).Draw(t, "x"); rapid.IntRange(0, 5).Draw(t, "unseen") == 0 {
			x[i] = math.NaN()
		}
	}
	return x
}

// The recursions against the sum over all paths of states.
func TestExpectIsTheSumOverAllPaths(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.IntRange(1, 3).Draw(t, "states")
		c, x := drawChain(t, k), drawResiduals(t, 6)
		n := len(x)
		gamma, moves, total := make([]float64, n*k), make([]float64, k*k), 0.0
		path := make([]int, n)
		for {
			p := c.start[path[0]]
			for i, v := range x {
				if i > 0 {
					p *= c.trans[path[i-1]*k+path[i]]
				}
				if !math.IsNaN(v) {
					d := (v - c.mu[path[i]]) / c.sigma
					p *= math.Exp(-d*d/2) / (c.sigma * math.Sqrt(2*math.Pi))
				}
			}
			total += p
			for i := range path {
				gamma[i*k+path[i]] += p
				if i > 0 {
					moves[path[i-1]*k+path[i]] += p
				}
			}
			i := 0
			for ; i < n; i++ {
				if path[i]++; path[i] < k {
					break
				}
				path[i] = 0
			}
			if i == n {
				break
			}
		}
		var p posterior
		p.expect(c, x, rapid.IntRange(1, 4).Draw(t, "blocks"))
		if total < 1e-200 { // the sum underflows, and no state is ever ruled out by the recursions
			return
		}
		close := func(got, want float64) bool { return math.Abs(got-want) <= 1e-9*math.Max(1, math.Abs(want)) }
		if !close(p.log, math.Log(total)) {
			t.Fatalf("log likelihood %g, want %g", p.log, math.Log(total))
		}
		for i := range gamma {
			if !close(p.gamma[i], gamma[i]/total) {
				t.Fatalf("gamma[%d] = %g, want %g", i, p.gamma[i], gamma[i]/total)
			}
		}
		for i := range moves {
			got := 0.0
			for _, b := range p.moves {
				got += b[i]
			}
			if !close(got, moves[i]/total) {
				t.Fatalf("moves[%d] = %g, want %g", i, got, moves[i]/total)
			}
		}
	})
}

// Baum-Welch never lowers the likelihood.
func TestMaximiseRaisesTheLikelihood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, x := drawChain(t, rapid.IntRange(1, 4).Draw(t, "states")), drawResiduals(t, 60)
		p := make([]posterior, 1)
		p[0].expect(c, x, 1)
		for range 5 {
			before := p[0].log
			c.maximise([][]float64{x}, p, 1e-3)
			p[0].expect(c, x, 1)
			if p[0].log < before-1e-8*math.Max(1, math.Abs(before)) {
				t.Fatalf("from %.12g to %.12g", before, p[0].log)
			}
		}
	})
}

// The gradient that intervals are made of is that of the likelihood.
func TestScoreIsTheGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	law := affine{c0: 6e6, c1: 1.2e5, c2: 400, p0: 7e6, p1: 2e4, p2: 3}
	steps := testSteps(rng, 300)
	c := newChain(3)
	copy(c.mu, []float64{0, .4, -.2})
	copy(c.trans, []float64{.9, .06, .04, .3, .6, .1, .2, .2, .6})
	c.sigma = .1
	state := 0
	for t := range steps {
		u := rng.Float64()
		for state = 0; u > c.trans[state]; state++ {
			u -= c.trans[state]
		}
		steps[t].log = math.Log(law.time(&steps[t].shape)) + c.mu[state] + .1*rng.NormFloat64()
	}
	steps[7].log = math.NaN()
	j := newJoint(steps, law, c, 1e-3)
	j.post = make([]posterior, 1)
	j.expect(1)
	parameters := j.parameters()
	if want := 6 + 2 + 1 + 6; len(parameters) != want {
		t.Fatalf("%d parameters, want %d", len(parameters), want)
	}
	got, parts := j.score(parameters, j, 7)
	for i, p := range parameters {
		likelihood := func(by float64) float64 {
			m := j.moved(p, by)
			var q posterior
			q.expect(m.chain, m.x[0], 1)
			return q.log
		}
		h := p.step / 10
		want := (likelihood(h) - likelihood(-h)) / (2 * h)
		if scale := math.Abs(want) + 1/p.step; math.Abs(got[i]-want) > 1e-5*scale {
			t.Errorf("parameter %+v: %g, want %g", p, got[i], want)
		}
		sum := 0.0
		for _, b := range parts {
			sum += b[i]
		}
		if math.Abs(sum-got[i]) > 1e-9*(math.Abs(got[i])+1/p.step) {
			t.Errorf("parameter %+v: blocks sum to %g, not %g", p, sum, got[i])
		}
	}
}

func TestStationary(t *testing.T) {
	for _, c := range []struct{ trans, want []float64 }{
		{[]float64{1}, []float64{1}},
		{[]float64{.96, .04, .15, .85}, []float64{15. / 19, 4. / 19}},
		{[]float64{0, 1, 1, 0}, []float64{.5, .5}}, // periodic
		{[]float64{.5, .5, 0, 1}, []float64{0, 1}}, // left for good
		{[]float64{1, 0, 0, 1}, []float64{.5, .5}}, // two that are never left: where it began
		{[]float64{0, 1, 0, 0, 0, 1, .5, 0, .5}, []float64{.25, .25, .5}},
	} {
		k := 1
		for k*k < len(c.trans) {
			k++
		}
		m := newChain(k)
		m.trans = c.trans
		for i, got := range m.stationary() {
			if math.Abs(got-c.want[i]) > 1e-9 {
				t.Errorf("%v: %v, want %v", c.trans, m.stationary(), c.want)
				break
			}
		}
	}
}

func TestClusters(t *testing.T) {
	var values []float64
	for i := range 300 {
		values = append(values, []float64{0, 1, 10}[i%3]+float64(i)/3000)
	}
	cuts := clusters(values, 3)
	if len(cuts) != 2 || cuts[0] < .1 || cuts[0] > 1 || cuts[1] < 1.1 || cuts[1] > 10 {
		t.Errorf("cuts at %v", cuts)
	}
	if got := clusters([]float64{3, 3}, 4); len(got) != 0 {
		t.Errorf("one value has cuts at %v", got)
	}
}

// States that lie closer than their spread are told apart by how long they last.
func TestStatesThatLast(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	x := make([]float64, 6000)
	slow := false
	for i := range x {
		if rng.Float64() < .01 {
			slow = !slow
		}
		x[i] = .1 * rng.NormFloat64()
		if slow {
			x[i] += .12
		}
	}
	j, all, err := fitStates(context.Background(), [][]float64{x}, maxStates, leastSpread, nil,
		func(c *chain, n int) *joint {
			return &joint{x: heads([][]float64{x}, n), chain: c.clone(), least: leastSpread}
		})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 || j.chain.states() != 2 {
		t.Fatalf("%d states of %+v", j.chain.states(), all)
	}
	c, err := j.covariance(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	gap := math.Abs(j.chain.mu[1] - j.chain.mu[0])
	if math.Abs(gap-.12) > .012 || !c.exact {
		t.Errorf("states %v apart, want .12; exact %v", gap, c.exact)
	}
	for i, row := range j.transition(c) {
		if !row[1-i].Contains(.01) {
			t.Errorf("leaves state %d with %+v, want .01", i, row[1-i])
		}
	}
}
