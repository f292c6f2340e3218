package markov

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// Elimination against a dense linear solver.
func TestEliminate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		a := make([]float64, n*n)
		for i := range n {
			row := a[i*n : (i+1)*n]
			for j := range row {
				row[j] = float64(rapid.IntRange(0, 5).Draw(t, "weight"))
			}
			row[(i+1)%n]++
			scale(row)
		}
		balance := mat.NewDense(n, n, nil)
		for i := range n {
			for j := range n {
				balance.Set(j, i, a[i*n+j])
			}
			balance.Set(i, i, balance.At(i, i)-1)
		}
		rhs := mat.NewVecDense(n, nil)
		rhs.SetVec(n-1, 1)
		for j := range n {
			balance.Set(n-1, j, 1)
		}
		var want mat.VecDense
		if err := want.SolveVec(balance, rhs); err != nil {
			t.Skip(err)
		}
		got, err := eliminate(t.Context(), a, n)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range got {
			if math.Abs(x-want.AtVec(i)) > 1e-12 {
				t.Errorf("state %d: %v, want %v", i, x, want.AtVec(i))
			}
		}
	})
}

// Two states that hardly ever change places: every digit is right, which no subtraction would leave.
func TestEliminateKeepsRelativeAccuracy(t *testing.T) {
	const e, f = 1e-13, 3e-13
	pi, err := eliminate(t.Context(), []float64{1 - e, e, f, 1 - f}, 2)
	if err != nil || relative(pi[0], .75) > 1e-15 || relative(pi[1], .25) > 1e-15 {
		t.Errorf("%v, %v: want .75, .25", pi, err)
	}
	// A thousandfold less likely with each state, far beyond the range of numbers.
	n := 200
	a := make([]float64, n*n)
	for i := range n {
		up, down := .999, .001
		a[i*n+min(i+1, n-1)] += up
		a[i*n+max(i-1, 0)] += down
	}
	pi, err = eliminate(t.Context(), a, n)
	if err != nil || relative(pi[n-1], .999*(1-1/998001.)/(1-1/998001.)) > 1e-2 || pi[0] != 0 && pi[0] > 1e-300 {
		t.Errorf("%v, %v", pi[n-3:], err)
	}
}

func TestClosedClasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		next := make([][]int32, n)
		reach := make([][]bool, n)
		for v := range n {
			reach[v] = make([]bool, n)
			reach[v][v] = true
			for _, w := range rapid.SliceOfN(rapid.IntRange(0, n-1), 1, 3).Draw(t, "next") {
				next[v] = append(next[v], int32(w))
				reach[v][w] = true
			}
		}
		for k := range n {
			for i := range n {
				for j := range n {
					reach[i][j] = reach[i][j] || reach[i][k] && reach[k][j]
				}
			}
		}
		class, closed := closedClasses(n, func(v int) []int32 { return next[v] })
		seen := map[int32]bool{}
		for v := range n {
			recurrent := true // whatever v reaches reaches v
			for w := range n {
				recurrent = recurrent && (!reach[v][w] || reach[w][v])
			}
			if (class[v] >= 0) != recurrent {
				t.Errorf("vertex %d: class %d, recurrent %v", v, class[v], recurrent)
			}
			if class[v] >= 0 {
				seen[class[v]] = true
			}
			for w := range n {
				if recurrent && class[v] == class[w] != (reach[v][w] && reach[w][v]) {
					t.Errorf("vertices %d and %d: classes %d and %d", v, w, class[v], class[w])
				}
			}
		}
		if len(seen) != closed {
			t.Errorf("%d classes, counted %d", len(seen), closed)
		}
	})
}

// Over a window as long as the space has dimensions the extrapolation solves the system.
func TestExtrapolationIsExactInFewDimensions(t *testing.T) {
	// x -> G x + c with eigenvalues up to .9999: a plain iteration gets 1e-3 of the way in ten steps.
	apply := func(x []float64) []float64 {
		return []float64{.9999*x[0] + .5*x[1] + 1, -.3*x[1] + .2*x[2] + 2, .8*x[2] - 1}
	}
	want := []float64{0, 0, -5}
	want[1] = (2 + .2*want[2]) / 1.3
	want[0] = (1 + .5*want[1]) / .0001
	e := extrapolator{window: 3}
	x := []float64{0, 0, 0}
	for range 12 {
		x = apply(x)
		if y := e.add(x); y != nil {
			x = slices.Clone(y)
		}
	}
	for i := range want {
		if relative(x[i], want[i]) > 1e-5 {
			t.Errorf("x[%d] = %v, want %v", i, x[i], want[i])
		}
	}
}

func TestExtrapolationOfAConstant(t *testing.T) {
	e := extrapolator{window: 3}
	for range 20 {
		if y := e.add([]float64{1, 2}); y != nil && (y[0] != 1 || y[1] != 2) {
			t.Fatalf("combination %v of [1 2]", y)
		}
	}
}

// spread and expect against their definitions, and against each other.
func TestBinomialKernels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.IntRange(0, 20).Draw(t, "c")
		p := rapid.Float64Range(0, 1).Draw(t, "p")
		slid := rapid.Bool().Draw(t, "slid")
		mass := rapid.SliceOfN(rapid.Float64Range(0, 1), c+1, c+1).Draw(t, "mass")
		value := rapid.SliceOfN(rapid.Float64Range(-1, 1), c+1, c+1).Draw(t, "value")
		rows := binomials(c, p, 1-p)
		out, want := make([]float64, c+1), make([]float64, c+1)
		mean, wantMean := make([]float64, c+1), make([]float64, c+1)
		spread(out, rows, mass, slid, 0)
		expect(mean, rows, value, slid)
		for m := range mass {
			from := 0
			if slid {
				from = c - m
			}
			sum := 0.0
			for x, q := range rowOf(rows, m) {
				want[from+x] += mass[m] * q
				wantMean[m] += value[from+x] * q
				sum += q
			}
			if math.Abs(sum-1) > 1e-13 {
				t.Errorf("row %d sums to %v", m, sum)
			}
		}
		for i := range out {
			if math.Abs(out[i]-want[i]) > 1e-12 || math.Abs(mean[i]-wantMean[i]) > 1e-12 {
				t.Errorf("place %d: %v, want %v; mean %v, want %v", i, out[i], want[i], mean[i], wantMean[i])
			}
		}
	})
}
