package engine_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
)

// locked is a backend that is locked to its OS thread while it works, as a GPU's must be. It says that the small model's
// every third token is unsure.
type locked struct {
	lock bool
	n    int
	res  step.Result
}

func (l *locked) Forward(_ context.Context, b *step.Batch) (*step.Result, error) {
	if l.lock {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
	}
	l.res.Reset(b.Want, b.Len(), b.TopK, b.Drafted())
	for i := range l.res.Confidence {
		l.n++
		l.res.Confidence[i] = float64(l.n % 3)
	}
	return &l.res, nil
}

// Programs run whatever threads the engine's loops and callers are locked to; one that fails ends its own request with
// name and line; nothing is left behind.
func TestProgramsOnLockedThreads(t *testing.T) {
	before := runtime.NumGoroutine()
	program := func(r *route.Request) error {
		if r.ID() == 3 {
			panic("not this one")
		}
		if r.ID() == 7 {
			r.Decode(0)
			var none []int
			_ = none[r.Len()]
		}
		return route.Cascade(.5)(r)
	}
	e, err := engine.New(engine.Config{
		Models: []engine.Model{{Name: "small", Backend: &locked{}}, {Name: "large", Backend: &locked{lock: true}}},
		Router: route.NewRunner(route.Spec{Name: "mine", Program: program, Models: 2, Reads: step.Confidence}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var clients sync.WaitGroup
	for i := range 12 {
		clients.Go(func() {
			if i%2 == 0 {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
			}
			s, err := e.Submit(ctx, engine.Request{ID: step.RequestID(i), Prompt: 5, Max: 40})
			if i == 3 {
				if err == nil || !strings.Contains(err.Error(), "program mine: program_test.go:") {
					t.Errorf("request 3: %v", err)
				}
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			tokens := 0
			for c, ok := s.Next(ctx); ok; c, ok = s.Next(ctx) {
				tokens += c.Tokens
			}
			var f *route.Failure
			switch {
			case i == 7 && (!errors.As(s.Err(), &f) || f.Program != "mine" || !strings.HasPrefix(f.Place, "program_test.go:")):
				t.Errorf("request 7: %v", s.Err())
			case i != 7 && (s.Err() != nil || tokens != 40):
				t.Errorf("request %d: %d tokens, %v", i, tokens, s.Err())
			}
		})
	}
	clients.Wait()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	settled(t, before)
}

// A client that goes away lets its program go too; so does an engine that closes with requests active.
func TestProgramsAreLetGo(t *testing.T) {
	before := runtime.NumGoroutine()
	returned := make(chan error, 2)
	program := func(r *route.Request) error {
		for i := 0; ; i++ {
			step := r.Draft
			if i%100 == 99 { // a program that commits nothing fails in the end
				step = r.Decode
			}
			if _, err := step(0); err != nil {
				returned <- err
				return err
			}
			if i%100 != 99 {
				r.Drop(1)
			}
		}
	}
	e, err := engine.New(engine.Config{
		Models: []engine.Model{{Name: "small", Backend: &locked{}}, {Name: "large", Backend: &locked{}}},
		Router: route.NewRunner(route.Spec{Name: "endless", Program: program, Models: 2}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := e.Submit(ctx, engine.Request{ID: 0, Prompt: 5, Max: 1 << 24})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Submit(context.Background(), engine.Request{ID: 1, Prompt: 5, Max: 1 << 24}); err != nil {
		t.Fatal(err)
	}
	cancel()
	for ok := true; ok; {
		_, ok = s.Next(context.Background())
	}
	if !errors.Is(s.Err(), engine.ErrCancelled) {
		t.Error(s.Err())
	}
	if err := <-returned; !errors.Is(err, route.ErrLetGo) {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err := <-returned; !errors.Is(err, route.ErrLetGo) {
		t.Error(err)
	}
	settled(t, before)
}

// settled waits until no more goroutines run than before.
func settled(t *testing.T, before int) {
	t.Helper()
	for range 10_000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
}
