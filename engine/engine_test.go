package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/backend/fake"
	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// start makes an engine of two models over the fake backend, inside a synctest bubble.
func start(t *testing.T, kvTokens, maxActive int) *engine.Engine {
	t.Helper()
	r, err := route.New("r2r", route.Options{Models: 2})
	if err != nil {
		t.Fatal(err)
	}
	ruled := r.(route.Ruled)
	s, err := signal.New(signal.Config{Seed: 3, Rules: []signal.Rule{ruled.Rule(0), ruled.Rule(1)}, Rates: []float64{.3, 0}})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	now := func() clock.Instant { return clock.Instant(time.Since(begin)) }
	machine := fake.New(fake.Config{Latency: constants(2e6, 7e6)(), Signal: s, Rows: 256, Now: now})
	c := engine.Config{Router: r, Now: now, MaxActive: maxActive}
	table := core.Table{{1, 3}}.Lowered()
	for i := range 2 {
		c.Models = append(c.Models, engine.Model{
			Backend: machine.Backend(step.ModelID(i)), KVTokens: kvTokens, Policy: core.Policy{Threshold: table.Column(i), TokenBudget: 200},
		})
	}
	e, err := engine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// A third of the clients leaves at a random moment: the others get all their tokens, and no KV block, handle or
// goroutine is left. A goroutine left behind fails the bubble.
func TestClientsThatLeave(t *testing.T) {
	n := 2000
	if testing.Short() {
		n = 300
	}
	synctest.Test(t, func(t *testing.T) {
		e := start(t, 400, 0)
		rng := rand.New(rand.NewPCG(1, 2))
		var clients sync.WaitGroup
		var mu sync.Mutex
		cancelled := 0
		for id := range n {
			time.Sleep(time.Duration(rng.IntN(4)) * time.Millisecond)
			ctx, cancel := context.WithCancel(context.Background())
			leaves := rng.IntN(10) < 3
			after := time.Duration(rng.IntN(60)) * time.Millisecond
			r := engine.Request{ID: step.RequestID(id), Prompt: 1 + rng.IntN(50), Max: 1 + rng.IntN(12)}
			s, err := e.Submit(ctx, r)
			if err != nil {
				t.Fatal(err)
			}
			if leaves {
				clients.Go(func() {
					time.Sleep(after)
					cancel()
				})
			}
			clients.Go(func() {
				tokens := 0
				for {
					c, ok := s.Next(context.Background())
					if !ok {
						break
					}
					tokens += c.Tokens
				}
				mu.Lock()
				defer mu.Unlock()
				switch err := s.Err(); {
				case errors.Is(err, engine.ErrCancelled) && leaves && tokens < r.Max:
					cancelled++
				case err != nil || tokens != r.Max:
					t.Errorf("request %d: %d of %d tokens, %v", id, tokens, r.Max, err)
				}
				cancel()
			})
		}
		clients.Wait()
		time.Sleep(time.Second)
		if err := e.Idle(); err != nil {
			t.Error(err)
		}
		if cancelled < n/20 {
			t.Errorf("only %d of %d requests were cancelled in time", cancelled, n)
		}
		if s := e.Stats(); s[0].Preempted+s[0].Dropped+s[1].Preempted+s[1].Dropped == 0 {
			t.Error("KV was never short: the test shows nothing about pressure")
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Requests beyond MaxActive are refused, not queued.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, 0, 2)
		defer e.Close()
		ctx := context.Background()
		for id := range 2 {
			if _, err := e.Submit(ctx, engine.Request{ID: step.RequestID(id), Prompt: 4, Max: 4}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := e.Submit(ctx, engine.Request{ID: 2, Prompt: 4, Max: 4}); !errors.Is(err, engine.ErrOverloaded) {
			t.Errorf("third request: %v, want %v", err, engine.ErrOverloaded)
		}
		time.Sleep(time.Second)
		if _, err := e.Submit(ctx, engine.Request{ID: 3, Prompt: 4, Max: 4}); err != nil {
			t.Errorf("after the others ended: %v", err)
		}
	})
}

// Closing an engine ends what is active with an error.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, 0, 0)
		s, err := e.Submit(context.Background(), engine.Request{Prompt: 4, Max: 1000})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		for ok := true; ok; {
			_, ok = s.Next(context.Background())
		}
		if !errors.Is(s.Err(), engine.ErrClosed) {
			t.Errorf("the request ended with %v, want %v", s.Err(), engine.ErrClosed)
		}
		if _, err := e.Submit(context.Background(), engine.Request{Prompt: 1, Max: 1}); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("Submit after Close: %v", err)
		}
	})
}

// A request that can never fit is refused at once.
func TestTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := start(t, 160, 0)
		defer e.Close()
		if _, err := e.Submit(context.Background(), engine.Request{Prompt: 150, Max: 20}); !errors.Is(err, core.ErrTooLong) {
			t.Errorf("got %v, want %v", err, core.ErrTooLong)
		}
		if err := e.Idle(); err != nil {
			t.Error(err)
		}
	})
}
