package markov

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"
)

const (
	// meanFieldEvents ends the search for a cycle.
	meanFieldEvents = 1 << 20
	// meanFieldSame is how close the mass at each model must come, per request, for a state to count as met before.
	meanFieldSame = 1e-9
	// meanFieldDistinct is the relative difference of throughput that tells two cycles apart.
	meanFieldDistinct = 1e-4
)

// MeanFieldResult is what the deterministic limit settles into, over all the starts that were tried.
type MeanFieldResult struct {
	Min, Max float64 // throughput of the slowest and the fastest cycle, tok/s
	Cycles   []Cycle // by throughput, ascending
	Starts   int
}

// Cycle is one periodic behaviour.
type Cycle struct {
	Throughput float64       // tok/s
	Period     time.Duration // 0 where none was found: the throughput is then the mean of a long stretch
	Starts     int           // that end in it
}

// MeanField runs the chain with its randomness averaged out: requests are a fluid of which a completed step sends on
// exactly the share P_ij, and a model launches when more than B_i - 1 requests wait. Relative fluctuations fall with
// N^-1/2, so this is what a large system does between rare changes. It is a cross-check, not an answer: the recursion
// has several limit cycles, in which the models' steps interlock differently, and the chain spends its time among
// them in proportions that only it knows. All that were met from a grid of starting splits and phases are reported.
//
// The quantum is chosen as for Solve. Errors: ErrModel, ErrInfeasible.
func MeanField(m Model, n int, threshold []int, quantum time.Duration) (MeanFieldResult, error) {
	if err := m.validate(n); err != nil {
		return MeanFieldResult{}, err
	}
	if len(threshold) != m.Models() {
		return MeanFieldResult{}, fmt.Errorf("%w: %d thresholds for %d models", ErrModel, len(threshold), m.Models())
	}
	if err := Feasible(threshold, n); err != nil {
		return MeanFieldResult{}, err
	}
	g, err := m.grid(n, quantum)
	if err != nil {
		return MeanFieldResult{}, err
	}
	var found []Cycle
	for split := range splits(m.Models()) {
		for third := 1; third <= 3; third++ {
			f := newFluid(m, g, n, threshold)
			f.begin(split, float64(third)/3)
			found = append(found, f.settle())
		}
	}
	slices.SortStableFunc(found, func(a, b Cycle) int { return cmp.Compare(a.Throughput, b.Throughput) })
	r := MeanFieldResult{Min: found[0].Throughput, Max: found[len(found)-1].Throughput, Starts: len(found)}
	for _, c := range found {
		if k := len(r.Cycles); k > 0 && c.Throughput <= r.Cycles[k-1].Throughput*(1+meanFieldDistinct) {
			r.Cycles[k-1].Starts++
			continue
		}
		r.Cycles = append(r.Cycles, c)
	}
	return r, nil
}

// splits yields ways to share the requests out over the models, as fractions: all multiples of 1/8 for two models, 1/4
// for three, 1/2 for more. The slice is reused.
func splits(models int) iter.Seq[[]float64] {
	parts := 2
	switch models {
	case 2:
		parts = 8
	case 3:
		parts = 4
	}
	return func(yield func([]float64) bool) {
		share := make([]float64, models)
		var give func(i, left int) bool
		give = func(i, left int) bool {
			if i == models-1 {
				share[i] = float64(left) / float64(parts)
				return yield(share)
			}
			for k := left; k >= 0; k-- {
				share[i] = float64(k) / float64(parts)
				if !give(i+1, left-k) {
					return false
				}
			}
			return true
		}
		give(0, parts)
	}
}

// fluid is the state of the recursion: requests as real numbers, time in quanta.
type fluid struct {
	grid             *grid
	p                [][]float64
	committed        []float64
	threshold        []int
	n                float64
	waiting, running []float64
	left             []int64 // of the step; 0 while idle
	tokens           float64
	elapsed          int64
}

func newFluid(m Model, g *grid, n int, threshold []int) *fluid {
	k := m.Models()
	return &fluid{
		grid: g, p: m.normalized(), committed: m.committed(), threshold: threshold, n: float64(n),
		waiting: make([]float64, k), running: make([]float64, k), left: make([]int64, k),
	}
}

// begin puts the shares of the requests at the models; the first step of every model but 0 is cut to the fraction.
func (f *fluid) begin(share []float64, fraction float64) {
	for i, s := range share {
		f.waiting[i] = s * f.n
	}
	f.launch()
	for i := 1; i < len(f.left); i++ {
		f.left[i] = int64(math.Ceil(float64(f.left[i]) * fraction))
	}
}

// launch starts every idle model with more than B_i - 1 requests waiting. For whole requests that is B_i or more; and
// as the sum of B_i - 1 is below N, some model always runs.
func (f *fluid) launch() {
	for i, k := range f.waiting {
		if f.left[i] == 0 && k > float64(f.threshold[i]-1)+meanFieldSame*f.n {
			batch := min(max(1, int(math.Round(k))), int(f.n))
			f.running[i], f.waiting[i] = k, 0
			f.left[i] = int64(f.grid.steps[i][batch])
		}
	}
}

// advance goes to the next completion.
func (f *fluid) advance() {
	tau := int64(math.MaxInt64)
	for _, r := range f.left {
		if r > 0 {
			tau = min(tau, r)
		}
	}
	f.elapsed += tau
	for i := range f.left {
		if f.left[i] == 0 {
			continue
		}
		if f.left[i] -= tau; f.left[i] > 0 {
			continue
		}
		f.tokens += f.running[i] * f.committed[i]
		for j, p := range f.p[i] {
			f.waiting[j] += f.running[i] * p
		}
		f.running[i] = 0
	}
	f.launch()
}

// settle advances until a state comes back, by Brent's algorithm: the state is compared with one that is taken anew at
// every power of two of events.
func (f *fluid) settle() Cycle {
	waiting, running, left := slices.Clone(f.waiting), slices.Clone(f.running), slices.Clone(f.left)
	tokens, since := f.tokens, f.elapsed
	near := func(a, b []float64) bool {
		for i := range a {
			if math.Abs(a[i]-b[i]) > meanFieldSame*f.n {
				return false
			}
		}
		return true
	}
	mean := func() float64 {
		return (f.tokens - tokens) / (float64(f.elapsed-since) * f.grid.quantum.Seconds())
	}
	for e := 1; ; e++ {
		f.advance()
		if slices.Equal(left, f.left) && near(waiting, f.waiting) && near(running, f.running) {
			return Cycle{Throughput: mean(), Period: time.Duration(f.elapsed-since) * f.grid.quantum, Starts: 1}
		}
		if e == meanFieldEvents {
			return Cycle{Throughput: mean(), Starts: 1}
		}
		if e&(e-1) == 0 {
			copy(waiting, f.waiting)
			copy(running, f.running)
			copy(left, f.left)
			tokens, since = f.tokens, f.elapsed
		}
	}
}
