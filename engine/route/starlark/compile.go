package starlark

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	star "go.starlark.net/starlark"

	"github.com/trbench/trbench/engine/dispatch"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// Listing is what a program compiles to, as seen on given signals: the places where it waits for a step, the paper's
// three functions as tables, and the matrices of its hops.
type Listing struct {
	Name   string
	Rules  []signal.Rule // by model
	Points []Point       // by place
	*dispatch.Observation
	// Table is the number of states of the batch router that the program is lowered to; 0 where it runs as a coroutine,
	// for the reason Why, or, where that is nil, as a batch router that is built in.
	Table int
	Why   error
	// Rates are the probabilities with which the rules fire on the given signals, by model. Where they are set and the
	// program's hops form a Markov chain, its matrices are exact.
	Rates   []float64
	chained route.Chained // nil: the hops form no chain
}

// Chain is P and C of the program's hops: exact ones where the hops form a Markov chain whose rates are known, else
// those observed. A model that was never used returns to the smallest.
func (l *Listing) Chain() (p, c [][]float64, exact bool) {
	if l.chained != nil && l.Rates != nil {
		p, c = l.chained.Chain(l.Rates)
		return p, c, true
	}
	p, c = l.P(), l.C()
	for i := range p {
		if l.steps(i) == 0 {
			p[i][0], c[i][0] = 1, 1
		}
	}
	return p, c, false
}

// steps are the steps on model i that were followed by another one.
func (l *Listing) steps(i int) int64 {
	sum := int64(0)
	for _, n := range l.To[i] {
		sum += n
	}
	return sum
}

// Point is a place where the program waits for a step on one model.
type Point struct {
	route.Suspension
	Times int64
}

// Compile runs the file's program on what a source says, and lists what it does.
func (f *File) Compile(s signal.Source, run dispatch.Run) (*Listing, error) {
	l := &Listing{Name: f.name, Rules: f.Rules()}
	if t, err := f.Lower(); err == nil {
		l.Table = t.States()
		l.chained, _ = t.Router().(route.Chained)
	} else {
		l.Why = err
	}
	spec := f.Spec()
	counts := map[route.Suspension]int64{}
	spec.Program = func(r *route.Request) error { return f.program(r, func(p route.Suspension) { counts[p]++ }) }
	return l.observe(route.NewRunner(spec), s, f.opt.Models, run, counts)
}

// Compile lists a built-in algorithm in the same way: r is its program, as route.New returns it with Options.Program;
// batch says that it has a batch form too, which is what runs.
func Compile(name string, r route.Router, batch bool, models int, s signal.Source, run dispatch.Run) (*Listing, error) {
	l := &Listing{Name: name}
	if !batch {
		l.Why = errors.New("a Go program")
	}
	if ruled, ok := r.(route.Ruled); ok {
		for m := range models {
			l.Rules = append(l.Rules, ruled.Rule(step.ModelID(m)))
		}
	}
	l.chained, _ = r.(route.Chained)
	counts := map[route.Suspension]int64{}
	return l.observe(route.Observed(r, func(p route.Suspension) { counts[p]++ }), s, models, run, counts)
}

func (l *Listing) observe(
	r route.Router, s signal.Source, models int, run dispatch.Run, counts map[route.Suspension]int64,
) (*Listing, error) {
	o, err := dispatch.Observe(r, s, models, run)
	if err != nil {
		return nil, err
	}
	l.Observation = o
	for p, n := range counts {
		l.Points = append(l.Points, Point{p, n})
	}
	slices.SortFunc(l.Points, func(a, b Point) int {
		return cmp.Or(comparePlaces(a.Place, b.Place), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Call, b.Call))
	})
	return l, nil
}

// comparePlaces orders "mine.star:7:9" by its numbers.
func comparePlaces(a, b string) int {
	x, y := strings.Split(a, ":"), strings.Split(b, ":")
	for i := range min(len(x), len(y)) {
		if x[i] == y[i] {
			continue
		}
		if len(x[i]) != len(y[i]) && i > 0 {
			return cmp.Compare(len(x[i]), len(y[i]))
		}
		return cmp.Compare(x[i], y[i])
	}
	return cmp.Compare(len(x), len(y))
}

// Write writes the listing for people.
func (l *Listing) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "program %s, %d models\n", l.Name, l.Models)
	switch {
	case l.Table > 0:
		fmt.Fprintf(&b, "runs as a table of %d states\n", l.Table)
	case l.Why == nil:
		b.WriteString("runs as a batch router that is built in; below: the same as a program\n")
	default:
		fmt.Fprintf(&b, "runs as a coroutine: %v\n", l.Why)
	}
	b.WriteString("\nsuspension points\n")
	for _, p := range l.Points {
		fmt.Fprintf(&b, "  %-20s %-12s model %d  %d times\n", p.Place, p.Call, p.Model, p.Times)
	}
	p := l.P()
	for m := range l.Models {
		fmt.Fprintf(&b, "\nmodel %d, %d steps", m, l.Steps[m])
		if m < len(l.Rules) && l.Rules[m].Used() {
			fmt.Fprintf(&b, ", acts on %s", describeRule(l.Rules[m]))
		}
		b.WriteByte('\n')
		l.functions(&b, m, p)
	}
	p, c, exact := l.Chain()
	how := "observed: a Markov chain with these is near the program, no more"
	if exact {
		how = "exact at these rates"
	}
	fmt.Fprintf(&b, "\nP, a step on model i is followed by one on model j (%s)\n", how)
	matrix(&b, p)
	b.WriteString("C, tokens that this transition commits\n")
	matrix(&b, c)
	if l.Failed > 0 {
		fmt.Fprintf(&b, "\n%d of %d requests failed: %v\n", l.Failed, l.Requests, l.Err)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// JSON writes the listing as one document. Its p and c are the matrices that trbench markov --chain reads.
func (l *Listing) JSON(w io.Writer) error {
	type point struct {
		Place string       `json:"place"`
		Call  string       `json:"call"`
		Model step.ModelID `json:"model"`
		Times int64        `json:"times"`
	}
	type hop struct {
		From      int     `json:"from"`
		To        int     `json:"to"`
		Times     int64   `json:"times"`
		Dropped   float64 `json:"dropped_tokens"`   // mean: what send takes back, and drafts that were not kept
		Committed float64 `json:"committed_tokens"` // mean
		Verified  float64 `json:"drafts_to_verify"` // mean: what receive does not commit
	}
	p, c, exact := l.Chain()
	doc := struct {
		Program string      `json:"program"`
		Models  int         `json:"models"`
		States  int         `json:"table_states"` // 0: a coroutine, or a built-in batch router
		Why     string      `json:"coroutine_why,omitempty"`
		Rules   []string    `json:"rules"` // by model
		Points  []point     `json:"suspension_points"`
		Hops    []hop       `json:"hops"`
		P       [][]float64 `json:"p"`
		C       [][]float64 `json:"c"`
		Exact   bool        `json:"exact"`
		Failed  int         `json:"failed_requests"`
		Error   string      `json:"error,omitempty"`
	}{Program: l.Name, Models: l.Models, States: l.Table, P: p, C: c, Exact: exact, Failed: l.Failed}
	if l.Why != nil {
		doc.Why = l.Why.Error()
	}
	if l.Err != nil {
		doc.Error = l.Err.Error()
	}
	for _, r := range l.Rules {
		text := ""
		if r.Used() {
			text = describeRule(r)
		}
		doc.Rules = append(doc.Rules, text)
	}
	for _, x := range l.Points {
		doc.Points = append(doc.Points, point{x.Place, x.Call, x.Model, x.Times})
	}
	for i := range l.To {
		for j, n := range l.To[i] {
			if n > 0 {
				mean := func(x [][]int64) float64 { return float64(x[i][j]) / float64(n) }
				doc.Hops = append(doc.Hops, hop{i, j, n, mean(l.Dropped), mean(l.Committed), mean(l.Verified)})
			}
		}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // rules have < and >
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}

// functions writes route, send and receive of model m.
func (l *Listing) functions(b *strings.Builder, m int, p [][]float64) {
	for j, x := range p[m] {
		if x > 0 {
			fmt.Fprintf(b, "  route    to model %d with probability %.4f\n", j, x)
		}
	}
	for j, n := range l.To[m] {
		if n > 0 && j != m {
			fmt.Fprintf(b, "  send     to model %d: drops %.4f tokens, commits %.4f\n", j, float64(l.Dropped[m][j])/float64(n),
				float64(l.Committed[m][j])/float64(n))
		}
	}
	for i := range l.To {
		if n := l.To[i][m]; n > 0 && i != m {
			fmt.Fprintf(b, "  receive  from model %d: %.4f drafts to verify, the rest committed\n", i,
				float64(l.Verified[i][m])/float64(n))
		}
	}
}

func describeRule(r signal.Rule) string {
	switch {
	case r.Uniform:
		return "a draw"
	case r.Above:
		return fmt.Sprintf("%s > %g", r.Name, r.Threshold)
	}
	return fmt.Sprintf("%s < %g", r.Name, r.Threshold)
}

func matrix(b *strings.Builder, m [][]float64) {
	for _, row := range m {
		b.WriteString(" ")
		for _, x := range row {
			fmt.Fprintf(b, " %8.4f", x)
		}
		b.WriteByte('\n')
	}
}

// suspends says that a method runs a step.
func suspends(i int) bool {
	return i == mDecode || i == mDecodeWhile || i == mDraft || i == mExtend || i == mVerify
}

// observed hears of a call that runs a step.
func (v *request) observed(name string, args star.Tuple) {
	m, err := star.AsInt32(args[0])
	if err != nil || m < 0 || m > 255 {
		return // the call itself will say so
	}
	v.observe(route.Suspension{Place: v.file.place(v.thread.CallStack()), Call: name, Model: step.ModelID(m)})
}
