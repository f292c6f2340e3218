package starlark_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/dispatch"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/route/starlark"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/sim"
)

func parse(t testing.TB, name, src string, models int) *starlark.File {
	t.Helper()
	f, err := starlark.Parse(name, []byte(src), starlark.Options{Models: models})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func example(t testing.TB, name string, models int) *starlark.File {
	t.Helper()
	src, ok := starlark.Example(name)
	if !ok {
		t.Fatalf("no example %s", name)
	}
	return parse(t, name+".star", string(src), models)
}

// drawn is a signal for a router, with one rate for every rule.
func drawn(t testing.TB, r route.Router, models int, rate float64) signal.Source {
	t.Helper()
	c := signal.Config{Seed: 4}
	for m := range models {
		c.Rules, c.Rates = append(c.Rules, r.(route.Ruled).Rule(step.ModelID(m))), append(c.Rates, rate)
	}
	s, err := signal.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// events runs a router and returns its event log.
func events(t testing.TB, r route.Router, models int, topology sim.Topology) []string {
	t.Helper()
	log := &core.EventLog{}
	c := &sim.Config{Topology: topology, Router: r, Signal: drawn(t, r, models, .3), Clients: 6, Log: log, Check: true}
	c.RPC = sim.RPCCosts{Cache: core.RetainAll, RTT: time.Millisecond}
	for i, ms := range []time.Duration{6, 12, 28}[:models] {
		c.Models = append(c.Models, sim.Model{Name: fmt.Sprint(i), Latency: latency.Constant(ms * time.Millisecond)})
	}
	for i := range 30 {
		c.Requests = append(c.Requests, sim.Request{Prompt: int32(3 + 41*i%300), Output: int32(1 + 17*i%90)})
	}
	if _, err := sim.Run(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	return log.Lines
}

func same(t *testing.T, what string, a, b []string) {
	t.Helper()
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("%s: line %d of %d / %d:\n%s\n%s", what, i, len(a), len(b), a[i], b[i])
		}
	}
	if len(a) != len(b) || len(a) == 0 {
		t.Fatalf("%s: %d and %d lines", what, len(a), len(b))
	}
}

// Every built-in algorithm has a file that gives its event log, as a coroutine and, where it is finite, as a table.
func TestFilesAreTheBuiltInAlgorithms(t *testing.T) {
	if names := starlark.Examples(); !slices.Equal(names, route.Names()) {
		t.Errorf("files for %v, algorithms %v", names, route.Names())
	}
	tables := map[string]int{"r2r": 2, "citer": 2, "co-llm": 2, "entropy": 2, "r-stitch": 2, "cascade": 2, "glimprouter": 64}
	for _, name := range route.Names() {
		for _, models := range []int{2, 3} {
			for _, topology := range []sim.Topology{sim.TokenRouter, sim.RPC} {
				r, err := route.New(name, route.Options{Models: models})
				if err != nil {
					t.Fatal(err)
				}
				want := events(t, r, models, topology)
				f := example(t, name, models)
				same(t, name+" as a coroutine", events(t, route.NewRunner(f.Spec()), models, topology), want)
				table, err := f.Lower()
				states := tables[name]
				if name == "cascade" {
					states = models
				}
				if (err == nil) != (states > 0) {
					t.Errorf("%s: lowered: %v", name, err)
				}
				if err != nil {
					if !errors.Is(err, starlark.ErrNotFinite) || !strings.HasPrefix(err.Error(), name+".star:") {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				if table.States() != states {
					t.Errorf("%s: %d states, want %d", name, table.States(), states)
				}
				same(t, name+" as a table", events(t, f.Router(), models, topology), want)
				if !table.Exact() {
					continue
				}
				c, ok := f.Router().(route.Chained)
				if !ok {
					t.Errorf("%s: no chain", name)
					continue
				}
				b, ok := r.(route.Chained)
				if !ok {
					t.Fatalf("%s: the algorithm has no chain", name)
				}
				rates := []float64{.3, .2, .6}[:models]
				p, commits := c.Chain(rates)
				wantP, wantC := b.Chain(rates)
				if models == 2 && fmt.Sprintf("%.6f", p) != fmt.Sprintf("%.6f", wantP) {
					t.Errorf("%s: P %v, want %v", name, p, wantP)
				}
				for i := range commits {
					for j := range commits[i] {
						if models == 2 && p[i][j] > 0 && math.Abs(commits[i][j]-wantC[i][j]) > 1e-12 {
							t.Errorf("%s: C %v, want %v", name, commits, wantC)
						}
					}
				}
			}
		}
	}
}

// A fault in a file says where it is and what was wanted.
func TestFaults(t *testing.T) {
	for want, src := range map[string]string{
		"mine.star:2:5: got '=', want primary expression":                "def program(r):\n    = 3\n",
		"mine.star:2:5: undefined: x":                                    "def program(r):\n    x()\n",
		"mine.star: no function program(r)":                              "x = 1\n",
		"mine.star: program is a int":                                    "program = 1\n",
		"mine.star:1:1: program must take one parameter":                 "def program(r, s):\n    pass\n",
		"mine.star:1:1: rules is a string":                               "rules = 'x'\ndef program(r):\n    pass\n",
		"mine.star:1:1: rules: no model 7: the deployment has 2, 0 to 1": "rules = {7: rule('score', above = .5)}\ndef program(r):\n    pass\n",
		"mine.star:1:13: rule: no score \"x\": want score, entropy":      "rules = rule('x', above = .5)\ndef program(r):\n    pass\n",
		"mine.star:1:13: rule: threshold 2 of score must lie inside":     "rules = rule('score', above = 2)\ndef program(r):\n    pass\n",
		"mine.star:1:13: rule: want one of above and below":              "rules = rule('score')\ndef program(r):\n    pass\n",
		"mine.star:2:14: floored division by zero":                       "def f():\n    return 1 // 0\nf()\ndef program(r):\n    pass\n",
	} {
		_, err := starlark.Parse("dir/mine.star", []byte(src), starlark.Options{Models: 2})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := starlark.Parse("x.star", nil, starlark.Options{}); err == nil || err.Error() != "x.star: 0 models, want 1 to 8" {
		t.Error(err)
	}
	if _, err := starlark.Load(filepath.Join(t.TempDir(), "none.star"), starlark.Options{Models: 2}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A program that misbehaves fails its own request, with file, line and column; the others finish; nothing is left
// behind.
func TestFailures(t *testing.T) {
	before := runtime.NumGoroutine()
	for want, body := range map[string]string{
		"mine.star:5:9: makes no progress: 20000 operations since the last step":        "while True:\n            pass",
		"mine.star:6:21: makes no progress: 1072 steps and no token committed":          "while True:\n            r.decode(0)\n            r.drop()",
		"mine.star:4:17: unknown model 7: the deployment has 2, 0 to 1":                 "r.decode(7)",
		"mine.star:4:17: unknown model 700":                                             "r.decode(700)",
		"mine.star:4:15: misuse: Drop(5) of 0 uncommitted tokens":                       "r.drop(5)",
		"mine.star:4:17: misuse: Accept(1) after a step that verified 0 drafts":         "r.accept(1)",
		"mine.star:4:10: request has no .decod field or method (did you mean .decode?)": "r.decod(0)",
		"mine.star:4:11: unknown binary op: int + string":                               "x = 1 + 'a'",
		"mine.star:4:18: cannot append to frozen list":                                  "shared.append(1)",
		"returned before the end of the request: 0 of 9 tokens":                         "return",
		"mine.star:4:23: got string, want a function or a rule":                         "r.decode_while(0, 'x')",
		"mine.star:2:12: floored division by zero":                                      "r.decode_while(0, bad)",
		"mine.star:4:13: fail: enough":                                                  "fail('enough')",
	} {
		src := "shared = []\ndef bad(t): return 1 // 0\ndef program(r):\n    if r.id % 4 == 1:\n        " + body + "\n    while not r.done():\n        r.decode(0)\n"
		src = strings.Replace(src, "    if r.id % 4 == 1:\n        ", "    if r.id % 4 == 1: ", 1)
		if strings.HasPrefix(body, "while") {
			src = strings.Replace(src, "1: while", "1:\n        while", 1)
		}
		f, err := starlark.Parse("mine.star", []byte(src), starlark.Options{Models: 2, Operations: 20000})
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		r := f.Router()
		c := &sim.Config{Router: r, Signal: drawn(t, r, 2, .3), Clients: 3, Check: true}
		for i := range 2 {
			c.Models = append(c.Models, sim.Model{Name: fmt.Sprint(i), Latency: latency.Constant(time.Millisecond)})
		}
		for range 8 {
			c.Requests = append(c.Requests, sim.Request{Prompt: 5, Output: 9})
		}
		failed := 0
		c.Ended = func(r *results.Request) {
			if r.ID%4 != 1 {
				if r.Status != results.Finished {
					t.Errorf("request %d: %s", r.ID, r.Error)
				}
				return
			}
			failed++
			if text, ok := strings.CutPrefix(r.Error, "program mine: "); !ok || text[strings.IndexByte(text, ':'):] == "" || !strings.Contains(text, want[strings.IndexByte(want, ' ')+1:]) || !strings.HasPrefix(want, "returned") && !strings.HasPrefix(text, "mine.star:") {
				t.Errorf("%s:\ngot  %s\nwant %s", body, r.Error, want)
			}
		}
		if _, err := sim.Run(context.Background(), c); err != nil {
			t.Fatal(err)
		}
		if failed != 2 {
			t.Errorf("%s: %d failed, want 2", body, failed)
		}
	}
	if after := runtime.NumGoroutine(); after > before {
		t.Errorf("%d goroutines before, %d after", before, after)
	}
}

// A file sees scores that it names, whether or not a rule is on them.
func TestScores(t *testing.T) {
	var printed []string
	f, err := starlark.Parse("p.star", []byte(`
def program(r):
    t = r.draft(small)
    top = r.top()
    print(t.entropy > 0, t.normalised < 1, t.confidence == top[0][1], t.margin <= 1, t.id, t.pos, t.model, t.stop, 0 <= t.score and t.score < 1)
    v = r.verify(large)
    print(v.drafted, v.accepted <= 1, len(v.drafts), v.drafts[0].ratio, v.drafts[0].loss >= 0, r.held(), r.len(), r.prompt)
    print(0 <= r.rand() and r.rand() < 1, r.now() > 0, r.query() >= 0, r.left(), dir(r)[0])
    while not r.done():
        r.decode(large)
`), starlark.Options{Models: 2, Print: func(m string) { printed = append(printed, m) }})
	if err != nil {
		t.Fatal(err)
	}
	r := route.NewRunner(f.Spec())
	o, err := dispatch.Observe(r, drawn(t, r, 2, .3), 2, dispatch.Run{Requests: 1, Prompt: 7, Output: 4})
	if err != nil || o.Err != nil {
		t.Fatal(err, o.Err)
	}
	if len(printed) != 3 || printed[0] != "p.star:5:10: True True True True 0 7 0 False True" || !strings.HasPrefix(printed[1], "p.star:7:10: 1 True 1 0.732 True ") {
		t.Errorf("%q", printed)
	}
}

// What can't be lowered says why and where.
func TestNotFinite(t *testing.T) {
	for want, body := range map[string]string{
		"calls left":                 "while not r.done():\n        if r.left() > 3: r.decode(0)\n        else: r.decode(1)",
		"a for loop around a step":   "for i in range(3):\n        r.decode(0)",
		"reads score of a token":     "while not r.done():\n        t = r.decode(0)\n        if t.score > .5: r.drop()",
		"is part of an expression":   "while not r.done():\n        x = [r.decode(0)]",
		"a token of an earlier step": "while not r.done():\n        t = r.decode(0)\n        if not r.done():\n            r.decode(0)\n            if rules.fires(t): r.drop()",
		"is not the one of model 0":  "while not r.done():\n        t = r.decode(0)\n        if rule('score', above = .3).fires(t): r.drop()",
		"n holds a list":             "n = []\n    while not r.done():\n        r.decode(0)",
		"more than 128 states":       "n = 0\n    while not r.done():\n        r.decode(0)\n        n += 1",
		"reads id of the request":    "while not r.done():\n        r.decode(r.id % 2)",
		"step past the end":          "while not r.done():\n        r.decode(0)\n        r.decode(1)",
		"may go on dropping":         "while not r.done():\n        t = r.decode(0)\n        if rules.fires(t): r.drop()",
		"returned before the end":    "r.decode(0)",
	} {
		f := parse(t, "mine.star", "rules = rule('score', above = 0.5)\ndef program(r):\n    "+body+"\n", 2)
		if _, err := f.Lower(); err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, starlark.ErrNotFinite) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A table may have more states than models, and drop tokens where it stays.
func TestLoweredTables(t *testing.T) {
	for name, body := range map[string]string{
		"two of three on the large model": "n = 0\n    while not r.done():\n        t = r.decode(small if n < 2 else large)\n        n = (n + 1) % 3",
		"tries again":                     "while not r.done():\n        t = r.decode(small)\n        if rules.fires(t):\n            r.drop()\n            t = r.decode(small)\n            if rules.fires(t):\n                r.drop()\n                r.decode(large)",
		"a for loop that runs no step":    "k = 0\n    while not r.done():\n        n = k\n        for i in range(3): n += i\n        r.decode(large if n > 4 else small)\n        k = (k + 1) % 3",
		"starts large":                    "r.decode(large)\n    if not r.done():\n        r.decode_while(small, rules)\n    while not r.done():\n        r.decode(large)",
	} {
		f := parse(t, "mine.star", "rules = rule('score', above = 0.5)\ndef program(r):\n    "+body+"\n", 2)
		table, err := f.Lower()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, ok := table.Router().(route.Chained); ok {
			t.Errorf("%s: %d states, and a chain over the models", name, table.States())
		}
		for _, topology := range []sim.Topology{sim.TokenRouter, sim.RPC} {
			same(t, name, events(t, f.Router(), 2, topology), events(t, route.NewRunner(f.Spec()), 2, topology))
		}
	}
}

// The matrices induced on given signals are those of the chain, and the listing says where the program waits.
func TestCompile(t *testing.T) {
	f := example(t, "r2r", 2)
	r := f.Router()
	l, err := f.Compile(drawn(t, r, 2, .35), dispatch.Run{Requests: 20, Prompt: 10, Output: 2000})
	if err != nil {
		t.Fatal(err)
	}
	p, c := l.P(), l.C()
	if math.Abs(p[0][1]-.35) > .01 || p[1][0] != 1 || c[0][0] != 1 || c[0][1] != 0 || c[1][0] != 1 {
		t.Errorf("P %v, C %v", p, c)
	}
	if l.Table != 2 || len(l.Points) != 2 || l.Points[0].Place != "r2r.star:6:27" || l.Points[0].Call != "decode_while" || l.Points[1].Place != "r2r.star:9:21" || l.Points[1].Model != 1 {
		t.Errorf("table %d, points %+v", l.Table, l.Points)
	}
	var text bytes.Buffer
	if err := l.Write(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"program r2r, 2 models", "runs as a table of 2 states", "acts on divergence probability > 0.5", "route    to model 1 with probability 0.3", "send     to model 1: drops 1.0000 tokens, commits 0.0000", "receive  from model 0: 0.0000 drafts to verify"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	// A Go program, with drafts.
	g, err := route.New("specdec", route.Options{Models: 2, Draft: 2})
	if err != nil {
		t.Fatal(err)
	}
	if l, err = starlark.Compile("specdec", g, false, 2, drawn(t, g, 2, 0), dispatch.Run{Requests: 20, Prompt: 10, Output: 2000}); err != nil {
		t.Fatal(err)
	}
	if p := l.P(); math.Abs(p[0][0]-.5) > .01 || p[1][0] < .999 || len(l.Points) != 2 || !strings.HasPrefix(l.Points[0].Place, "specdec.go:") || math.Abs(float64(l.Verified[0][1])/float64(l.To[0][1])-2) > .01 {
		t.Errorf("P %v, points %+v", p, l.Points)
	}
}

// The template is a program that passes its own check; Create never overwrites.
func TestTemplate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.star")
	if err := starlark.Create(path); err != nil {
		t.Fatal(err)
	}
	f, err := starlark.Load(path, starlark.Options{Models: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); err != nil || f.Name() != "mine" {
		t.Error(err)
	}
	if err := starlark.Create(path); !errors.Is(err, os.ErrExist) {
		t.Error(err)
	}
	for _, name := range starlark.Examples() {
		if err := example(t, name, 2).Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	bad := parse(t, "bad.star", "def program(r):\n    r.decode(0)\n    r.decode(0)\n", 2)
	if err := bad.Check(); err == nil || !strings.Contains(err.Error(), "bad.star:3:13: step past the end") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range starlark.Examples() {
		src, _ := starlark.Example(name)
		f.Add(string(src))
	}
	f.Fuzz(func(t *testing.T, src string) {
		p, err := starlark.Parse("f.star", []byte(src), starlark.Options{Models: 2, Operations: 3000})
		if err != nil {
			return
		}
		r := route.NewRunner(p.Spec())
		s, err := signal.New(signal.Config{Rules: p.Rules(), Rates: []float64{.5, .5}})
		if err != nil {
			return
		}
		if _, err := dispatch.Observe(r, s, 2, dispatch.Run{Requests: 2, Prompt: 3, Output: 10}); err != nil {
			t.Fatal(err)
		}
		p.Lower()
	})
}

// A step of a file.
func BenchmarkStep(b *testing.B) {
	for name, src := range map[string]string{
		"decode":       "rules = rule('score', above = 0.5)\ndef program(r):\n    while not r.done():\n        t = r.decode(small)\n        if t.score > 0.5:\n            r.drop()\n",
		"decode_while": "rules = rule('score', above = 0.5)\ndef program(r):\n    r.decode_while(small, rules)\n",
	} {
		b.Run(name, func(b *testing.B) {
			const n = 64
			r := route.NewRunner(parse(b, "bench.star", src, 2).Spec())
			defer r.Close()
			batch := &step.Batch{}
			for i := range n {
				if _, err := r.Begin(route.Arrival{Handle: step.Handle(i), Prompt: 1, Output: 1 << 30}); err != nil {
					b.Fatal(err)
				}
				batch.Handle, batch.ID, batch.Pos = append(batch.Handle, step.Handle(i)), append(batch.ID, step.RequestID(i)), append(batch.Pos, 9)
				batch.Sample, batch.Verify = append(batch.Sample, true), append(batch.Verify, 0)
			}
			res, mv := &step.Result{Signal: make([]float64, n)}, &route.Moves{}
			b.ReportAllocs()
			for b.Loop() {
				mv.Resize(n, true)
				r.Route(0, batch, res, mv)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
		})
	}
}
