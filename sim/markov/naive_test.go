package markov

import (
	"math"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// naiveState is a state as the paper writes it.
type naiveState struct{ k, b, r [3]int }

// naive solves the chain straight from its definition, with maps and a dense linear system: an oracle that shares
// nothing with the product but the definition. steps[i][b] is in quanta. It returns the tokens per quantum and the
// reachable states.
func naive(p, c [][]float64, steps [][]int, threshold []int, n int) (rate float64, states int) {
	m := len(p)
	launch := func(s *naiveState) {
		for i := range m {
			if s.b[i] == 0 && s.k[i] >= threshold[i] {
				s.b[i], s.k[i], s.r[i] = s.k[i], 0, steps[i][s.k[i]]
			}
		}
	}
	// share calls f with every way to send b requests on, and its multinomial probability.
	var share func(row []float64, j, b int, to [3]int, pr float64, f func(to [3]int, pr float64))
	share = func(row []float64, j, b int, to [3]int, pr float64, f func(to [3]int, pr float64)) {
		if j == m-1 {
			to[j] = b
			if pr *= math.Pow(row[j], float64(b)); pr > 0 {
				f(to, pr)
			}
			return
		}
		choose := 1.0
		for x := 0; x <= b; x++ {
			to[j] = x
			if q := pr * choose * math.Pow(row[j], float64(x)); q > 0 {
				share(row, j+1, b-x, to, q, f)
			}
			choose = choose * float64(b-x) / float64(x+1)
		}
	}
	var start naiveState
	start.k[0] = n
	launch(&start)
	index := map[naiveState]int{start: 0}
	list := []naiveState{start}
	var next []map[int]float64
	var tokens, times []float64
	for u := 0; u < len(list); u++ {
		s := list[u]
		tau := math.MaxInt
		for i := range m {
			if s.b[i] > 0 {
				tau = min(tau, s.r[i])
			}
		}
		outcomes := map[naiveState]float64{}
		after := s
		var done []int
		earned := 0.0
		for i := range m {
			if s.b[i] == 0 {
				continue
			}
			if after.r[i] -= tau; after.r[i] == 0 {
				done = append(done, i)
				after.b[i] = 0
				for j := range m {
					earned += float64(s.b[i]) * p[i][j] * c[i][j]
				}
			}
		}
		var each func(x int, s2 naiveState, pr float64)
		each = func(x int, s2 naiveState, pr float64) {
			if x == len(done) {
				launch(&s2)
				outcomes[s2] += pr
				return
			}
			i := done[x]
			share(p[i], 0, s.b[i], [3]int{}, pr, func(to [3]int, pr float64) {
				s3 := s2
				for j := range m {
					s3.k[j] += to[j]
				}
				each(x+1, s3, pr)
			})
		}
		each(0, after, 1)
		row := map[int]float64{}
		for s2, pr := range outcomes {
			v, ok := index[s2]
			if !ok {
				v = len(list)
				index[s2] = v
				list = append(list, s2)
			}
			row[v] = pr
		}
		next, tokens, times = append(next, row), append(tokens, earned), append(times, float64(tau))
	}
	// Balance equations, the last replaced by the normalisation.
	size := len(list)
	a, rhs := mat.NewDense(size, size, nil), mat.NewVecDense(size, nil)
	for u, row := range next {
		for v, pr := range row {
			a.Set(v, u, a.At(v, u)+pr)
		}
		a.Set(u, u, a.At(u, u)-1)
	}
	for u := range size {
		a.Set(size-1, u, 1)
	}
	rhs.SetVec(size-1, 1)
	var pi mat.VecDense
	if err := pi.SolveVec(a, rhs); err != nil {
		return math.NaN(), size
	}
	return mat.Dot(&pi, mat.NewVecDense(size, tokens)) / mat.Dot(&pi, mat.NewVecDense(size, times)), size
}

// matrices draws a routing matrix with a few exact zeros, and commits.
func matrices(t *rapid.T, m int) Routing {
	r := Routing{P: make([][]float64, m), C: make([][]float64, m)}
	for i := range m {
		weights := rapid.SliceOfN(rapid.IntRange(0, 9), m, m).Draw(t, "weights")
		weights[(i+1)%m]++ // a cycle through all models keeps the chain in one piece
		sum := 0
		for _, w := range weights {
			sum += w
		}
		for _, w := range weights {
			r.P[i] = append(r.P[i], float64(w)/float64(sum))
			r.C[i] = append(r.C[i], rapid.SampledFrom([]float64{0, 1, .5}).Draw(t, "commit"))
		}
		r.C[i][(i+1)%m] = 1
	}
	return r
}

// stepTimes draws step times in milliseconds that fall and rise with the batch as they like.
func stepTimes(t *rapid.T, m, n, longest int) [][]time.Duration {
	s := make([][]time.Duration, m)
	for i := range s {
		for range n {
			s[i] = append(s[i], time.Duration(rapid.IntRange(1, longest).Draw(t, "ms"))*time.Millisecond)
		}
	}
	return s
}

// thresholds draws a feasible vector.
func thresholds(t *rapid.T, m, n int) []int {
	b := eager(m)
	left := n - 1
	for i := range b {
		x := rapid.IntRange(0, left).Draw(t, "B-1")
		b[i] += x
		left -= x
	}
	return b
}

func TestSolveMatchesDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.IntRange(2, 3).Draw(t, "models")
		n := rapid.IntRange(1, 7-m).Draw(t, "N")
		model := Model{matrices(t, m), stepTimes(t, m, n, 12/m)}
		b := thresholds(t, m, n)
		quanta := make([][]int, m)
		for i := range quanta {
			quanta[i] = []int{0}
			for _, d := range model.Step[i] {
				quanta[i] = append(quanta[i], int(d/time.Millisecond))
			}
		}
		want, states := naive(model.P, model.C, quanta, b, n)
		if states > 1500 {
			t.Skip("too slow for the oracle")
		}
		want *= 1000
		for _, method := range []Method{Auto, Direct, Dense} {
			r, err := Solve(t.Context(), model, n, b, Options{Method: method})
			if err != nil {
				t.Fatalf("%q: %v", method, err)
			}
			if r.States != states {
				t.Errorf("%q: %d states, by definition %d", method, r.States, states)
			}
			if math.IsNaN(want) { // singular: a part that the start leaves for ever, which elimination takes out
				continue
			}
			if relative(r.Throughput, want) > 1e-9 {
				t.Errorf("%q: %v tok/s, by definition %v", method, r.Throughput, want)
			}
		}
	})
}

// relative is the relative difference of x from want.
func relative(x, want float64) float64 {
	if x == want {
		return 0
	}
	return math.Abs(x-want) / math.Abs(want)
}

func TestNaiveOnGolden(t *testing.T) {
	steps := [][]int{slices.Repeat([]int{60}, 5), slices.Repeat([]int{279}, 5)}
	r := R2R(.35)
	rate, states := naive(r.P, r.C, steps, []int{1, 1}, 4)
	if got := rate * 1e4; math.Abs(got-187.1897) > 5e-5 || states != 715 {
		t.Errorf("%.4f tok/s over %d states, want 187.1897 over 715", got, states)
	}
}
