package engine_test

import (
	"bytes"
	"context"
	"runtime"
	"testing"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
)

// hopping is a backend that says that some requests belong on the large model, and calls a function in each step.
type hopping struct {
	hops func(step.RequestID) bool
	step func()
	res  step.Result
}

func (h *hopping) Forward(_ context.Context, b *step.Batch) (*step.Result, error) {
	h.step()
	h.res.Reset(b.Want, b.Len(), b.TopK, b.Drafted())
	for i := range h.res.Entropy {
		h.res.Entropy[i] = 0
		if h.hops(b.ID[i]) {
			h.res.Entropy[i] = 10
		}
	}
	return &h.res, nil
}

func hoppers(t *testing.T, small, large *hopping) *engine.Engine {
	t.Helper()
	r, err := route.New("entropy", route.Options{Models: 2})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Models: []engine.Model{{Name: "small", Backend: small}, {Name: "large", Backend: large}}, Router: r})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func submit(t *testing.T, e *engine.Engine, id step.RequestID, output int) *engine.Stream {
	t.Helper()
	s, err := e.Submit(context.Background(), engine.Request{ID: id, Prompt: 3, Max: output})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func drain(t *testing.T, s *engine.Stream) {
	t.Helper()
	for ok := true; ok; {
		_, ok = s.Next(context.Background())
	}
	if err := s.Err(); err != nil {
		t.Error(err)
	}
}

// A decode loop that has gone with a request to another model is not missed at the one it came from.
func TestNoModelWaitsForAnothersStep(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	first := func(id step.RequestID) bool { return id == 0 }
	small := &hopping{hops: first, step: func() {}}
	large := &hopping{hops: first, step: func() {
		select {
		case entered <- struct{}{}:
			<-release
		case <-release:
		}
	}}
	e := hoppers(t, small, large)
	a := submit(t, e, 0, 4)
	<-entered
	drain(t, submit(t, e, 1, 50)) // hangs if nobody runs the small model
	close(release)
	drain(t, a)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A lone request that hops back and forth is run by one goroutine: no thread has to be woken for it.
func TestLoneRequestKeepsItsLoop(t *testing.T) {
	var by []string
	note := func() {
		buf := make([]byte, 64)
		buf = buf[:runtime.Stack(buf, false)]
		by = append(by, string(bytes.Fields(buf)[1]))
	}
	all := func(step.RequestID) bool { return true }
	e := hoppers(t, &hopping{hops: all, step: note}, &hopping{hops: all, step: note})
	drain(t, submit(t, e, 0, 500))
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if len(by) < 1000 {
		t.Fatalf("%d steps for 500 tokens that each took both models", len(by))
	}
	for i := len(by) / 2; i < len(by); i++ { // at first both loops may be awake
		if by[i] != by[i-1] {
			t.Fatalf("step %d of %d is another goroutine's than the one before", i, len(by))
		}
	}
}
