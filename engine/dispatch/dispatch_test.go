package dispatch

import (
	"errors"
	"math"
	"testing"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

func source(t *testing.T, r route.Router, models int, rate float64) signal.Source {
	t.Helper()
	c := signal.Config{Seed: 9}
	for m := range models {
		c.Rules, c.Rates = append(c.Rules, r.(route.Ruled).Rule(step.ModelID(m))), append(c.Rates, rate)
	}
	s, err := signal.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What is observed of an algorithm that has a chain is its chain.
func TestObservedChains(t *testing.T) {
	const rate = .3
	for _, a := range route.Algorithms() {
		for _, models := range []int{2, 3} {
			r, err := route.New(a.Name, route.Options{Models: models})
			if err != nil {
				t.Fatal(err)
			}
			chained, ok := r.(route.Chained)
			if !ok {
				continue
			}
			o, err := Observe(r, source(t, r, models, rate), models, Run{Requests: 10, Prompt: 5, Output: 3000})
			if err != nil || o.Err != nil {
				t.Fatal(a.Name, err, o.Err)
			}
			rates := []float64{rate, rate, rate}[:models]
			wantP, wantC := chained.Chain(rates)
			p, c := o.P(), o.C()
			for i := range p {
				for j := range p[i] {
					if o.Steps[i] > 0 && math.Abs(p[i][j]-wantP[i][j]) > .015 {
						t.Errorf("%s, %d models: P[%d][%d] = %.4f, want %.4f", a.Name, models, i, j, p[i][j], wantP[i][j])
					}
					if o.To[i][j] > 0 && c[i][j] != wantC[i][j] {
						t.Errorf("%s, %d models: C[%d][%d] = %.4f, want %.4f", a.Name, models, i, j, c[i][j], wantC[i][j])
					}
				}
			}
		}
	}
}

// The prefix that a server may still hold shrinks with every token that is taken back, and a verify is one call that
// carries the drafts.
func TestCalls(t *testing.T) {
	p := func(r *route.Request) error {
		for range 3 {
			if _, err := r.Draft(0); err != nil {
				return err
			}
		}
		if _, err := r.Verify(1); err != nil {
			return err
		}
		for !r.Done() {
			if _, err := r.Decode(0); err != nil {
				return err
			}
		}
		return nil
	}
	r := route.NewRunner(route.Spec{Name: "p", Program: p, Models: 2})
	defer r.Close()
	o := New(r, PerToken)
	call, err := o.Admit(route.Arrival{Handle: 2, Prompt: 10, Output: 4})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []Call{
		{Prompt: 10, Max: 1, First: true},
		{Prompt: 11, Max: 1, Shared: 10},
		{Prompt: 12, Max: 1, Shared: 11},
		{Model: 1, Prompt: 13, Verify: 3, Max: 4, Hop: true},
		{Prompt: 12, Max: 1, Shared: 11, Hop: true}, // one draft kept, the correction is new
		{Prompt: 13, Max: 1, Shared: 12},
	} {
		if call != want {
			t.Errorf("call %d: %+v, want %+v", i, call, want)
		}
		v := o.Reply(0, 2, &Reply{Accept: 1})
		if v.Done != (i == 5) {
			t.Fatalf("reply %d: %+v", i, v)
		}
		if i == 3 && (v.Commit != 2 || v.Own != 1) {
			t.Errorf("verified: %+v", v)
		}
		call = v.Next
	}
	o.Forget(2)
	if r.Live() != 0 {
		t.Error("a program is left")
	}
	if _, err := o.Admit(route.Arrival{Handle: 2, Prompt: 10, Output: 0}); !errors.Is(err, route.ErrPastEnd) {
		t.Error(err)
	}
}
