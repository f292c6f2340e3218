package starlark

import (
	"errors"
	"fmt"
	"path/filepath"

	"go.starlark.net/resolve"
	star "go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/trbench/trbench/engine/route"
)

// Error is a fault in a file.
type Error struct {
	Place string // "mine.star:7:9"
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Place, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// position is a place without folder.
func position(p syntax.Position) string {
	name := filepath.Base(p.Filename())
	if p.Line == 0 {
		return name
	}
	return fmt.Sprintf("%s:%d:%d", name, p.Line, p.Col)
}

// faults makes Errors of what the parser and the resolver found.
func faults(err error) error {
	var s syntax.Error
	if errors.As(err, &s) {
		return &Error{position(s.Pos), errors.New(s.Msg)}
	}
	var list resolve.ErrorList
	if errors.As(err, &list) {
		var all []error
		for _, e := range list {
			all = append(all, &Error{position(e.Pos), errors.New(e.Msg)})
		}
		return errors.Join(all...)
	}
	return err
}

// fault makes an Error of what went wrong while the file's code ran.
func (f *File) fault(err error) error {
	var e *star.EvalError
	if !errors.As(err, &e) {
		return err
	}
	return &Error{f.place(e.CallStack), cause(e)}
}

// place is the innermost position of the file in a stack.
func (f *File) place(stack star.CallStack) string {
	for i := range stack {
		if p := stack.At(i).Pos; p.Line > 0 && p.Filename() == f.path {
			return position(p)
		}
	}
	return filepath.Base(f.path)
}

// loop is where a program that never stops loops. A loop of nothing but pass has no position of its own: it fails at its
// function, whose first while loop is meant.
func (f *File) loop(place string) string {
	at := place
	syntax.Walk(f.syntax, func(n syntax.Node) bool {
		d, ok := n.(*syntax.DefStmt)
		if !ok || position(d.Def) != place {
			return true
		}
		syntax.Walk(d, func(n syntax.Node) bool {
			if w, ok := n.(*syntax.WhileStmt); ok && at == place {
				at = position(w.While)
			}
			return at == place
		})
		return false
	})
	return at
}

// cause is what an evaluation failed with, without what is said elsewhere.
func cause(e *star.EvalError) error {
	if err := e.Unwrap(); err != nil {
		var f *route.Failure
		if errors.As(err, &f) {
			return f.Err
		}
		return err
	}
	return errors.New(e.Msg)
}

// failure is how a request fails that its program failed with err.
func (v *request) failure(err error) *route.Failure {
	var e *star.EvalError
	if !errors.As(err, &e) {
		return &route.Failure{Program: v.file.name, Place: filepath.Base(v.file.path), Err: err}
	}
	f := &route.Failure{Program: v.file.name, Place: v.file.place(e.CallStack), Err: cause(e)}
	if v.stuck {
		f.Place = v.file.loop(f.Place)
		f.Err = fmt.Errorf("%w: %d operations since the last step", route.ErrStuck, v.file.opt.Operations)
	}
	return f
}
