package starlark

import (
	"cmp"
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
	// for the reason Why.
	Table int
	Why   error
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
	} else {
		l.Why = err
	}
	spec := f.Spec()
	counts := map[route.Suspension]int64{}
	spec.Program = func(r *route.Request) error { return f.program(r, func(p route.Suspension) { counts[p]++ }) }
	return l.observe(route.NewRunner(spec), s, f.opt.Models, run, counts)
}

// Compile lists a built-in algorithm in the same way: r is the router that route.New returns.
func Compile(name string, r route.Router, models int, s signal.Source, run dispatch.Run) (*Listing, error) {
	l := &Listing{Name: name, Why: errors.New("a Go program")}
	if ruled, ok := r.(route.Ruled); ok {
		for m := range models {
			l.Rules = append(l.Rules, ruled.Rule(step.ModelID(m)))
		}
	}
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
	if l.Table > 0 {
		fmt.Fprintf(&b, "runs as a table of %d states\n", l.Table)
	} else {
		fmt.Fprintf(&b, "runs as a coroutine: %v\n", l.Why)
	}
	b.WriteString("\nsuspension points\n")
	for _, p := range l.Points {
		fmt.Fprintf(&b, "  %-20s %-12s model %d  %d times\n", p.Place, p.Call, p.Model, p.Times)
	}
	p, c := l.P(), l.C()
	for m := range l.Models {
		fmt.Fprintf(&b, "\nmodel %d, %d steps", m, l.Steps[m])
		if m < len(l.Rules) && l.Rules[m].Used() {
			fmt.Fprintf(&b, ", acts on %s", describeRule(l.Rules[m]))
		}
		b.WriteByte('\n')
		l.functions(&b, m, p)
	}
	b.WriteString("\nP, a step on model i is followed by one on model j\n")
	matrix(&b, p)
	b.WriteString("C, tokens that this transition commits\n")
	matrix(&b, c)
	if l.Failed > 0 {
		fmt.Fprintf(&b, "\n%d of %d requests failed: %v\n", l.Failed, l.Requests, l.Err)
	}
	_, err := io.WriteString(w, b.String())
	return err
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
