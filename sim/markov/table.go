package markov

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// Provenance says where a table's figures come from; BuildTable appends what is particular.
const Provenance = "computed: exact DTMC, paper appendix D"

// Table is the best thresholds by active requests: what a scheduler looks up when N changes.
type Table struct {
	Provenance string
	Models     []TableModel
	Routing    Routing
	Quantum    time.Duration // the step times were rounded to multiples of it
	Rows       []TableRow    // Rows[n-1] holds for n active requests
}

// TableModel is one model that a table was computed for.
type TableModel struct {
	Name string
	Step []time.Duration // as a row of Model.Step
}

// TableRow is the optimum for one number of active requests.
type TableRow struct {
	Threshold   []int   // by model
	Eager, Best float64 // throughput of (1, ..., 1) and of Threshold, tok/s; both 0 where they are not known
}

// At returns the thresholds for n active requests: those of the first row for n < 1, of the last row beyond the table.
func (t *Table) At(n int) []int { return t.Rows[min(max(n, 1), len(t.Rows))-1].Threshold }

// Thresholds returns one model's thresholds by active requests, from 1.
func (t *Table) Thresholds(model int) []int {
	b := make([]int, len(t.Rows))
	for i, row := range t.Rows {
		b[i] = row.Threshold[model]
	}
	return b
}

// BuildTable computes the best thresholds for 1..most active requests; names are the models', for the file. The step
// times are rounded to one quantum for the whole table. It solves o.Workers numbers of requests at a time, and its
// result does not depend on how many. Errors are Solve's.
func BuildTable(ctx context.Context, m Model, names []string, most int, search Search, o Options) (*Table, error) {
	o = o.filled()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := search.validate(); err != nil {
		return nil, err
	}
	if err := m.validate(most); err != nil {
		return nil, err
	}
	if len(names) != m.Models() {
		return nil, fmt.Errorf("%w: %d names for %d models", ErrModel, len(names), m.Models())
	}
	whole, err := m.grid(most, o.Quantum)
	if err != nil {
		return nil, err
	}
	o.Quantum = whole.quantum
	best, err := buildRows(ctx, m, most, search, o)
	if err != nil {
		return nil, err
	}
	t := &Table{Provenance: Provenance, Routing: m.Routing.clone(), Quantum: whole.quantum}
	if search == Seeded {
		t.Provenance += ", seeded search"
	}
	for i, name := range names {
		t.Models = append(t.Models, TableModel{Name: name, Step: slices.Clone(m.Step[i])})
	}
	for _, b := range best {
		t.Rows = append(t.Rows, TableRow{Threshold: b.Threshold, Eager: b.Eager, Best: b.Throughput})
	}
	return t, nil
}

// buildRows finds the optimum for 1..most requests. An exhaustive search has the large ones, which take longest, first;
// a seeded one goes up, each from the last.
func buildRows(ctx context.Context, m Model, most int, search Search, o Options) ([]Optimum, error) {
	best := make([]Optimum, most)
	searcherFor := func(n int) (*searcher, error) {
		g, err := m.grid(n, o.Quantum)
		return &searcher{Model: m, grid: g, n: n, options: o}, err
	}
	if search == Seeded {
		var before []int
		for n := 1; n <= most; n++ {
			s, err := searcherFor(n)
			if err == nil {
				best[n-1], err = s.climb(ctx, before)
			}
			if err != nil {
				return nil, err
			}
			before = best[n-1].Threshold
		}
		return best, nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.Workers)
	for n := most; n >= 1; n-- {
		group.Go(func() error {
			s, err := searcherFor(n)
			if err == nil {
				best[n-1], err = s.exhaust(ctx, search == SmallEager, 1)
			}
			return err
		})
	}
	return best, group.Wait()
}

func (r Routing) clone() Routing {
	return Routing{P: cloneRows(r.P), C: cloneRows(r.C)}
}

func cloneRows(rows [][]float64) [][]float64 {
	c := make([][]float64, len(rows))
	for i, row := range rows {
		c[i] = slices.Clone(row)
	}
	return c
}

// Model is what the table was computed for.
func (t *Table) Model() Model {
	m := Model{Routing: t.Routing}
	for _, x := range t.Models {
		m.Step = append(m.Step, x.Step)
	}
	return m
}
