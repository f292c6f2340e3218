package starlark

import (
	"errors"
	"fmt"

	star "go.starlark.net/starlark"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
)

// request is one request in a file: r in program(r).
type request struct {
	file   *File
	r      *route.Request
	thread *star.Thread
	probe  *probe // nil unless the program is being lowered
	// observe, if not nil, hears of each call that runs a step.
	observe func(route.Suspension)
	stuck   bool
	bound   [methodCount]*star.Builtin // made when first named
}

func (v *request) String() string        { return fmt.Sprintf("request(%d)", v.r.ID()) }
func (v *request) Type() string          { return "request" }
func (v *request) Freeze()               {} // its globals may not hold it: they are frozen before it is made
func (v *request) Truth() star.Bool      { return true }
func (v *request) Hash() (uint32, error) { return 0, errors.New("unhashable: request") }

// The methods, in the order of their names.
const (
	mAccept = iota
	mCommit
	mDecode
	mDecodeWhile
	mDone
	mDraft
	mDrop
	mExtend
	mHeld
	mHold
	mLeft
	mLen
	mNow
	mQuery
	mRand
	mTop
	mVerify
	methodCount
)

type method func(v *request, args star.Tuple) (star.Value, error)

// methods are the calls of a request by number. Each takes positional arguments alone: that is what makes a step cheap.
func methods(i int) (name string, least, most int, m method) {
	switch i {
	case mAccept:
		return "accept", 1, 1, (*request).accept
	case mCommit:
		return "commit", 0, 0, (*request).commit
	case mDecode:
		return "decode", 1, 1, (*request).decode
	case mDecodeWhile:
		return "decode_while", 2, 2, (*request).decodeWhile
	case mDone:
		return "done", 0, 0, (*request).done
	case mDraft:
		return "draft", 1, 1, (*request).draft
	case mDrop:
		return "drop", 0, 1, (*request).drop
	case mExtend:
		return "extend", 1, 1, (*request).extend
	case mHeld:
		return "held", 0, 0, (*request).held
	case mHold:
		return "hold", 0, 0, (*request).hold
	case mLeft:
		return "left", 0, 0, (*request).left
	case mLen:
		return "len", 0, 0, (*request).len
	case mNow:
		return "now", 0, 0, (*request).now
	case mQuery:
		return "query", 0, 0, (*request).query
	case mRand:
		return "rand", 0, 0, (*request).rand
	case mTop:
		return "top", 0, 0, (*request).top
	default:
		return "verify", 1, 1, (*request).verify
	}
}

// Attr is a method, or a fact that never changes: id and prompt.
func (v *request) Attr(name string) (star.Value, error) {
	i := -1
	switch name {
	case "accept":
		i = mAccept
	case "commit":
		i = mCommit
	case "decode":
		i = mDecode
	case "decode_while":
		i = mDecodeWhile
	case "done":
		i = mDone
	case "draft":
		i = mDraft
	case "drop":
		i = mDrop
	case "extend":
		i = mExtend
	case "held":
		i = mHeld
	case "hold":
		i = mHold
	case "left":
		i = mLeft
	case "len":
		i = mLen
	case "now":
		i = mNow
	case "query":
		i = mQuery
	case "rand":
		i = mRand
	case "top":
		i = mTop
	case "verify":
		i = mVerify
	case "id", "prompt":
		if v.probe != nil {
			v.probe.give("reads %s of the request", name)
		}
		if name == "id" {
			return star.MakeInt(int(v.r.ID())), nil
		}
		return star.MakeInt(v.r.Prompt()), nil
	default:
		return nil, nil
	}
	if v.bound[i] == nil {
		v.bound[i] = v.bind(i)
	}
	return v.bound[i], nil
}

// AttrNames implements star.HasAttrs.
func (v *request) AttrNames() []string {
	names := []string{"id", "prompt"}
	for i := range methodCount {
		name, _, _, _ := methods(i)
		names = append(names, name)
	}
	return names
}

// bind makes method i of this request.
func (v *request) bind(i int) *star.Builtin {
	name, least, most, m := methods(i)
	return star.NewBuiltin(name, func(_ *star.Thread, _ *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
		if len(args) < least || len(args) > most || len(kwargs) > 0 {
			return nil, fmt.Errorf("%s: got %d arguments, want %d, by position", name, len(args)+len(kwargs), most)
		}
		if v.probe != nil {
			v.probe.called(i, name)
		}
		if v.observe != nil && suspends(i) {
			v.observed(name, args)
		}
		return m(v, args)
	})
}

// stepped renews the budget of operations.
func (v *request) stepped() {
	v.thread.SetMaxExecutionSteps(v.thread.ExecutionSteps() + v.file.opt.Operations)
}

// model reads a model.
func model(args star.Tuple) (step.ModelID, error) {
	m, err := star.AsInt32(args[0])
	if err != nil {
		return 0, fmt.Errorf("model: %w", err)
	}
	if m < 0 || m > 255 {
		return 0, fmt.Errorf("%w %d", route.ErrUnknownModel, m)
	}
	return step.ModelID(m), nil
}

// token is the step's token as a value.
func (v *request) token(t route.Token) star.Value {
	x := &token{Token: t}
	if v.probe != nil {
		x.probe, x.made = v.probe, v.probe.steps
	}
	return x
}

func (v *request) decode(args star.Tuple) (star.Value, error) {
	m, err := model(args)
	if err != nil {
		return nil, err
	}
	t, err := v.r.Decode(m)
	if err != nil {
		return nil, err
	}
	v.stepped()
	return v.token(t), nil
}

// decodeWhile is decode_while(model, stay): stay is a function of the token, or a rule, and then the program stays
// while it does not fire.
func (v *request) decodeWhile(args star.Tuple) (star.Value, error) {
	m, err := model(args)
	if err != nil {
		return nil, err
	}
	var stay func(route.Token) bool
	switch s := args[1].(type) {
	case *ruleValue:
		rule := s.rule
		stay = func(t route.Token) bool { return !rule.Fires(t.Value(rule.Score)) }
		if v.probe != nil {
			stay = v.probe.stay(v, rule)
		}
	case star.Callable:
		if v.probe != nil {
			v.probe.give("asks a function at each token")
		}
		stay = func(t route.Token) bool { return v.judge(s, t) }
	default:
		return nil, fmt.Errorf("decode_while: got %s, want a function or a rule", args[1].Type())
	}
	t, err := v.r.DecodeWhile(m, stay)
	if err != nil {
		return nil, err
	}
	v.stepped()
	return v.token(t), nil
}

// judge asks a predicate of the file. The program is suspended in its call of decode_while meanwhile.
func (v *request) judge(stay star.Callable, t route.Token) bool {
	v.stepped()
	x, err := star.Call(v.thread, stay, star.Tuple{&token{Token: t}}, nil)
	if err != nil {
		panic(v.failure(err))
	}
	return bool(x.Truth())
}

func (v *request) draft(args star.Tuple) (star.Value, error) {
	m, err := model(args)
	if err != nil {
		return nil, err
	}
	t, err := v.r.Draft(m)
	if err != nil {
		return nil, err
	}
	v.stepped()
	return v.token(t), nil
}

func (v *request) extend(args star.Tuple) (star.Value, error) {
	m, err := model(args)
	if err != nil {
		return nil, err
	}
	t, err := v.r.Extend(m)
	if err != nil {
		return nil, err
	}
	v.stepped()
	return v.token(t), nil
}

func (v *request) verify(args star.Tuple) (star.Value, error) {
	m, err := model(args)
	if err != nil {
		return nil, err
	}
	x, err := v.r.Verify(m)
	if err != nil {
		return nil, err
	}
	v.stepped()
	return newVerdict(x), nil
}

func (v *request) drop(args star.Tuple) (star.Value, error) {
	n := 1
	if len(args) > 0 {
		var err error
		if n, err = star.AsInt32(args[0]); err != nil {
			return nil, fmt.Errorf("drop: %w", err)
		}
	}
	return star.None, caught(func() { v.r.Drop(n) })
}

func (v *request) accept(args star.Tuple) (star.Value, error) {
	n, err := star.AsInt32(args[0])
	if err != nil {
		return nil, fmt.Errorf("accept: %w", err)
	}
	return star.None, caught(func() { v.r.Accept(n) })
}

// caught makes an error of the panic by which a call that makes no sense leaves a Go program.
func caught(f func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			failure, ok := p.(*route.Failure)
			if !ok {
				panic(p)
			}
			err = failure
		}
	}()
	f()
	return nil
}

func (v *request) done(star.Tuple) (star.Value, error) { return star.Bool(v.r.Done()), nil }
func (v *request) left(star.Tuple) (star.Value, error) { return star.MakeInt(v.r.Left()), nil }
func (v *request) held(star.Tuple) (star.Value, error) { return star.MakeInt(v.r.Held()), nil }
func (v *request) len(star.Tuple) (star.Value, error)  { return star.MakeInt(v.r.Len()), nil }
func (v *request) rand(star.Tuple) (star.Value, error) { return star.Float(v.r.Rand()), nil }

func (v *request) now(star.Tuple) (star.Value, error)   { return star.Float(v.r.Now().Seconds()), nil }
func (v *request) query(star.Tuple) (star.Value, error) { return star.Float(v.r.Query()), nil }

func (v *request) hold(star.Tuple) (star.Value, error) {
	v.r.Hold()
	return star.None, nil
}

func (v *request) commit(star.Tuple) (star.Value, error) {
	v.r.Commit()
	return star.None, nil
}

// top is the likeliest next tokens, as (token, probability), likeliest first.
func (v *request) top(star.Tuple) (star.Value, error) {
	c := v.r.Top()
	list := make(star.Tuple, len(c))
	for i := range c {
		list[i] = star.Tuple{star.MakeInt(int(c[i].Token)), star.Float(c[i].Probability)}
	}
	return list, nil
}
