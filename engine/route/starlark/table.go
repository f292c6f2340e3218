package starlark

import (
	"slices"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// state is where a lowered program waits for a step.
type state struct {
	place string // in the file
	model step.ModelID
	next  [2]edge // as the model's rule does not fire, and as it does
}

// edge is what the program does after a step.
type edge struct {
	to   int   // state
	drop int32 // tokens
}

// Table is a lowered program: a batch router that keeps one small number a request.
type Table struct {
	route.CommitAll
	file   *File
	states []state
	drafts bool    // it drops tokens where it stays
	exact  bool    // each model has one state: nothing is kept of a request
	at     []uint8 // by handle; nil if exact
	drop   []int32 // by row of the batch being routed
}

func (x *explorer) table() *Table {
	t := &Table{file: x.file, states: x.states}
	for i := range t.states {
		for _, e := range t.states[i].next {
			t.drafts = t.drafts || e.drop > 0 && t.states[e.to].model == t.states[i].model
		}
	}
	t.exact = t.Exact()
	return t
}

var (
	_ route.Follower = (*Table)(nil)
	_ route.Ruled    = (*Table)(nil)
	_ route.Reader   = (*Table)(nil)
	_ route.Drafter  = (*Table)(nil)
	_ route.Chained  = chainedTable{}
)

// Name is the program's name.
func (t *Table) Name() string { return t.file.name }

// States is the number of states.
func (t *Table) States() int { return len(t.states) }

// Router is the table as a router, with its Markov chain where Exact holds.
func (t *Table) Router() route.Router {
	if t.Exact() {
		return chainedTable{t}
	}
	return t
}

// chainedTable is a table whose hops form a Markov chain.
type chainedTable struct{ *Table }

// Chain implements route.Chained.
func (t chainedTable) Chain(rates []float64) (p, c [][]float64) { return t.chain(rates) }

// Fresh implements route.Follower.
func (t chainedTable) Fresh() route.Router { return chainedTable{t.Table.Fresh().(*Table)} }

// Fresh implements route.Follower.
func (t *Table) Fresh() route.Router {
	return &Table{file: t.file, states: t.states, drafts: t.drafts, exact: t.exact}
}

// Begin implements route.Follower.
func (t *Table) Begin(a route.Arrival) (step.ModelID, error) {
	if !t.exact {
		for int(a.Handle) >= len(t.at) {
			t.at = append(t.at, 0)
		}
		t.at[a.Handle] = 0
	}
	return t.states[0].model, nil
}

// End implements route.Follower.
func (t *Table) End(step.Handle) {}

// Close implements route.Follower.
func (t *Table) Close() {}

// Drafts implements route.Drafter.
func (t *Table) Drafts() bool { return t.drafts }

// Rule implements route.Ruled.
func (t *Table) Rule(m step.ModelID) signal.Rule { return t.file.rules[m] }

// Reads implements route.Reader: the scores of the rules.
func (t *Table) Reads() (want step.Columns, topK int) {
	for _, r := range t.file.rules {
		if r.Used() {
			want |= r.Score.Columns()
		}
	}
	return want, 0
}

// Route implements route.Router.
func (t *Table) Route(m step.ModelID, b *step.Batch, res *step.Result, mv *route.Moves) {
	t.drop = slices.Grow(t.drop[:0], b.Len())[:b.Len()]
	rule := t.file.rules[m]
	var score []float64
	if rule.Used() {
		score = route.Column(res, rule.Score)
	}
	if t.exact {
		t.routeExact(m, b, score, mv)
		return
	}
	for i, h := range b.Handle {
		if !b.Sample[i] {
			continue
		}
		bit := 0
		if score != nil && rule.Fires(score[i]) {
			bit = 1
		}
		e := t.states[t.at[h]].next[bit]
		t.at[h] = uint8(e.to)
		mv.To[i], t.drop[i] = t.states[e.to].model, e.drop
		if t.drafts {
			mv.Drop[i] = e.drop
		}
	}
}

// routeExact is Route where a request's state is the model that it is at.
func (t *Table) routeExact(m step.ModelID, b *step.Batch, score []float64, mv *route.Moves) {
	s := &t.states[slices.IndexFunc(t.states, func(s state) bool { return s.model == m })]
	var to [2]step.ModelID
	var drop [2]int32
	for bit, e := range s.next {
		to[bit], drop[bit] = t.states[e.to].model, e.drop
	}
	rule := t.file.rules[m]
	above, threshold := rule.Above, rule.Threshold
	for i := range mv.To {
		bit := 0
		if score != nil {
			if x := score[i]; above && x > threshold || !above && x < threshold {
				bit = 1
			}
		}
		mv.To[i], t.drop[i] = to[bit], drop[bit]
	}
	if t.drafts {
		copy(mv.Drop, t.drop)
	}
}

// Send implements route.Router.
func (t *Table) Send(_ *step.Batch, row int, _ step.ModelID) int32 { return t.drop[row] }

// Exact says whether the program's hops form a Markov chain over the models under iid signals: each model has one
// state.
func (t *Table) Exact() bool {
	seen := map[step.ModelID]bool{}
	for _, s := range t.states {
		if seen[s.model] {
			return false
		}
		seen[s.model] = true
	}
	return true
}

// chain is P and C, as route.Chained returns them; it holds where Exact does.
func (t *Table) chain(rates []float64) (p, c [][]float64) {
	p, c = make([][]float64, len(rates)), make([][]float64, len(rates))
	for i := range p {
		p[i], c[i] = make([]float64, len(rates)), make([]float64, len(rates))
	}
	met := make([]bool, len(rates))
	for _, s := range t.states {
		m := s.model
		met[m] = true
		for bit, e := range s.next {
			rate := rates[m]
			if !t.file.rules[m].Used() {
				rate = 0
			}
			if bit == 0 {
				rate = 1 - rate
			}
			to := t.states[e.to].model
			p[m][to] += rate
			c[m][to] += rate * float64(1-e.drop)
		}
	}
	for i := range p {
		for j := range p[i] {
			if p[i][j] > 0 {
				c[i][j] /= p[i][j]
			}
		}
		if !met[i] { // a model that the program never uses: its requests, if there were any, would return
			p[i][0], c[i][0] = 1, 1
		}
	}
	return p, c
}
