package starlark

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	star "go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// ErrNotFinite is the kind of a program that can't be lowered.
var ErrNotFinite = errors.New("not a finite program")

// maxStates bounds the table of a lowered program.
const maxStates = 128

// Lower makes a batch router of a program whose state between steps is finite, one that decides by nothing but whether
// the rules of its models fire: a table, found by running the program through every state that it can be in. It gives
// the same event log as the program and needs no coroutine. An error of kind ErrNotFinite says what stands in the way.
//
// A program qualifies if it calls nothing but decode, decode_while with a rule, drop and done, calls the first two as
// whole statements or as the right side of an assignment, reads tokens only by fires of their model's rule and before
// the next step, has no for loop around a step, keeps only numbers, strings, rules and tuples of them between steps, and
// does at the last token what it does at any other.
func (f *File) Lower() (*Table, error) {
	if err := f.finite(); err != nil {
		return nil, f.notFinite(err)
	}
	x := &explorer{file: f, index: map[string]int{}}
	if err := x.explore(); err != nil {
		return nil, f.notFinite(err)
	}
	return x.table(), nil
}

func (f *File) notFinite(err error) error {
	var at *Error
	if errors.As(err, &at) {
		return fmt.Errorf("%s: %w: %w", at.Place, ErrNotFinite, at.Err)
	}
	return fmt.Errorf("%s: %w: %w", filepath.Base(f.path), ErrNotFinite, err)
}

// finite checks what can be seen in the source: where steps are called, and that no loop hides its state.
func (f *File) finite() error {
	var def *syntax.DefStmt
	for _, s := range f.syntax.Stmts {
		if d, ok := s.(*syntax.DefStmt); ok && d.Name.Name == "program" {
			def = d
		}
	}
	if def == nil {
		return errors.New("program is not a def statement")
	}
	whole := map[syntax.Expr]bool{} // calls that are statements, or all that an assignment assigns
	var fault error
	syntax.Walk(f.syntax, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ExprStmt:
			whole[n.X] = true
		case *syntax.AssignStmt:
			if _, plain := n.LHS.(*syntax.Ident); plain && n.Op == syntax.EQ {
				whole[n.RHS] = true
			}
		case *syntax.ForStmt:
			if steps(n) {
				fault = &Error{position(n.For), errors.New("a for loop around a step keeps its place to itself: count in a while loop")}
			}
		case *syntax.CallExpr:
			d, ok := n.Fn.(*syntax.DotExpr)
			if !ok || d.Name.Name != "decode" && d.Name.Name != "decode_while" {
				return true
			}
			if start, _ := n.Span(); !inside(def, start) || !whole[n] {
				fault = &Error{position(start), fmt.Errorf("%s is part of an expression, or of another function", d.Name.Name)}
			}
		}
		return fault == nil
	})
	return fault
}

// steps says that a piece of code decodes; of other steps a program is told when it calls them.
func steps(code syntax.Node) (found bool) {
	syntax.Walk(code, func(n syntax.Node) bool {
		if d, ok := n.(*syntax.DotExpr); ok && (d.Name.Name == "decode" || d.Name.Name == "decode_while") {
			found = true
		}
		return !found
	})
	return found
}

// inside says that a position lies in a function.
func inside(d *syntax.DefStmt, p syntax.Position) bool {
	start, end := d.Span()
	after := p.Line > start.Line || p.Line == start.Line && p.Col >= start.Col
	before := p.Line < end.Line || p.Line == end.Line && p.Col <= end.Col
	return after && before
}

// probe watches a program that is being lowered, and decides for it whether rules fire.
type probe struct {
	file  *File
	v     *request
	key   string // of the state in which the program waits for a step
	steps int    // that have run
	fire  bool   // what rules say of the step that has just run
	why   error  // why the program is not finite
}

// give gives up.
func (p *probe) give(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if p.why == nil {
		p.why = &Error{p.file.place(p.v.thread.CallStack()), err}
	}
	panic(&route.Failure{Program: p.file.name, Err: err})
}

// fires is what a rule says of a token.
func (p *probe) fires(t *token, r signal.Rule) bool {
	if t.made != p.steps {
		p.give("asks a rule about a token of an earlier step")
	}
	p.ruled(t.Model, r)
	return p.fire
}

func (p *probe) ruled(m step.ModelID, r signal.Rule) {
	if !p.file.rules[m].Used() || p.file.rules[m] != r {
		p.give("asks a rule that is not the one of model %d", m)
	}
}

// stay is decode_while's predicate.
func (p *probe) stay(v *request, r signal.Rule) func(route.Token) bool {
	return func(t route.Token) bool {
		p.ruled(t.Model, r)
		return !p.fire
	}
}

// called hears of each call of a request's method, before it is made.
func (p *probe) called(i int, name string) {
	switch i {
	case mDone, mDrop:
	case mDecode, mDecodeWhile:
		p.key = p.snapshot()
	default:
		p.give("calls %s", name)
	}
}

// snapshot is the state of the program at a call of a step: where it is and what its variables hold.
func (p *probe) snapshot() string {
	thread := p.v.thread
	if thread.CallStackDepth() != 2 { // the method's and the program's own
		p.give("runs a step from another function")
	}
	frame := thread.DebugFrame(1)
	var b strings.Builder
	b.WriteString(position(frame.Position()))
	for i := range frame.NumLocals() {
		name, value := frame.Local(i)
		b.WriteString(";")
		if !describe(&b, value) {
			p.give("%s holds a %s across a step", name.Name, value.Type())
		}
	}
	return b.String()
}

// describe writes a value that can be part of a state. Tokens are all alike, and like a variable that is not set: a
// program that reads either after the step is not lowered.
func describe(b *strings.Builder, v star.Value) bool {
	switch v := v.(type) {
	case nil, *token:
		b.WriteString("-")
	case *request:
		b.WriteString("r")
	case star.NoneType, star.Bool, star.Int, star.Float, star.String, *ruleValue:
		b.WriteString(v.Type())
		b.WriteString(v.String())
	case star.Tuple:
		b.WriteString("(")
		for _, x := range v {
			if !describe(b, x) {
				return false
			}
			b.WriteString(",")
		}
		b.WriteString(")")
	default:
		return false
	}
	return true
}

// explorer runs a program through its states. A path is what the rules say of each step from the beginning.
type explorer struct {
	file   *File
	states []state
	paths  [][]bool       // one that leads to each state
	index  map[string]int // of a state, by its key and model
}

// explore finds all states, breadth first.
func (x *explorer) explore() error {
	s, err := x.begin(math.MaxInt32 - 2)
	if err != nil {
		return err
	}
	x.find(s, nil)
	s.close()
	for i := 0; i < len(x.states); i++ {
		for _, fire := range []bool{false, true} {
			if fire && !x.file.rules[x.states[i].model].Used() {
				x.states[i].next[1] = x.states[i].next[0]
				continue
			}
			path := append(append([]bool(nil), x.paths[i]...), fire)
			if err := x.follow(i, path); err != nil {
				return err
			}
			if len(x.states) > maxStates {
				return fmt.Errorf("more than %d states", maxStates)
			}
		}
	}
	return x.progresses()
}

// progresses checks that no cycle of steps drops all of its tokens: a table would go round it for ever, where a request
// of the program fails.
func (x *explorer) progresses() error {
	const fresh, open, done = 0, 1, 2
	mark := make([]int, len(x.states))
	var visit func(i int) bool
	visit = func(i int) bool {
		mark[i] = open
		for _, e := range x.states[i].next {
			if e.drop > 0 && (mark[e.to] == open || mark[e.to] == fresh && !visit(e.to)) {
				return false
			}
		}
		mark[i] = done
		return true
	}
	for i := range x.states {
		if mark[i] == fresh && !visit(i) {
			return &Error{x.states[i].place, errors.New("may go on dropping what it decodes")}
		}
	}
	return nil
}

// follow runs a path and notes what its last step leads to; then again with its last token as the request's last.
func (x *explorer) follow(from int, path []bool) error {
	s, err := x.begin(math.MaxInt32 - 2)
	if err != nil {
		return err
	}
	defer s.close()
	for _, fire := range path {
		if err := s.step(fire); err != nil {
			return err
		}
	}
	drop := s.drop
	bit := 0
	if path[len(path)-1] {
		bit = 1
	}
	x.states[from].next[bit] = edge{to: x.find(s, path), drop: drop}

	last, err := x.begin(s.written + drop)
	if err != nil {
		return err
	}
	defer last.close()
	for _, fire := range path {
		if err := last.step(fire); err != nil {
			return fmt.Errorf("at the last token: %w", err)
		}
	}
	if last.drop != drop || drop == 0 && !last.over {
		return errors.New("does something else at the last token")
	}
	return nil
}

// find is the index of the state that s waits in, a new one if need be.
func (x *explorer) find(s *session, path []bool) int {
	key := fmt.Sprint(s.model, " ", s.probe.key)
	i, ok := x.index[key]
	if !ok {
		i = len(x.states)
		x.index[key] = i
		x.states = append(x.states, state{model: s.model, place: s.probe.key[:strings.IndexByte(s.probe.key, ';')]})
		x.paths = append(x.paths, path)
	}
	return i
}

// session is one request of a program that is being explored.
type session struct {
	runner  *route.Runner
	probe   *probe
	model   step.ModelID // that runs the next step
	written int32        // tokens kept so far
	drop    int32        // by the last step
	over    bool         // the program has returned
	moves   route.Moves
}

// begin starts a request of output tokens.
func (x *explorer) begin(output int32) (*session, error) {
	s := &session{probe: &probe{file: x.file}}
	spec := x.file.Spec()
	spec.Program = func(r *route.Request) error {
		v := &request{file: x.file, r: r, thread: x.file.thread(), probe: s.probe}
		s.probe.v = v
		v.stepped()
		_, err := star.Call(v.thread, x.file.main, star.Tuple{v}, nil)
		s.over = true
		if err != nil && !errors.Is(err, route.ErrLetGo) {
			err = v.failure(err)
		}
		return err
	}
	s.runner = route.NewRunner(spec)
	m, err := s.runner.Begin(route.Arrival{Prompt: 1, Output: output})
	if err != nil {
		return nil, s.reason(err)
	}
	s.model = m
	return s, nil
}

// step runs one step, whose rules say fire.
func (s *session) step(fire bool) error {
	s.probe.steps++
	s.probe.fire = fire
	b := &step.Batch{
		Model: s.model, Handle: []step.Handle{0}, ID: []step.RequestID{0}, Pos: []int32{1 + s.written}, Feed: []int32{1},
		Verify: []int32{0}, Sample: []bool{true},
	}
	res := &step.Result{Signal: []float64{0}}
	s.moves.Resize(1, true)
	s.runner.Route(s.model, b, res, &s.moves)
	if err := s.moves.End[0]; err != nil {
		return s.reason(err)
	}
	s.drop = s.moves.Drop[0]
	s.written += 1 - s.drop
	s.model = s.moves.To[0]
	return nil
}

// reason is why a program can't be explored further.
func (s *session) reason(err error) error {
	if s.probe.why != nil {
		return s.probe.why
	}
	var f *route.Failure
	if errors.As(err, &f) && f.Place != "" {
		return &Error{f.Place, f.Err}
	}
	return err
}

func (s *session) close() { s.runner.Close() }
