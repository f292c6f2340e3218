package route_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/dispatch"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// story runs one request of 10 prompt tokens and says what happens: each step's model, known tokens and drafts to
// verify, then what its reply commits, of which by itself.
func story(t *testing.T, s route.Spec, output int32, replies ...dispatch.Reply) string {
	t.Helper()
	if s.Models == 0 {
		s.Models = 2
	}
	s.Name = "mine"
	r := route.NewRunner(s)
	defer r.Close()
	o := dispatch.New(r, dispatch.PerToken)
	var b strings.Builder
	call, err := o.Admit(route.Arrival{At: 5, Handle: 3, ID: 8, Prompt: 10, Output: output, Score: .25})
	if err != nil {
		return err.Error()
	}
	for i := 0; ; i++ {
		fmt.Fprintf(&b, "m%d@%d", call.Model, call.Prompt)
		if call.Verify > 0 {
			fmt.Fprintf(&b, "?%d", call.Verify)
		}
		var reply dispatch.Reply
		if i < len(replies) {
			reply = replies[i]
		}
		v := o.Reply(clock.Instant(100*(i+1)), 3, &reply)
		if v.Commit > 0 {
			fmt.Fprintf(&b, " +%d/%d", v.Commit, v.Own)
		}
		if v.Err != nil {
			fmt.Fprintf(&b, " %v", v.Err)
		}
		if v.Done {
			return b.String()
		}
		if i == 30 {
			return b.String() + " ..."
		}
		b.WriteString("; ")
		call = v.Next
	}
}

func accept(n int32) dispatch.Reply { return dispatch.Reply{Accept: n} }

// must turns calls that can't fail into statements.
func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

func TestWhatAStepLeadsTo(t *testing.T) {
	for _, c := range []struct {
		name    string
		program route.Program
		output  int32
		replies []dispatch.Reply
		want    string
	}{
		{"decode", func(r *route.Request) error {
			for !r.Done() {
				must(r.Decode(0))
			}
			return nil
		}, 3, nil, "m0@10 +1/1; m0@11 +1/1; m0@12 +1/1"},
		{"drop where it stays", func(r *route.Request) error {
			must(r.Decode(0))
			r.Drop(1)
			must(r.Decode(0))
			return nil
		}, 1, nil, "m0@10; m0@10 +1/1"},
		{"drop as it leaves", func(r *route.Request) error {
			must(r.Decode(0))
			r.Drop(1)
			must(r.Decode(1))
			return nil
		}, 1, nil, "m0@10; m1@10 +1/1"},
		{"starts on the large model", func(r *route.Request) error {
			must(r.Decode(r.Large()))
			must(r.Decode(0))
			return nil
		}, 2, nil, "m2@10 +1/1; m0@11 +1/1"},
		{"all drafts kept", func(r *route.Request) error {
			must(r.Draft(0))
			must(r.Draft(0))
			if v := must(r.Verify(1)); v.Drafted != 2 || v.Accepted != 2 || r.Held() != 3 {
				return fmt.Errorf("%+v, held %d", v, r.Held())
			}
			return nil
		}, 3, []dispatch.Reply{{}, {}, accept(2)}, "m0@10; m0@11; m1@12?2 +3/1"},
		{"a draft rejected", func(r *route.Request) error {
			must(r.Draft(0))
			must(r.Draft(0))
			must(r.Verify(1))
			must(r.Decode(0))
			return nil
		}, 3, []dispatch.Reply{{}, {}, accept(1)}, "m0@10; m0@11; m1@12?2 +2/1; m0@12 +1/1"},
		{"another rule keeps more, or none", func(r *route.Request) error {
			must(r.Draft(0))
			must(r.Draft(0))
			must(r.Verify(1))
			r.Accept(2)
			must(r.Draft(0))
			must(r.Verify(1))
			r.Accept(0)
			return nil
		}, 4, []dispatch.Reply{{}, {}, accept(0), {}, accept(1)}, "m0@10; m0@11; m1@12?2 +3/1; m0@13; m1@14?1 +1/1"},
		{"the verifier's own token dropped", func(r *route.Request) error {
			must(r.Draft(0))
			must(r.Verify(1))
			r.Drop(1)
			must(r.Draft(0))
			must(r.Verify(1))
			r.Accept(0)
			r.Drop(1)
			must(r.Decode(1))
			return nil
		}, 2, []dispatch.Reply{{}, accept(1), {}, accept(1)}, "m0@10; m1@11?1 +1/0; m0@11; m1@12?1; m1@11 +1/1"},
		{"verify with nothing held", func(r *route.Request) error {
			must(r.Decode(0))
			v := must(r.Verify(1))
			if v.Drafted != 0 {
				return errors.New("drafts")
			}
			return nil
		}, 2, nil, "m0@10 +1/1; m1@11 +1/1"},
		{"held tokens through a decode", func(r *route.Request) error {
			must(r.Draft(0))
			must(r.Decode(1)) // processes the draft, keeps it
			must(r.Decode(1))
			return nil
		}, 3, []dispatch.Reply{{}, accept(0)}, "m0@10; m1@11?1 +2/1; m1@12 +1/1"},
		{"commit what was held", func(r *route.Request) error {
			must(r.Draft(0))
			r.Commit()
			must(r.Decode(1))
			return nil
		}, 2, nil, "m0@10 +1/1; m1@11 +1/1"},
		{"hold what was verified: three models", func(r *route.Request) error {
			must(r.Draft(0))
			must(r.Verify(1))
			r.Hold()
			must(r.Verify(2))
			return nil
		}, 3, []dispatch.Reply{{}, accept(1), accept(2)}, "m0@10; m1@11?1; m2@12?2 +3/1"},
		{"extend: an opinion", func(r *route.Request) error {
			must(r.Draft(0))
			must(r.Extend(1))
			if r.Held() != 1 {
				return fmt.Errorf("held %d", r.Held())
			}
			r.Drop(1)
			must(r.Decode(0))
			return nil
		}, 1, nil, "m0@10; m1@11?1; m0@10 +1/1"},
		{"a draft too many for the end", func(r *route.Request) error {
			must(r.Draft(0))
			must(r.Draft(0))
			must(r.Verify(1))
			return nil
		}, 2, []dispatch.Reply{{}, {}, accept(2)}, "m0@10; m0@11; m1@12?2 +2/0"},
		{"stop", func(r *route.Request) error {
			for !r.Done() {
				must(r.Decode(0))
			}
			return nil
		}, 9, []dispatch.Reply{{}, {Stop: true}}, "m0@10 +1/1; m0@11 +1/1"},
		{"stop dropped", func(r *route.Request) error {
			must(r.Decode(0))
			r.Drop(1)
			for !r.Done() {
				must(r.Decode(1))
			}
			return nil
		}, 2, []dispatch.Reply{{Stop: true}}, "m0@10; m1@10 +1/1; m1@11 +1/1"},
		{"stop drafted and kept", func(r *route.Request) error {
			for !r.Done() {
				for i := 0; i < 3 && !r.Done(); i++ {
					must(r.Draft(0))
				}
				must(r.Verify(1))
				r.Accept(2)
				r.Drop(1)
			}
			return nil
		}, 9, []dispatch.Reply{{}, {Stop: true}, accept(2)}, "m0@10; m0@11; m1@12?2 +2/0"},
		{"stop drafted and rejected", func(r *route.Request) error {
			for !r.Done() {
				for i := 0; i < 2 && !r.Done(); i++ {
					must(r.Draft(0))
				}
				must(r.Verify(1))
			}
			return nil
		}, 3, []dispatch.Reply{{}, {Stop: true}, accept(1), {}, accept(1)}, "m0@10; m0@11; m1@12?2 +2/1; m0@12; m1@13?1 +1/0"},
		{"while", func(r *route.Request) error {
			sure := func(t route.Token) bool { return t.Score < .5 }
			t := must(r.DecodeWhile(0, sure))
			if t.Score != .7 || r.Len() != 13 || r.Held() != 1 {
				return fmt.Errorf("%+v, %d, %d", t, r.Len(), r.Held())
			}
			r.Drop(1)
			must(r.Decode(1))
			must(r.DecodeWhile(0, sure))
			return nil
		}, 4, []dispatch.Reply{{}, {}, {Signal: .7}}, "m0@10 +1/1; m0@11 +1/1; m0@12; m1@12 +1/1; m0@13 +1/1"},
	} {
		s := route.Spec{Program: c.program, Models: 3, Rules: []signal.Rule{{Name: "score", Threshold: .5, Hi: 1}}}
		if got := story(t, s, c.output, c.replies...); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// A program sees its request, the clock and the scores that it asked for.
func TestWhatAProgramSees(t *testing.T) {
	var tokens []route.Token
	var verdict route.Verdict
	p := func(r *route.Request) error {
		if r.ID() != 8 || r.Prompt() != 10 || r.Models() != 2 || r.Small() != 0 || r.Large() != 1 || r.Query() != .25 || r.Now() != 5 || r.Left() != 3 {
			return errors.New("the request")
		}
		a, b := r.Rand(), r.Rand()
		if a == b || a < 0 || a >= 1 {
			return fmt.Errorf("draws %v, %v", a, b)
		}
		tokens = append(tokens, must(r.Draft(0)))
		if top := r.Top(); len(top) != 2 || top[1].Token != 9 || r.Now() != 100 {
			return fmt.Errorf("top %v at %v", top, r.Now())
		}
		tokens = append(tokens, must(r.Draft(0)))
		verdict = must(r.Verify(1))
		if verdict.ID != 71 {
			return fmt.Errorf("writes %d after 1 draft", verdict.ID)
		}
		r.Accept(2)
		return nil
	}
	spec := route.Spec{Program: p, Reads: step.Entropy | step.Normalised | step.Confidence | step.Margin | step.Top | step.Drafts, TopK: 2}
	drafts := []step.DraftScore{{Ratio: 1, Kept: true, Instead: 70}, {Ratio: .5, Instead: 71}}
	got := story(t, spec, 3,
		dispatch.Reply{Token: 4, Signal: .9, Entropy: 1, Normalised: .2, Confidence: .6, Margin: .3, Top: []step.Candidate{{Token: 4, Probability: .6}, {Token: 9, Probability: .3}}},
		dispatch.Reply{Token: 5, Top: make([]step.Candidate, 2)},
		dispatch.Reply{Token: 72, Accept: 1, Drafts: drafts, Top: make([]step.Candidate, 2)})
	if want := "m0@10; m0@11; m1@12?2 +3/1"; got != want {
		t.Fatalf("got %s, want %s", got, want)
	}
	if want := (route.Token{Entropy: 1, Normalised: .2, Confidence: .6, Margin: .3, ID: 4, Pos: 10}); tokens[0] != want {
		t.Errorf("got %+v, want %+v: no rule is on the external score", tokens[0], want)
	}
	if verdict.Drafted != 2 || verdict.Accepted != 1 || verdict.Bonus != 72 || verdict.Model != 1 || verdict.Pos != 12 || !reflect.DeepEqual(verdict.Drafts[0].Instead, int32(70)) {
		t.Errorf("verdict %+v", verdict)
	}
}

// Draws depend on the seed, the request, the position and the call; on nothing else.
func TestRandIsPaired(t *testing.T) {
	draws := func(seed uint64, dropped bool) (x []float64) {
		p := func(r *route.Request) error {
			must(r.Decode(0))
			if dropped {
				r.Drop(1)
				must(r.Decode(1))
			}
			for !r.Done() {
				x = append(x, r.Rand(), r.Rand())
				must(r.Decode(0))
			}
			return nil
		}
		story(t, route.Spec{Program: p, Seed: seed}, 4)
		return x
	}
	a := draws(1, false)
	if b := draws(1, true); !reflect.DeepEqual(a, b) || len(a) != 6 {
		t.Errorf("%v and %v", a, b)
	}
	if b := draws(2, false); reflect.DeepEqual(a, b) {
		t.Error("the seed doesn't matter")
	}
	seen := map[float64]bool{}
	for _, x := range a {
		seen[x] = true
	}
	if len(seen) != 6 {
		t.Errorf("draws repeat: %v", a)
	}
}

// A live program takes less than 5,000 bytes, so that 100,000 of them fit in 500 MB (BenchmarkLive), and lets all of it
// go.
func TestLiveProgramsAreSmall(t *testing.T) {
	const n = 20000
	goroutines, before := runtime.NumGoroutine(), memory()
	r := route.NewRunner(route.Spec{Name: "cascade", Models: 2, Program: route.Cascade(.5)})
	for i := range n {
		if _, err := r.Begin(route.Arrival{Handle: step.Handle(i), Prompt: 1, Output: 100}); err != nil {
			t.Fatal(err)
		}
	}
	if bytes := memory() - before; bytes > n*5000 && !raceDetector {
		t.Errorf("%d bytes a program", bytes/n)
	}
	r.Close()
	if left := runtime.NumGoroutine(); left > goroutines || r.Live() != 0 {
		t.Errorf("%d goroutines before, %d after, %d live", goroutines, left, r.Live())
	}
}

// A step allocates nothing.
func TestAStepAllocatesNothing(t *testing.T) {
	p := func(r *route.Request) error {
		for !r.Done() {
			if t, err := r.Decode(0); err != nil {
				return err
			} else if t.Score > .5 {
				r.Drop(1)
			}
		}
		return nil
	}
	r := route.NewRunner(route.Spec{Name: "p", Program: p, Models: 2, Rules: []signal.Rule{{Name: "score", Hi: 1, Threshold: .5}}})
	defer r.Close()
	must(r.Begin(route.Arrival{Prompt: 1, Output: math.MaxInt32 - 1}))
	b, res, mv := rows(1), &step.Result{Signal: []float64{.3}}, &route.Moves{}
	mv.Resize(1, true)
	if n := testing.AllocsPerRun(100, func() { r.Route(0, b, res, mv) }); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}

// Algorithms are listed by name, each with a line and a source; all of them start, on 2 and 3 models; options are
// checked.
func TestAlgorithms(t *testing.T) {
	last := ""
	for _, a := range route.Algorithms() {
		if a.Name <= last || a.Summary == "" || a.Source == "" || strings.Contains(a.Summary, "\n") {
			t.Errorf("%+v after %s", a, last)
		}
		last = a.Name
		for models := 2; models <= 3; models++ {
			r, err := route.New(strings.ToUpper(a.Name), route.Options{Models: models, Program: true})
			if err != nil {
				t.Fatal(err)
			}
			p, ok := r.(interface{ Name() string })
			if !ok || p.Name() != a.Name {
				t.Errorf("%s: no program of that name", a.Name)
			}
			if c, ok := r.(route.Chained); ok {
				rates := make([]float64, models)
				for i := range rates {
					rates[i] = .3
				}
				chain, _ := c.Chain(rates)
				for i, row := range chain {
					sum := 0.
					for _, x := range row {
						sum += x
					}
					if math.Abs(sum-1) > 1e-12 {
						t.Errorf("%s: row %d of P sums to %v", a.Name, i, sum)
					}
				}
			}
		}
	}
	for want, o := range map[string]struct {
		name string
		route.Options
	}{
		"unknown algorithm \"specdek\": did you mean specdec?": {"specdek", route.Options{Models: 2}},
		"routing needs 2 to 8 models, not 1":                   {"r2r", route.Options{Models: 1}},
		"algorithm specdec: draft 65: want 1 to 64":            {"specdec", route.Options{Models: 2, Draft: 65}},
		"algorithm specdec: threshold 1: it has none":          {"specdec", route.Options{Models: 2, Threshold: 1}},
		"deferral rule \"best\": want chow, diff or opt":       {"spec-cascade", route.Options{Models: 2, Defer: "best"}},
		"threshold 2: want confidence inside (0, 1)":           {"cascade", route.Options{Models: 2, Threshold: 2}},
		"rollback: threshold 30: want loss of the draft":       {"bild", route.Options{Models: 2, Rollback: 30}},
		"step -1: want 1 to":                                   {"specreason", route.Options{Models: 2, Step: -1}},
	} {
		if _, err := route.New(o.name, o.Options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
