// Package starlark reads routing programs from .star files: the same program as a Go route.Program, without a rebuild.
//
// A file defines program(r), straight-line code over one request, in the Starlark language with while loops. It may set
// rules, what the program acts on at each model, so that a simulation can make it act at a wanted rate. Its globals are
// frozen; between two steps a program may execute a bounded number of operations; an error says file, line and column.
//
//	rules = rule("score", above = 0.5)
//
//	def program(r):
//	    while not r.done():
//	        t = r.decode(small)
//	        if rules.fires(t):
//	            r.drop()
//	            r.decode(large)
//
// Read file.go (loading), predeclared.go (what a file sees), request.go (the calls), token.go (what they return),
// compile.go (what a program does, as tables) and lower.go (programs that need no coroutine).
package starlark

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	star "go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// DefaultOperations is how many Starlark operations a program may execute between two steps.
const DefaultOperations = 1_000_000

// Options sets up a file for a deployment.
type Options struct {
	Models     int                  // of the deployment, >= 1
	Seed       uint64               // keys the draws of r.rand()
	Operations uint64               // between two steps; 0 is DefaultOperations
	TopK       int                  // candidates of r.top(); 0 is 5
	Print      func(message string) // takes what print writes, with its place; nil discards it
}

// File is a routing program read from a file. It keeps no state: requests and runs may share it.
type File struct {
	name    string // without folder and ending
	path    string
	opt     Options
	main    *star.Function
	rules   []signal.Rule // by model
	reads   step.Columns
	syntax  *syntax.File
	globals star.StringDict
}

// Load reads a program from a file.
func Load(path string, o Options) (*File, error) {
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, src, o)
}

// dialect is Starlark with while loops and sets: a routing program runs until its request is done.
var dialect = syntax.FileOptions{While: true, Set: true}

// Parse reads a program from its source; path stands for it in errors. A fault is an *Error, or several joined ones.
func Parse(path string, src []byte, o Options) (*File, error) {
	if o.Models < 1 || o.Models > step.MaxModels {
		return nil, fmt.Errorf("%s: %d models, want 1 to %d", path, o.Models, step.MaxModels)
	}
	if o.Operations == 0 {
		o.Operations = DefaultOperations
	}
	if o.TopK == 0 {
		o.TopK = 5
	}
	f := &File{name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), path: path, opt: o}
	env := predeclared(o.Models)
	var compiled *star.Program
	var err error
	f.syntax, compiled, err = star.SourceProgramOptions(&dialect, path, src, env.Has)
	if err != nil {
		return nil, faults(err)
	}
	thread := f.thread()
	thread.SetMaxExecutionSteps(o.Operations)
	if f.globals, err = compiled.Init(thread, env); err != nil {
		return nil, f.fault(err)
	}
	f.globals.Freeze()
	if err := f.check(); err != nil {
		return nil, err
	}
	return f, nil
}

// thread is a thread for this file's code.
func (f *File) thread() *star.Thread {
	return &star.Thread{Name: f.name, Print: func(t *star.Thread, message string) {
		if f.opt.Print != nil {
			f.opt.Print(fmt.Sprintf("%s: %s", position(t.CallFrame(1).Pos), message))
		}
	}}
}

// check finds the program and its rules among the globals.
func (f *File) check() error {
	main, ok := f.globals["program"]
	if !ok {
		return &Error{Place: filepath.Base(f.path), Err: errors.New("no function program(r)")}
	}
	if f.main, ok = main.(*star.Function); !ok {
		return &Error{Place: filepath.Base(f.path), Err: fmt.Errorf("program is a %s, want a function program(r)", main.Type())}
	}
	if f.main.NumParams() != 1 || f.main.HasVarargs() || f.main.HasKwargs() {
		return &Error{Place: position(f.main.Position()), Err: errors.New("program must take one parameter, the request")}
	}
	f.rules = make([]signal.Rule, f.opt.Models)
	for m := range f.rules {
		f.rules[m] = signal.Rule{Name: "score", Uniform: true} // a file without rules sees a plain draw
	}
	if set, ok := f.globals["rules"]; ok {
		if err := f.takeRules(set); err != nil {
			return &Error{Place: f.assigned("rules"), Err: err}
		}
	}
	f.reads = f.attributes()
	return nil
}

// takeRules reads the global rules: a rule for the small model, or a dict of rules by model.
func (f *File) takeRules(set star.Value) error {
	clear(f.rules)
	if r, ok := set.(*ruleValue); ok {
		f.rules[0] = r.rule
		return nil
	}
	d, ok := set.(*star.Dict)
	if !ok {
		return fmt.Errorf("rules is a %s, want a rule for the small model or a dict of rules by model", set.Type())
	}
	for _, item := range d.Items() {
		m, err := star.AsInt32(item[0])
		if err != nil || m < 0 || m >= f.opt.Models {
			return fmt.Errorf("rules: no model %s: the deployment has %d, 0 to %d", item[0], f.opt.Models, f.opt.Models-1)
		}
		r, ok := item[1].(*ruleValue)
		if !ok {
			return fmt.Errorf("rules[%d] is a %s, want a rule", m, item[1].Type())
		}
		f.rules[m] = r.rule
	}
	return nil
}

// assigned is where a global is first assigned.
func (f *File) assigned(name string) string {
	for _, s := range f.syntax.Stmts {
		if a, ok := s.(*syntax.AssignStmt); ok {
			if id, ok := a.LHS.(*syntax.Ident); ok && id.Name == name {
				return position(id.NamePos)
			}
		}
	}
	return filepath.Base(f.path)
}

// attributes are the columns of the scores that the file names: t.entropy needs entropies.
func (f *File) attributes() step.Columns {
	var c step.Columns
	syntax.Walk(f.syntax, func(n syntax.Node) bool {
		if d, ok := n.(*syntax.DotExpr); ok {
			c |= scoreColumns[d.Name.Name]
		}
		return true
	})
	return c
}

// scoreColumns are the columns behind attributes and calls.
var scoreColumns = map[string]step.Columns{
	"entropy": step.Entropy, "normalised": step.Normalised, "confidence": step.Confidence, "margin": step.Margin,
	"drafts": step.Drafts, "top": step.Top,
}

// Name is the file's name without folder and ending.
func (f *File) Name() string { return f.name }

// Rules are what the program acts on, by model.
func (f *File) Rules() []signal.Rule { return slices.Clone(f.rules) }

// Spec is the program for a route.Runner.
func (f *File) Spec() route.Spec {
	return route.Spec{
		Name: f.name, Program: f.run, Models: f.opt.Models, Rules: f.rules, Reads: f.reads, TopK: f.opt.TopK, Seed: f.opt.Seed,
	}
}

// Program is the file as a route.Program.
func (f *File) Program() route.Program { return f.run }

// Router is the fastest router of the program: a table if it can be lowered to one, else a coroutine a request.
func (f *File) Router() route.Router {
	if t, err := f.Lower(); err == nil {
		return t.Router()
	}
	return route.NewRunner(f.Spec())
}

// run runs the program for one request.
func (f *File) run(r *route.Request) error { return f.program(r, nil) }

func (f *File) program(r *route.Request, observe func(route.Suspension)) error {
	v := &request{file: f, r: r, thread: f.thread(), observe: observe}
	v.thread.OnMaxSteps = func(t *star.Thread) {
		v.stuck = true
		t.Cancel("stuck")
	}
	v.stepped()
	_, err := star.Call(v.thread, f.main, star.Tuple{v}, nil)
	if err == nil || errors.Is(err, route.ErrLetGo) {
		return err
	}
	return v.failure(err)
}
