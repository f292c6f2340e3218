package sim

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/dispatch"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/internal/testutil"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results"
)

// algorithm sets up a router with the same rate on every rule.
func algorithm(t testing.TB, c *Config, name string, o route.Options, rate float64, a signal.Acceptance) {
	t.Helper()
	o.Models = len(c.Models)
	r, err := route.New(name, o)
	if err != nil {
		t.Fatal(err)
	}
	c.Router = r
	drawn(t, c, rate, a)
}

// drawn sets up the signal of c's router.
func drawn(t testing.TB, c *Config, rate float64, a signal.Acceptance) {
	t.Helper()
	sc := signal.Config{Seed: 3, Acceptance: a}
	for i := range c.Models {
		sc.Rules, sc.Rates = append(sc.Rules, c.Router.(route.Ruled).Rule(step.ModelID(i))), append(sc.Rates, rate)
	}
	var err error
	if c.Signal, err = signal.New(sc); err != nil {
		t.Fatal(err)
	}
}

// sameLog reports the first line in which two logs differ.
func sameLog(t *testing.T, what, other string, a, b []string) {
	t.Helper()
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("line %d of %d / %d:\n%s %s\n%s %s", i, len(a), len(b), what, a[i], other, b[i])
		}
	}
	if len(a) != len(b) {
		t.Fatalf("%s wrote %d lines, %s %d", what, len(a), other, len(b))
	}
}

func mixed(n int) []Request {
	r := make([]Request, n)
	for i := range r {
		r[i] = Request{int32(3 + 41*i%300), int32(1 + 17*i%90)}
	}
	return r
}

// The two forms of an algorithm give the same event log, on every topology, under KV pressure too.
func TestProgramIsItsBatchRouter(t *testing.T) {
	for _, name := range []string{"r2r", "citer", "co-llm", "entropy", "r-stitch", "me"} {
		for _, w := range []struct {
			name     string
			topology Topology
			calls    dispatch.Calls
			kv       int
		}{
			{"tokenrouter", TokenRouter, 0, 0}, {"tokenrouter, KV pressure", TokenRouter, 0, 800}, {"step-sync", StepSync, 0, 0},
			{"rpc by token", RPC, dispatch.PerToken, 0}, {"rpc by run", RPC, dispatch.PerRun, 0},
		} {
			t.Run(name+", "+w.name, func(t *testing.T) {
				run := func(program bool) []string {
					log := &core.EventLog{}
					c := &Config{Topology: w.topology, Models: constants(small, large), Requests: mixed(40), Clients: 8, Log: log, Check: true}
					c.RPC = RPCCosts{Calls: w.calls, Cache: core.RetainBlocks, RTT: time.Millisecond}
					for i := range c.Models {
						c.Models[i].KVTokens, c.Models[i].Policy.TokenBudget = w.kv, 100
					}
					if w.topology == TokenRouter {
						threshold(c, 1, 3)
					}
					algorithm(t, c, name, route.Options{Program: program}, .3, signal.Acceptance{})
					mustRun(t, c)
					return log.Lines
				}
				sameLog(t, "batch  ", "program", run(false), run(true))
			})
		}
	}
}

// E[tokens of a pass] = (1 - a^(k+1)) / (1 - a), and the speed-up at N = 1 is that over k c + 1, c the small model's
// step in large steps (Leviathan et al., equation 1 and theorem 3.8): within 1 %.
func TestSpeculativeDecoding(t *testing.T) {
	long(t)
	const tokens = 20000
	for _, a := range []float64{.3, .6, signal.DefaultAcceptance, .9} {
		for _, k := range []int{1, 2, 4, 8} {
			c := &Config{Models: constants(small, large), Requests: equal(6, 10, tokens), Clients: 1}
			algorithm(t, c, "specdec", route.Options{Draft: k}, 0, signal.Acceptance{Alpha: []float64{a}})
			o := mustRun(t, c)
			pass := (1 - math.Pow(a, float64(k+1))) / (1 - a)
			near(t, fmt.Sprintf("a = %v, k = %d: tokens of a pass", a, k), 6*tokens/float64(o.Models[1].Steps), pass, .01)
			cost := small.Seconds() / large.Seconds()
			alone := 6 * tokens * large.Seconds()
			near(t, fmt.Sprintf("a = %v, k = %d: speed-up", a, k), alone/o.End.Seconds(), pass/(float64(k)*cost+1), .01)
		}
	}
}

// An acceptance that falls with the draft's index: E = 1 + sum of the products.
func TestAcceptanceByIndex(t *testing.T) {
	alpha := []float64{.9, .7, .5}
	c := &Config{Models: constants(small, large), Requests: equal(4, 10, 20000), Clients: 1}
	algorithm(t, c, "specdec", route.Options{Draft: 4}, 0, signal.Acceptance{Alpha: alpha})
	want := 1 + .9 + .9*.7 + .9*.7*.5 + .9*.7*.5*.5
	near(t, "tokens of a pass", 4*20000/float64(mustRun(t, c).Models[1].Steps), want, .01)
}

// Greedy keeps what agrees, with an acceptance that does not matter.
func TestGreedySpeculation(t *testing.T) {
	c := &Config{Models: constants(small, large), Requests: equal(4, 10, 20000), Clients: 1}
	algorithm(t, c, "specdec", route.Options{Draft: 4, Greedy: true}, 0, signal.Acceptance{Alpha: []float64{.01}, Agreement: .8})
	want := (1 - math.Pow(.8, 5)) / .2
	near(t, "tokens of a pass", 4*20000/float64(mustRun(t, c).Models[1].Steps), want, .01)
}

// Every rule fires at the rate that was asked for: the share of large work follows.
func TestRulesFireAtTheirRate(t *testing.T) {
	long(t)
	const rate, tokens, n = .2, 4000, 200
	run := func(name string, o route.Options, output int32) *Outcome {
		c := &Config{Models: constants(small, large), Requests: equal(n, 10, output), Clients: 20}
		algorithm(t, c, name, o, rate, signal.Acceptance{})
		return mustRun(t, c)
	}
	rows := func(o *Outcome) (float64, float64) { return float64(o.Models[0].Rows), float64(o.Models[1].Rows) }

	s, l := rows(run("entropy", route.Options{}, tokens))
	near(t, "entropy: large steps a small one", l/s, rate, .02)
	s, l = rows(run("cascade", route.Options{}, tokens))
	near(t, "cascade: large steps a small one", l/s, rate, .02)

	// One decision a request of output 40: the large model writes 40 tokens of each that fires.
	s, l = rows(run("query", route.Options{}, 40))
	near(t, "query: share of the large model", l/(s+l), rate, .5)
	s, l = rows(run("frugalgpt", route.Options{}, 40))
	near(t, "frugalgpt: large steps a small one", l/s, rate, .5)
	s, l = rows(run("automix", route.Options{}, 40))
	near(t, "automix: large steps a small one", l/s, rate*40/41, .5)

	// A step of 8 tokens: 8 small ones and a pass, and 8 large ones where it fires.
	s, l = rows(run("specreason", route.Options{Step: 8}, tokens))
	near(t, "specreason: large steps a small one", l/s, (1+8*rate)/8, .02)
	// A step of 8 tokens: a glimpse, then 7 small or 8 large ones.
	s, l = rows(run("glimprouter", route.Options{Step: 8}, tokens))
	near(t, "glimprouter: large steps a small one", l/s, 8*rate/(1+7*(1-rate)), .02)

	// Deferral keeps a draft with probability (1 - r) + r a.
	keep := 1 - rate + rate*signal.DefaultAcceptance
	for _, rule := range []string{"chow", "diff", "opt"} {
		_, l = rows(run("spec-cascade", route.Options{Defer: rule, Draft: 4}, tokens))
		near(t, "spec-cascade "+rule+": tokens of a pass", n*tokens/l, (1-math.Pow(keep, 5))/(1-keep), .01)
	}
	// BiLD, drafts in blocks of at most 10, each ended by a fallback or kept on until a rollback.
	s, l = rows(run("bild", route.Options{}, tokens))
	want := 0. // E[drafts before a fallback, at most 10]
	for i := 1; i <= 10; i++ {
		want += math.Pow(1-rate, float64(i))
	}
	tries := 0. // small steps of a block: the one that fell back too
	for i := range 10 {
		tries += math.Pow(1-rate, float64(i))
	}
	near(t, "bild: small steps a pass", s/l, tries, .01)
	if want > tries {
		t.Error("a block keeps more than it tries")
	}
}

// A program that misbehaves fails its own request, with its name and line, and the others finish; no coroutine is left.
func TestFailureIsOneRequests(t *testing.T) {
	loops := func(r *route.Request) error {
		for !r.Done() {
			r.Rand()
		}
		return nil
	}
	bad := map[string]struct {
		program route.Program
		want    string
	}{
		"panics":  {func(r *route.Request) error { r.Decode(0); m := emptyMap(); m[1] = 2; return nil }, "panic: assignment to entry in nil map"},
		"at once": {func(r *route.Request) error { panic("at once") }, "panic: at once"},
		"loops":   {func(r *route.Request) error { r.Decode(0); return loops(r) }, "makes no progress: 1048576 calls since the last step"},
		"unknown": {func(r *route.Request) error { r.Decode(0); _, err := r.Decode(7); return err }, "unknown model 7"},
		"ignores": {func(r *route.Request) error { r.Decode(7); r.Decode(0); return nil }, "unknown model 7"},
		"past": {func(r *route.Request) error {
			for {
				r.Decode(0)
			}
		}, "step past the end"},
		"early":   {func(r *route.Request) error { _, err := r.Decode(0); return err }, "returned before the end of the request: 1 of 20"},
		"error":   {func(r *route.Request) error { r.Decode(0); return fmt.Errorf("no idea") }, "no idea"},
		"drops":   {func(r *route.Request) error { r.Decode(0); r.Drop(2); return nil }, "Drop(2) of 1 uncommitted"},
		"accepts": {func(r *route.Request) error { r.Decode(0); r.Accept(1); return nil }, "Accept(1)"},
		"predicate": {func(r *route.Request) error {
			_, err := r.DecodeWhile(0, func(route.Token) bool { panic("in it") })
			return err
		}, "panic: in it"},
		"nested": {func(r *route.Request) error {
			_, err := r.DecodeWhile(0, func(route.Token) bool { r.Decode(0); return true })
			return err
		}, "a step outside the program"},
		"itself": {func(r *route.Request) error { r.Draft(0); _, err := r.Verify(0); return err }, "can't verify its own drafts"},
		"overdraft": {func(r *route.Request) error {
			for {
				if _, err := r.Draft(0); err != nil {
					return err
				}
			}
		}, "step past the end"},
	}
	noPlace := map[string]bool{"early": true, "error": true}
	before := runtime.NumGoroutine()
	for name, b := range bad {
		for _, topology := range []Topology{TokenRouter, RPC} {
			for _, calls := range []dispatch.Calls{dispatch.PerToken, dispatch.PerRun} {
				good := route.Cascade(.5)
				mixedProgram := func(r *route.Request) error {
					if r.ID()%5 == 2 {
						return b.program(r)
					}
					return good(r)
				}
				log := &core.EventLog{}
				c := &Config{Topology: topology, Models: constants(small, large), Requests: equal(20, 10, 20), Clients: 6, Log: log, Check: true}
				c.RPC = RPCCosts{Calls: calls, RTT: time.Millisecond, Cache: core.RetainBlocks}
				if topology == TokenRouter {
					threshold(c, 1, 2)
				}
				c.Router = route.NewRunner(route.Spec{Name: "mine", Program: mixedProgram, Models: 2, Reads: step.Confidence})
				drawn(t, c, .5, signal.Acceptance{})
				failed := 0
				c.Ended = func(r *results.Request) {
					if r.ID%5 != 2 {
						if r.Status != results.Finished || r.OutputTokens != 20 {
							t.Errorf("%s: request %d: %v after %d tokens: %s", name, r.ID, r.Status, r.OutputTokens, r.Error)
						}
						return
					}
					failed++
					if r.Status != results.Failed || !strings.Contains(r.Error, b.want) || !strings.HasPrefix(r.Error, "program mine: ") {
						t.Errorf("%s: request %d: %v: %q, want %q", name, r.ID, r.Status, r.Error, b.want)
					}
					if !noPlace[name] && !strings.Contains(r.Error, "program_test.go:") {
						t.Errorf("%s: %q says no place", name, r.Error)
					}
				}
				o := mustRun(t, c)
				if failed != 4 || o.Ended != 20 {
					t.Errorf("%s: %d failed, %d ended", name, failed, o.Ended)
				}
			}
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// An interrupted run leaves no coroutine.
func TestInterruptedRunLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	c := &Config{Models: constants(small, large), Requests: equal(300, 10, 200), Clients: 100}
	algorithm(t, c, "specdec", route.Options{}, 0, signal.Acceptance{})
	w := newWorld(c)
	w.open()
	for range 2000 {
		if err := w.advance(); err != nil {
			t.Fatal(err)
		}
	}
	if live := w.router.(*route.Runner).Live(); live != w.active || live == 0 {
		t.Errorf("%d live programs, %d active requests", live, w.active)
	}
	w.let()
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// recorded opens the recorded pair's trace.
func recorded(t *testing.T) *signal.Trace {
	t.Helper()
	path := testutil.Reference(t, "traces", "gsm8k_test_token_trace.csv")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	trace, err := signal.ReadTrace(filepath.Base(path), f)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// replayed sets up a run of every problem of the trace.
func replayed(t *testing.T, trace *signal.Trace, r route.Router) *Config {
	t.Helper()
	c := &Config{Models: constants(small, large), Clients: 8, Router: r}
	for i := range trace.Problems() {
		prompt, output := trace.Problem(i)
		c.Requests = append(c.Requests, Request{prompt, output})
	}
	var err error
	c.Signal, err = trace.Source(signal.Replay{Seed: 1, Rules: []signal.Rule{r.(route.Ruled).Rule(0), r.(route.Ruled).Rule(1)}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Entropy switching on the recorded pair: agreement with the large model by the share of tokens that it writes.
func TestEntropySwitchingOnARecordedPair(t *testing.T) {
	long(t)
	trace := recorded(t)
	base, err := route.New("entropy", route.Options{Models: 2})
	if err != nil {
		t.Fatal(err)
	}
	for share, want := range map[float64]float64{.05: .788, .1: .821, .2: .874, .3: .918, .5: .981} {
		at, err := trace.Threshold(base.(route.Ruled).Rule(0), share)
		if err != nil {
			t.Fatal(err)
		}
		for _, program := range []bool{false, true} {
			r, err := route.New("entropy", route.Options{Models: 2, Threshold: at, Program: program})
			if err != nil {
				t.Fatal(err)
			}
			c := replayed(t, trace, r)
			large := 0
			c.Ended = func(r *results.Request) { large += int(r.LargeTokens) }
			o := mustRun(t, c)
			got, ok := o.Quality.Agreement()
			if !ok || o.Quality.Judged != int64(trace.Tokens()) {
				t.Fatalf("judged %d of %d tokens", o.Quality.Judged, trace.Tokens())
			}
			if math.Abs(got-want) > .0006 || math.Abs(float64(large)/float64(trace.Tokens())-share) > .0005 {
				t.Errorf("%.0f %%: the large model wrote %.2f %%, agreement %.2f %%, want %.1f %%", 100*share, 100*float64(large)/float64(trace.Tokens()), 100*got, 100*want)
			}
		}
	}
}

// Speculative decoding on the recorded pair: the mean acceptance of the trace is .732, and drafts that are tested are
// kept as often as they were recorded to be. Greedy speculation writes what the large model would have written.
func TestSpeculationOnARecordedPair(t *testing.T) {
	trace := recorded(t)
	near(t, "mean acceptance", trace.Acceptance(), .732, .0006)
	near(t, "agreement", trace.Agreement(), .750, .0006)
	kept, tested, expected := 0, 0, 0.
	p := func(r *route.Request) error {
		for !r.Done() {
			for i := 0; i < 4 && r.Left() > 1; i++ {
				if _, err := r.Draft(0); err != nil {
					return err
				}
			}
			v, err := r.Verify(1)
			if err != nil {
				return err
			}
			kept += v.Accepted
			for _, d := range v.Drafts[:min(v.Accepted+1, v.Drafted)] {
				tested++
				expected += d.Ratio
			}
		}
		return nil
	}
	mustRun(t, replayed(t, trace, route.NewRunner(route.Spec{Name: "specdec", Program: p, Models: 2, Reads: step.Drafts})))
	near(t, "drafts kept", float64(kept), expected, .01)
	t.Logf("%d drafts tested, %.4f kept", tested, float64(kept)/float64(tested))

	r, err := route.New("specdec", route.Options{Models: 2, Greedy: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := mustRun(t, replayed(t, trace, r)).Quality.Agreement(); got != 1 {
		t.Errorf("greedy speculation agrees with the large model at %.4f of tokens, want all", got)
	}
}

// emptyMap is nil, which a linter can't see.
func emptyMap() map[int]int { return nil }
