package calibrate

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// The solution of a bounded problem meets the conditions of Karush, Kuhn and Tucker: no gradient where a coefficient is
// free, and one that pushes against the bound where it lies there.
func TestMinimise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g gram
		var at [terms]float64
		n := rapid.IntRange(1, 30).Draw(t, "observations")
		var xs [][terms]float64
		var ys []float64
		for range n {
			var x [terms]float64
			for j := range x {
				x[j] = rapid.Float64Range(0, 3).Draw(t, "x")
			}
			xs, ys = append(xs, x), append(ys, rapid.Float64Range(-2, 5).Draw(t, "y"))
		}
		for j := range at {
			at[j] = rapid.Float64Range(0, 2).Draw(t, "start")
		}
		for i := range xs {
			r := ys[i]
			for j := range at {
				r -= xs[i][j] * at[j]
			}
			g.add(&xs[i], r, 1)
		}
		known := g.identified(byPriority)
		got := at
		g.minimise(&got, known)
		gradient := [terms]float64{} // of half the loss, downhill
		size := 1.0
		for i := range xs {
			r := ys[i]
			for j := range got {
				r -= xs[i][j] * got[j]
			}
			for j := range got {
				gradient[j] += xs[i][j] * r
				size += math.Abs(xs[i][j] * ys[i])
			}
		}
		for j := range got {
			switch {
			case got[j] < 0 || !known[j] && got[j] != 0:
				t.Fatalf("coefficient %d is %g", j, got[j])
			case got[j] > 0 && math.Abs(gradient[j]) > 1e-5*size, known[j] && gradient[j] > 1e-5*size:
				t.Fatalf("coefficient %d is %g with gradient %g of %g", j, got[j], gradient[j], size)
			}
		}
	})
}

func TestIdentified(t *testing.T) {
	rows := func(x ...[terms]float64) (g gram) {
		for i := range x {
			g.add(&x[i], 1, 1)
		}
		return g
	}
	for _, c := range []struct {
		name string
		g    gram
		want [terms]bool
	}{
		{"nothing", rows(), [terms]bool{}},
		{"one batch", rows([terms]float64{1, 4, 100}, [terms]float64{1, 4, 200}), [terms]bool{true, false, true}},
		{"context as batch", rows([terms]float64{1, 4, 400}, [terms]float64{1, 2, 200}),
			[terms]bool{true, false, true}},
		{"all", rows([terms]float64{1, 4, 100}, [terms]float64{1, 4, 200}, [terms]float64{1, 3, 200}),
			[terms]bool{true, true, true}},
		{"one prompt", rows([terms]float64{0, 0, 0, 1, 9, 81}), [terms]bool{p1: true}},
		{"two prompts", rows([terms]float64{0, 0, 0, 1, 9, 81}, [terms]float64{0, 0, 0, 1, 8, 64}),
			[terms]bool{p0: true, p1: true}},
	} {
		if got := c.g.identified(byPriority); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
