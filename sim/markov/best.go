package markov

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Search says which threshold vectors Best and BuildTable compare.
type Search string

const (
	// SmallEager compares every feasible vector with B_0 = 1. This is the paper's search, and BuildTable's default.
	SmallEager Search = ""
	// Full compares every feasible vector: C(N + M - 1, M) of them, so for small N.
	Full Search = "full"
	// Seeded climbs, by steps of one in one threshold, from the eager vector and from the best one for N - 1 (for a
	// single N: from the largest threshold of the last model); B_0 = 1. It is a heuristic, and may miss an optimum that
	// neither leads to. Against the exhaustive search it missed none for R2R at p = .05, .1, .2, .35, .5 with
	// 6.0 / 27.9, 12 / 55 and 4 / 40 ms, N up to 64. It solves some 6 chains for each N of a table, instead of N.
	Seeded Search = "seeded"
)

// tie is the relative difference below which two throughputs count as equal: above the width of their brackets.
const tie = 1e-9

// Point is one vector's throughput.
type Point struct {
	Threshold  []int
	Throughput float64 // tok/s
}

// Optimum is the best threshold vector for a number of requests.
type Optimum struct {
	Requests   int
	Threshold  []int   // of those within 1e-9 of the best, the first in lexicographic order: it waits least
	Throughput float64 // of that vector, tok/s
	Eager      float64 // throughput of (1, ..., 1), tok/s
	Curve      []Point // every vector that was solved, in lexicographic order
}

// Gain is how much better than eager the best vector is, as a fraction.
func (o Optimum) Gain() float64 { return o.Throughput/o.Eager - 1 }

// Best returns the vector with the highest throughput for n requests. Vectors are compared by throughput, never by the
// shape of the curve: it has several local maxima. When the eager vector attains the upper bound of all of them the
// others are not solved. Errors are Solve's, naming the vector.
func Best(ctx context.Context, m Model, n int, search Search, o Options) (Optimum, error) {
	o = o.filled()
	if err := o.validate(); err != nil {
		return Optimum{}, err
	}
	if err := search.validate(); err != nil {
		return Optimum{}, err
	}
	if err := m.validate(n); err != nil {
		return Optimum{}, err
	}
	g, err := m.grid(n, o.Quantum)
	if err != nil {
		return Optimum{}, err
	}
	s := searcher{Model: m, grid: g, n: n, options: o}
	if search == Seeded {
		return s.climb(ctx, nil)
	}
	return s.exhaust(ctx, search == SmallEager, o.Workers)
}

func (s Search) validate() error {
	switch s {
	case SmallEager, Full, Seeded:
		return nil
	}
	return fmt.Errorf("%w: no search %q", ErrMethod, s)
}

// searcher compares vectors for one N.
type searcher struct {
	Model
	grid    *grid
	n       int
	options Options
	fast    *twoModel // made when needed, and reused; not to be shared by goroutines
}

// throughput solves for one vector: by the fast solver where it applies and nothing else is asked for.
func (s *searcher) throughput(ctx context.Context, threshold []int) (float64, error) {
	o := s.options
	var r Result
	var err error
	if (o.Method == Auto || o.Method == TwoModel) && twoModelApplies(s.Model, s.n, threshold) == nil {
		if s.fast == nil {
			s.fast, err = newTwoModel(s.Model, s.grid, s.n, o.MaxBytes)
		}
		if err == nil {
			r, err = s.fast.solve(ctx, threshold[1], false, o)
		}
	} else {
		r, err = solve(ctx, s.Model, s.grid, s.n, threshold, false, o)
	}
	if err != nil {
		return 0, fmt.Errorf("at N = %d, B = %v: %w", s.n, threshold, err)
	}
	if o.Solved != nil {
		o.Solved()
	}
	return r.Throughput, nil
}

// exhaust solves for every feasible vector.
func (s *searcher) exhaust(ctx context.Context, smallEager bool, workers int) (Optimum, error) {
	var curve []Point
	for b := range feasibleThresholds(s.Models(), s.n, smallEager) {
		curve = append(curve, Point{Threshold: slices.Clone(b)})
	}
	var err error
	curve[0].Throughput, err = s.throughput(ctx, curve[0].Threshold)
	if err != nil {
		return Optimum{}, err
	}
	if bound, err := s.upperBound(s.grid, s.n); err == nil && curve[0].Throughput >= bound*(1-tie) {
		return optimum(s.n, curve[:1]), nil
	}
	// Workers take every workers-th vector: each has its own solver, and no result depends on who found it.
	workers = min(workers, len(curve))
	group, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		group.Go(func() error {
			own := *s
			own.fast = nil
			for i := 1 + w; i < len(curve); i += workers {
				t, err := own.throughput(ctx, curve[i].Threshold)
				if err != nil {
					return err
				}
				curve[i].Throughput = t
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return Optimum{}, err
	}
	return optimum(s.n, curve), nil
}

// climb is the seeded search; before is the best vector for N - 1, nil if unknown.
func (s *searcher) climb(ctx context.Context, before []int) (Optimum, error) {
	m := s.Models()
	gather := eager(m)
	gather[m-1] = s.n
	var curve []Point
	value := func(b []int) (float64, error) {
		for _, p := range curve {
			if slices.Equal(p.Threshold, b) {
				return p.Throughput, nil
			}
		}
		t, err := s.throughput(ctx, b)
		curve = append(curve, Point{slices.Clone(b), t})
		return t, err
	}
	last := before
	if last == nil {
		last = gather
	}
	for _, seed := range [][]int{eager(m), last} {
		at := slices.Clone(seed)
		t, err := value(at)
		if err != nil {
			return Optimum{}, err
		}
		for moved := true; moved; {
			moved = false
			next := slices.Clone(at)
			for i := 1; i < m; i++ {
				for _, d := range []int{1, -1} {
					b := slices.Clone(at)
					b[i] += d
					if b[i] < 1 || Feasible(b, s.n) != nil {
						continue
					}
					u, err := value(b)
					if err != nil {
						return Optimum{}, err
					}
					if u > t*(1+tie) {
						t, next, moved = u, b, true
					}
				}
			}
			at = next
		}
	}
	slices.SortFunc(curve, func(a, b Point) int { return slices.Compare(a.Threshold, b.Threshold) })
	return optimum(s.n, curve), nil
}

// optimum picks the best of a curve in lexicographic order, the eager vector first.
func optimum(n int, curve []Point) Optimum {
	best := 0.0
	for _, p := range curve {
		best = max(best, p.Throughput)
	}
	i := slices.IndexFunc(curve, func(p Point) bool { return p.Throughput >= best*(1-tie) })
	return Optimum{
		Requests: n, Threshold: curve[i].Threshold, Throughput: curve[i].Throughput,
		Eager: curve[0].Throughput, Curve: curve,
	}
}
