package markov

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawChain builds a small chain of two to four models.
func drawChain(t *rapid.T) (*chain, []int, int) {
	m := rapid.IntRange(2, 4).Draw(t, "models")
	n := rapid.IntRange(1, 8/m).Draw(t, "N")
	model := Model{matrices(t, m), stepTimes(t, m, n, 5)}
	b := thresholds(t, m, n)
	g, err := model.grid(n, 0)
	if err != nil {
		t.Fatal(err)
	}
	c, err := build(t.Context(), g, model.Routing, b, n, DefaultMaxBytes)
	if err != nil {
		t.Fatal(err)
	}
	return c, b, n
}

// The bound on the states holds.
func TestStateBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, b, n := drawChain(t)
		if bound := stateBound(c.grid, b, n); float64(c.states()) > bound {
			t.Errorf("%d states, bound %v", c.states(), bound)
		}
	})
}

// It is also close enough that a chain refused for it is really too large. Near B = N it is not close, but small.
func TestStateBoundIsClose(t *testing.T) {
	for _, n := range []int{4, 16, 24, 64} {
		for _, share := range []float64{0, .1, .25, .5, .75, 1} {
			if n == 64 && share < .5 {
				continue
			}
			b := []int{1, 1 + int(share*float64(n-1))}
			m := paper(.35)
			g, err := m.grid(n, 0)
			if err != nil {
				t.Fatal(err)
			}
			c, err := build(t.Context(), g, m.Routing, b, n, DefaultMaxBytes)
			if err != nil {
				t.Fatal(err)
			}
			if bound := stateBound(g, b, n); bound > max(boundSlack*float64(c.states()), 1e5) {
				t.Errorf("N = %d, B = %v: bound %v for %d states", n, b, bound, c.states())
			}
		}
	}
}

// Every row of outcomes is a distribution, and conserves the requests.
func TestOutcomesAreDistributions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _, _ := drawChain(t)
		for i, row := range c.rows {
			sum := 0.0
			for _, p := range c.prob[row.first : row.first+row.len] {
				sum += p
			}
			if math.Abs(sum-1) > 1e-13 {
				t.Errorf("row %d of batches %v sums to %v", i, row.batch, sum)
			}
		}
		edges := 0
		for _, r := range c.row {
			edges += int(c.rows[r].len)
		}
		if edges != len(c.to) {
			t.Errorf("%d outcomes, %d transitions", edges, len(c.to))
		}
	})
}

// Every cycle meets a head: without the transitions into heads and the loops, all go forward.
func TestEveryCycleMeetsAHead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _, _ := drawChain(t)
		at := 0
		for u, r := range c.row {
			for range c.rows[r].len {
				v := int(c.to[at])
				at++
				_, head := slices.BinarySearch(c.head, int32(v))
				loop := v == u && slices.ContainsFunc(c.loops, func(l selfLoop) bool { return int(l.state) == u })
				if v <= u && !head && !loop {
					t.Errorf("transition %d -> %d goes back to no head", u, v)
				}
			}
		}
	})
}

// Backward is the adjoint of forward, for both solvers: mass carried forward and then valued is worth what it is worth
// valued at once.
func TestBackwardIsAdjoint(t *testing.T) {
	check := func(t *rapid.T, c embedded) {
		n := c.heads()
		x := rapid.SliceOfN(rapid.Float64Range(0, 1), n, n).Draw(t, "mass")
		h := rapid.SliceOfN(rapid.Float64Range(-1, 1), n, n).Draw(t, "values")
		price := yield{rapid.Float64Range(0, 1).Draw(t, "token"), rapid.Float64Range(0, 1).Draw(t, "activity"), -.3}
		value, other := slices.Clone(h), slices.Clone(h)
		c.backward([]valuation{{value, price}, {other, yield{activity: 1}}})
		alone := slices.Clone(h)
		c.backward([]valuation{{alone, price}})
		want, want2 := dot(x, value), dot(x, other)
		y := c.forward(x, 0)
		got := dot(x, h) + price.tokens*y.tokens + price.activity*y.activity + price.quanta*y.quanta
		scale := 1 + y.quanta + y.activity + y.tokens
		if math.Abs(got-want) > 1e-11*scale || math.Abs(dot(x, h)+y.activity-want2) > 1e-11*scale {
			t.Errorf("forward %v and %v, backward %v and %v", got, dot(x, h)+y.activity, want, want2)
		}
		for i := range alone {
			if math.Abs(alone[i]-value[i]) > 1e-11*scale {
				t.Errorf("head %d: %v as one of two columns, %v alone", i, value[i], alone[i])
			}
		}
	}
	t.Run("any-model", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			c, _, _ := drawChain(t)
			check(t, newSweeper(c))
		})
	})
	t.Run("two-model", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			n := rapid.IntRange(1, 14).Draw(t, "N")
			p, q := rapid.Float64Range(.01, .99).Draw(t, "P01"), rapid.SampledFrom([]float64{1, .3, .9}).Draw(t, "P10")
			m := Model{
				Routing{[][]float64{{1 - p, p}, {q, 1 - q}}, [][]float64{{1, 0}, {1, 1}}},
				Fixed(time.Duration(rapid.IntRange(1, 9).Draw(t, "L0")), time.Duration(rapid.IntRange(1, 30).Draw(t, "L1"))),
			}
			g, err := m.grid(n, 0)
			if err != nil {
				t.Fatal(err)
			}
			s, err := newTwoModel(m, g, n, DefaultMaxBytes)
			if err != nil {
				t.Fatal(err)
			}
			s.threshold = rapid.IntRange(1, n).Draw(t, "B1")
			check(t, s)
		})
	})
}

// A pass loses and makes no mass.
func TestForwardConservesMass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, _, _ := drawChain(t)
		s := newSweeper(c)
		x := make([]float64, s.heads())
		s.start(x)
		for range 5 {
			sum := 0.0
			for _, w := range x {
				sum += w
			}
			if math.Abs(sum-1) > 1e-12 {
				t.Fatalf("mass %v", sum)
			}
			s.forward(x, negligible)
		}
		for u, w := range s.scratch {
			if w != 0 {
				t.Fatalf("state %d keeps %v", u, w)
			}
		}
	})
}

func TestStateSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStateSet(0)
		known := map[key]int32{}
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			var keys []key
			var want []int32
			for range rapid.IntRange(0, 80).Draw(t, "keys") {
				k := key{rapid.Uint64Range(0, 1<<10).Draw(t, "low"), rapid.Uint64Range(0, 1).Draw(t, "high") << 63}
				if _, seen := known[k]; !seen {
					known[k] = int32(len(known))
				}
				keys, want = append(keys, k), append(want, known[k])
			}
			if got := s.numbers(nil, keys); !slices.Equal(got, want) {
				t.Fatalf("keys %v are numbers %v, want %v", keys, got, want)
			}
		}
	})
}
