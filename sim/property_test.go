package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/dispatch"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results"
)

// counted counts the drafts that a router drops.
type counted struct {
	route.Router
	dropped int64
}

func (c *counted) Send(b *step.Batch, row int, to step.ModelID) int32 {
	n := c.Router.Send(b, row, to)
	c.dropped += int64(n)
	return n
}

func (c *counted) Reads() (step.Columns, int) { return route.Reads(c.Router) }

// arbitrary draws a whole working point. The router is nil where it is a program: nobody sees what that drops.
func arbitrary(t *rapid.T) (*Config, *counted) {
	c := &Config{Check: true, Log: &core.EventLog{}}
	algorithm := rapid.SampledFrom(route.Names()).Draw(t, "algorithm")
	models := rapid.IntRange(2, 3).Draw(t, "models")
	c.Topology = rapid.SampledFrom([]Topology{TokenRouter, StepSync, RPC}).Draw(t, "topology")
	kv := 0
	if rapid.Bool().Draw(t, "pressure") {
		kv = rapid.IntRange(96, 400).Draw(t, "kv")
	}
	vector := make([]int, models)
	for i := range vector {
		vector[i] = rapid.IntRange(1, 4).Draw(t, "B")
	}
	table := core.Table{vector}.Lowered()
	for i := range models {
		policy := core.Policy{
			MaxBatch:    rapid.IntRange(1, 12).Draw(t, "max batch"),
			TokenBudget: rapid.IntRange(8, 200).Draw(t, "budget"),
		}
		if c.Topology == TokenRouter {
			policy.Threshold = table.Column(i)
			policy.Gate = rapid.IntRange(0, 3).Draw(t, "gate")
			policy.Timer = time.Duration(rapid.IntRange(0, 1).Draw(t, "timer")) * 7 * time.Millisecond
		}
		var l latency.Model = latency.Constant(rapid.IntRange(1, 30).Draw(t, "L")) * 1e6
		if rapid.Bool().Draw(t, "affine") {
			l = law(func(s step.Shape) time.Duration {
				return time.Duration(1e6 + 1e5*s.Decodes + 1e4*int(s.ExtendTokens) + 100*int(s.DecodeContext+s.ExtendContext))
			})
		}
		c.Models = append(c.Models, Model{Name: fmt.Sprint(i), Latency: l, Policy: policy, KVTokens: kv})
	}
	n := rapid.IntRange(1, 25).Draw(t, "requests")
	for range n {
		c.Requests = append(c.Requests, Request{int32(rapid.IntRange(1, 60).Draw(t, "prompt")), int32(rapid.IntRange(1, 30).Draw(t, "output"))})
	}
	c.Warmup = rapid.IntRange(0, n-1).Draw(t, "warm-up")
	c.Clients = rapid.IntRange(1, 8).Draw(t, "clients")
	if rapid.Bool().Draw(t, "open") {
		at := clock.Instant(0)
		for range n {
			at = at.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "gap")) * 5 * time.Millisecond)
			c.Arrivals = append(c.Arrivals, at)
		}
	}
	c.Contention = rapid.SampledFrom([]float64{0, 0, .5}).Draw(t, "kappa")
	c.Transport = rapid.SampledFrom([]time.Duration{0, 0, 3 * time.Millisecond}).Draw(t, "transport")
	c.RouterCost = rapid.SampledFrom([]time.Duration{0, 75e3}).Draw(t, "router")
	us := func(what string) time.Duration {
		return time.Duration(rapid.SampledFrom([]int{0, 0, 50, 800}).Draw(t, what)) * time.Microsecond
	}
	c.RPC = RPCCosts{
		Calls: rapid.SampledFrom([]dispatch.Calls{dispatch.PerToken, dispatch.PerRun}).Draw(t, "calls"),
		Cache: rapid.SampledFrom([]core.Retain{core.RetainNone, core.RetainBlocks, core.RetainAll}).Draw(t, "cache"),
		RTT:   us("rtt"), Dispatch: us("dispatch"), Server: us("server"), ServerPerGenerated: us("generated") / 50,
	}
	r, err := route.New(algorithm, route.Options{
		Models: models, Program: rapid.Bool().Draw(t, "program"), Step: rapid.IntRange(1, 12).Draw(t, "step"),
	})
	if err != nil {
		t.Fatal(err)
	}
	router := &counted{Router: r}
	c.Router = router
	if _, ok := r.(route.Follower); ok {
		c.Router, router = r, nil
	}
	var rules []signal.Rule
	var rates []float64
	for i := range models {
		rules = append(rules, r.(route.Ruled).Rule(step.ModelID(i)))
		rates = append(rates, rapid.SampledFrom([]float64{0, .1, .35, .6}).Draw(t, "rate"))
	}
	c.Signal, err = signal.New(signal.Config{
		Seed: rapid.Uint64().Draw(t, "seed"), Rules: rules, Rates: rates, Correlation: rapid.SampledFrom([]float64{0, .3}).Draw(t, "correlation"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, router
}

// On any working point: every request ends exactly once with all its tokens, nothing starts before it arrives, tokens
// sampled are tokens committed and dropped, TTFT and the gaps sum to E2E, KV is conserved, and nothing strands.
func TestAnyWorkingPoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, router := arbitrary(t)
		ended := map[int32]results.Request{}
		c.Ended = func(r *results.Request) {
			if _, twice := ended[r.ID]; twice {
				t.Fatalf("request %d ended twice", r.ID)
			}
			ended[r.ID] = *r
		}
		o, err := Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if len(ended) != len(c.Requests) {
			t.Fatalf("%d of %d requests ended", len(ended), len(c.Requests))
		}
		// What the log says of each request.
		type history struct {
			tokens      int32
			first, last int64
			gaps        int64
			started     int64
		}
		seen := make([]history, len(c.Requests))
		for i := range seen {
			seen[i].started = math.MaxInt64
		}
		committed := int64(0)
		for _, l := range c.Log.Lines {
			var at, id int64
			var tokens int32
			if n, _ := fmt.Sscanf(l, "%d commit r%d +%d", &at, &id, &tokens); n == 3 {
				h := &seen[id]
				if h.tokens == 0 {
					h.first = at
				} else {
					h.gaps += at - h.last
				}
				h.tokens += tokens
				h.last = at
				committed += int64(tokens)
			} else if strings.Contains(l, " m") {
				fmt.Sscanf(l, "%d", &at)
				for _, row := range strings.Fields(l[strings.IndexByte(l, '[')+1 : len(l)-1]) {
					fmt.Sscanf(row, "%d+", &id)
					seen[id].started = min(seen[id].started, at)
				}
			}
		}
		for id, r := range ended {
			want := c.Requests[id]
			if r.Status == results.Rejected {
				if c.Models[0].KVTokens == 0 || int(want.Prompt+want.Output) <= c.Models[0].KVTokens/16*16 {
					t.Fatalf("request %d rejected: %s", id, r.Error)
				}
				continue
			}
			h := seen[id]
			if r.OutputTokens != want.Output || h.tokens != want.Output {
				t.Fatalf("request %d: %d tokens recorded, %d logged, want %d; %s", id, r.OutputTokens, h.tokens, want.Output, r.Error)
			}
			if int64(r.First) != h.first || int64(r.Last) != h.last || r.LargeTokens > r.OutputTokens {
				t.Fatalf("request %d: record %+v, log %+v", id, r, h)
			}
			if c.Arrivals != nil && r.Arrival != c.Arrivals[id] {
				t.Fatalf("request %d arrived at %v, scheduled for %v", id, r.Arrival, c.Arrivals[id])
			}
			if h.started <= int64(r.Arrival) || r.First <= r.Arrival {
				t.Fatalf("request %d: first step over at %d, arrived at %d", id, h.started, r.Arrival)
			}
			ttft, _ := r.TTFT()
			e2e, _ := r.E2E()
			if ttft+time.Duration(h.gaps) != e2e {
				t.Fatalf("request %d: TTFT %v + gaps %v != E2E %v", id, ttft, time.Duration(h.gaps), e2e)
			}
		}
		if router != nil && o.Tokens != committed+router.dropped || o.Tokens < committed {
			t.Fatalf("sampled %d, committed %d", o.Tokens, committed)
		}
		for i, m := range o.Models {
			if m.Busy > time.Duration(o.End) || m.Rows < m.Steps {
				t.Fatalf("model %d: %+v by %v", i, m, o.End)
			}
		}
	})
}

// The realised switch rate is the requested one, iid or bursty, within 4 standard errors.
func TestSwitchRate(t *testing.T) {
	long(t)
	for _, correlation := range []float64{0, .3} {
		for _, p := range []float64{.02, .1, .35, .8} {
			c := &Config{Models: constants(small, large), Requests: equal(200, 10, 1000), Clients: 50}
			routed(t, c, "r2r", 77, correlation, p)
			o := mustRun(t, c)
			got := float64(o.Models[1].Rows) / float64(o.Models[0].Rows)
			se := math.Sqrt(p * (1 - p) / float64(o.Models[0].Rows) * (1 + correlation) / (1 - correlation))
			if math.Abs(got-p) > 4*se {
				t.Errorf("correlation %v, p = %v: realised %.5f, 4 standard errors are %.5f", correlation, p, got, 4*se)
			}
		}
	}
}
