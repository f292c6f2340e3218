package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency/kernels"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/sim"
)

// law is a latency model made of a function.
type law func(kernels.Shape) time.Duration

func (l law) Time(s kernels.Shape) time.Duration { return l(s) }

const ms = time.Millisecond

func at(d time.Duration) clock.Instant { return clock.Instant(d) }

// constant takes 10 ms a step, whatever is in it.
func constant(kernels.Shape) time.Duration { return 10 * ms }

// tokenLaw takes 1 ms, and 10 us a token.
func tokenLaw(s kernels.Shape) time.Duration {
	return ms + time.Duration(s.Tokens())*10*time.Microsecond
}

func server(l law) *Config {
	return &Config{MaxSeqs: 8, TokenBudget: 64, BlockTokens: 4, Chunked: true, Caching: true, Async: true, Latency: l,
		Check: true}
}

func serve(t testing.TB, c *Config, requests ...Request) *Outcome {
	t.Helper()
	o, err := Run(context.Background(), c, requests)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestOneRequest wants a request alone to take a step for each chunk of its prompt and each further token, and both ways
// of planning to agree, since nobody waits.
func TestOneRequest(t *testing.T) {
	for _, async := range []bool{false, true} {
		c := server(constant)
		c.Async = async
		o := serve(t, c, Request{Arrival: at(3 * ms), Prompt: 130, Output: 5})
		want := []Times{{Scheduled: at(3 * ms), First: at(33 * ms), Last: at(73 * ms)}}
		if d := cmp.Diff(want, o.Requests); d != "" {
			t.Errorf("async %v (-want +got)\n%s", async, d)
		}
		if o.Steps != 7 || o.Busy != 70*ms || o.End != at(73*ms) || o.MostHeld != 34 {
			t.Errorf("async %v: %d steps, busy %v, end %v, %d blocks", async, o.Steps, o.Busy, o.End, o.MostHeld)
		}
	}
}

// TestPlannedAhead wants a request that comes during a step to be in the next one but one, since the next one has been
// planned, and in the next one where nothing is planned ahead.
func TestPlannedAhead(t *testing.T) {
	for _, c := range []struct {
		async            bool
		scheduled, first time.Duration
	}{{false, 20 * ms, 30 * ms}, {true, 20 * ms, 40 * ms}} {
		s := server(constant)
		s.Async = c.async
		o := serve(t, s, Request{Prompt: 4, Output: 20}, Request{Arrival: at(15 * ms), Prompt: 4, Output: 1})
		want := Times{Scheduled: at(c.scheduled), First: at(c.first), Last: at(c.first)}
		if d := cmp.Diff(want, o.Requests[1]); d != "" {
			t.Errorf("async %v (-want +got)\n%s", c.async, d)
		}
	}
}

// TestSlotFreedLate wants a place in the batch to be taken again by the second step after the last token: the first has
// been planned before that token was seen.
func TestSlotFreedLate(t *testing.T) {
	for _, c := range []struct {
		async bool
		first time.Duration
	}{{false, 40 * ms}, {true, 50 * ms}} {
		s := server(constant)
		s.Async, s.MaxSeqs = c.async, 2
		o := serve(t, s, Request{Prompt: 4, Output: 3}, Request{Prompt: 4, Output: 20}, Request{Prompt: 4, Output: 1})
		if got := o.Requests[2].First; got != at(c.first) {
			t.Errorf("async %v: first token at %v, want %v", c.async, got, c.first)
		}
		if s.Async && o.Requests[1].Last != at(200*ms) {
			t.Errorf("the other ends at %v, want no gap: 200ms", o.Requests[1].Last)
		}
	}
}

// shapes records the steps.
func shapes(c *Config) *[]string {
	var log []string
	next := c.Latency
	c.Latency = law(func(s kernels.Shape) time.Duration {
		log = append(log, fmt.Sprintf("%d+%d:%d", s.Decodes, s.Extends, s.ExtendTokens))
		return next.Time(s)
	})
	return &log
}

// TestPrefix wants the second of two prompts to feed what it does not share: full blocks only, and at least one token.
func TestPrefix(t *testing.T) {
	prompt := make([]int32, 40)
	for i := range prompt {
		prompt[i] = int32(i)
	}
	other := slices.Clone(prompt)
	other[20] = 99 // in the sixth block of four
	for _, c := range []struct {
		what   string
		tokens []int32
		fed    int
	}{
		{"all of it", prompt, 4}, {"five blocks", other, 20}, {"nothing", other[20:], 20}, {"too little", prompt[:3], 3},
	} {
		s := server(constant)
		log := shapes(s)
		o := serve(t, s,
			Request{Prompt: 40, Output: 1, Blocks: Contents(prompt, 4)},
			Request{Arrival: at(time.Second), Prompt: int32(len(c.tokens)), Output: 1, Blocks: Contents(c.tokens, 4)})
		want := []string{"0+1:40", fmt.Sprintf("0+1:%d", c.fed)}
		if d := cmp.Diff(want, *log); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.what, d)
		}
		if got := int(o.CacheHits); got != len(c.tokens)-c.fed {
			t.Errorf("%s: %d tokens found", c.what, got)
		}
	}
}

// TestPreemption follows a server of 8 blocks that two requests overfill. Each has 2 blocks at first and one more every 4
// tokens. When the first needs its fifth, the second gives way; it is admitted again once the first has ended, and finds
// those of its blocks that nobody took.
func TestPreemption(t *testing.T) {
	c := server(constant)
	c.Blocks, c.Async = 9, false
	log := shapes(c)
	o := serve(t, c, Request{Prompt: 8, Output: 16}, Request{Prompt: 8, Output: 16}, Request{Arrival: 1, Prompt: 4, Output: 1})
	want := strings.Split("0+2:16 2+1:4 2+0:0 2+0:0 2+0:0 2+0:0 2+0:0 2+0:0 2+0:0", " ")
	if d := cmp.Diff(want, (*log)[:9]); d != "" {
		t.Errorf("steps (-want +got)\n%s", d)
	}
	// Both hold 4 blocks for 16 tokens. The 17th token of the first takes them from the second: 9 outputs each so far.
	if o.Preempted != 1 {
		t.Errorf("%d preemptions, want 1", o.Preempted)
	}
	if got := (*log)[9]; got != "1+0:0" {
		t.Errorf("the step that preempts is %s, want the first alone", got)
	}
	if o.Requests[0].Last != at(160*ms) {
		t.Errorf("the first ends at %v, want 160ms", o.Requests[0].Last)
	}
	resumed := (*log)[16]
	if o.Steps != 23 || resumed != "0+1:9" || o.Recomputed != 8 {
		t.Errorf("%d steps, resumed with %s, %d tokens again", o.Steps, resumed, o.Recomputed)
	}
}

// TestWholePrompt wants a prompt to wait until all of it fits, unless the first chunk is enough.
func TestWholePrompt(t *testing.T) {
	for _, c := range []struct {
		firstChunk bool
		scheduled  time.Duration
	}{{false, 40 * ms}, {true, 10 * ms}} {
		s := server(constant)
		s.Blocks, s.Async, s.FirstChunk, s.TokenBudget = 9, false, c.firstChunk, 12
		o := serve(t, s, Request{Prompt: 10, Output: 4}, Request{Arrival: 1, Prompt: 24, Output: 1})
		if got := o.Requests[1].Scheduled; got != at(c.scheduled) {
			t.Errorf("first chunk %v: scheduled at %v, want %v", c.firstChunk, got, c.scheduled)
		}
	}
}

// TestUnsplit wants a prompt that is not split to wait for a step with room for all of it.
func TestUnsplit(t *testing.T) {
	c := server(constant)
	c.Chunked, c.Async = false, false
	log := shapes(c)
	serve(t, c, Request{Prompt: 40, Output: 1}, Request{Prompt: 40, Output: 1})
	if d := cmp.Diff([]string{"0+1:40", "0+1:40"}, *log); d != "" {
		t.Errorf("steps (-want +got)\n%s", d)
	}
}

// TestErrors wants settings and requests that can't be served to be refused, with the numbers.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		q      Request
		kind   error
		want   string
	}{
		{func(c *Config) { c.MaxSeqs = 0 }, Request{Prompt: 1, Output: 1}, ErrConfig, "max_num_seqs 0"},
		{func(c *Config) { c.TokenBudget = 0 }, Request{Prompt: 1, Output: 1}, ErrConfig, "token budget 0"},
		{func(c *Config) { c.BlockTokens = -1 }, Request{Prompt: 1, Output: 1}, ErrConfig, "block size -1"},
		{func(c *Config) { c.Blocks = 1 }, Request{Prompt: 1, Output: 1}, ErrConfig, "1 blocks of KV"},
		{func(*Config) {}, Request{Prompt: 1}, ErrConfig, "request 0: 1 prompt and 0 output tokens"},
		{func(c *Config) { c.Blocks = 5 }, Request{Prompt: 10, Output: 8}, ErrTooLong, "KV has room for 16"},
		{func(c *Config) { c.Chunked = false }, Request{Prompt: 65, Output: 1}, ErrTooLong, "65 tokens that is not split, and a budget of 64"},
		{func(c *Config) { c.Chunked, c.Caching, c.Blocks, c.TokenBudget = false, false, 9, 10 }, Request{Prompt: 8, Output: 22}, ErrStranded, "request"},
	} {
		s := server(constant)
		c.change(s)
		requests := []Request{c.q}
		if c.kind == ErrStranded { // two of them: one is preempted with more tokens than a step takes
			requests = append(requests, c.q)
		}
		_, err := Run(context.Background(), s, requests)
		if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %v with %q", err, c.kind, c.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, server(constant), []Request{{Prompt: 1, Output: 1000}}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}

// drawn is any server and any trace.
func drawn(t *rapid.T) (*Config, []Request) {
	c := server(tokenLaw)
	c.MaxSeqs = rapid.IntRange(1, 6).Draw(t, "max_num_seqs")
	c.TokenBudget = rapid.IntRange(1, 40).Draw(t, "budget")
	c.Async = rapid.Bool().Draw(t, "async")
	c.Caching = rapid.Bool().Draw(t, "caching")
	c.FirstChunk = rapid.Bool().Draw(t, "first chunk")
	if rapid.Bool().Draw(t, "limited") {
		c.Blocks = rapid.Int32Range(21, 40).Draw(t, "blocks")
	}
	var requests []Request
	for range rapid.IntRange(1, 12).Draw(t, "requests") {
		q := Request{
			Arrival: at(time.Duration(rapid.IntRange(0, 100).Draw(t, "arrival")) * ms),
			Prompt:  rapid.Int32Range(1, 50).Draw(t, "prompt"), Output: rapid.Int32Range(1, 30).Draw(t, "output"),
		}
		if rapid.Bool().Draw(t, "known") {
			tokens := make([]int32, q.Prompt)
			for i := range tokens {
				tokens[i] = rapid.Int32Range(0, 1).Draw(t, "token") * int32(i/20) // many share their beginning
			}
			q.Blocks = Contents(tokens, 4)
		}
		requests = append(requests, q)
	}
	return c, requests
}

// TestNothingIsLost serves any trace on any server: every request ends, none starts before it came, tokens and blocks are
// kept (Check), the batch keeps its bounds, and tokens fed are those wanted, less those found, plus those fed again.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, requests := drawn(t)
		fed := int64(0)
		next := c.Latency
		c.Latency = law(func(s kernels.Shape) time.Duration {
			fed += s.Tokens()
			if s.Seqs() > c.MaxSeqs || s.Tokens() > int64(c.TokenBudget) {
				t.Fatalf("a step of %d requests and %d tokens", s.Seqs(), s.Tokens())
			}
			return next.Time(s)
		})
		o, err := Run(context.Background(), c, requests)
		if err != nil {
			t.Fatal(err)
		}
		want := o.Recomputed - o.CacheHits
		for i, q := range requests {
			r := o.Requests[i]
			want += int64(q.Prompt + q.Output - 1)
			if r.Scheduled < q.Arrival || r.First <= r.Scheduled || r.Last < r.First || q.Output == 1 && r.Last != r.First {
				t.Fatalf("request %d of %+v: %+v", i, q, r)
			}
			if least := time.Duration(q.Output-1) * ms; r.Last.Sub(r.First) < least {
				t.Fatalf("request %d: %d tokens in %v", i, q.Output, r.Last.Sub(r.First))
			}
		}
		if fed != want {
			t.Fatalf("%d tokens fed, want %d (%d again, %d found)", fed, want, o.Recomputed, o.CacheHits)
		}
		if c.Blocks == 0 && o.Preempted > 0 || !c.Caching && o.CacheHits > 0 {
			t.Fatalf("%d preemptions, %d tokens found", o.Preempted, o.CacheHits)
		}
		again, err := Run(context.Background(), c, requests)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(o, again); d != "" {
			t.Fatalf("two runs differ\n%s", d)
		}
	})
}

// TestScaled wants all times to grow in proportion when arrivals and steps do.
func TestScaled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, requests := drawn(t)
		o, err := Run(context.Background(), c, requests)
		if err != nil {
			t.Fatal(err)
		}
		slow := *c
		slow.Latency = law(func(s kernels.Shape) time.Duration { return 3 * tokenLaw(s) })
		later := slices.Clone(requests)
		for i := range later {
			later[i].Arrival *= 3
		}
		p, err := Run(context.Background(), &slow, later)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range o.Requests {
			if want := (Times{3 * r.Scheduled, 3 * r.First, 3 * r.Last}); p.Requests[i] != want {
				t.Fatalf("request %d: %+v, want %+v", i, p.Requests[i], want)
			}
		}
	})
}

// TestCore wants the scheduler that routes tokens to give the same times where both can do the same: one model, prompts
// that share nothing, no step planned ahead, KV that is enough.
func TestCore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, requests := drawn(t)
		c.Async, c.Caching, c.FirstChunk, c.Blocks = false, false, false, 0
		slices.SortStableFunc(requests, func(a, b Request) int { return int(a.Arrival - b.Arrival) })
		o, err := Run(context.Background(), c, requests)
		if err != nil {
			t.Fatal(err)
		}
		s := sim.Config{Topology: sim.Single, Models: []sim.Model{{
			Name: "one", Latency: stepLaw{}, Policy: core.Policy{MaxBatch: c.MaxSeqs, TokenBudget: c.TokenBudget},
		}}}
		for _, q := range requests {
			s.Requests = append(s.Requests, sim.Request{Prompt: q.Prompt, Output: q.Output})
			s.Arrivals = append(s.Arrivals, q.Arrival)
		}
		s.Ended = func(r *results.Request) {
			if got := o.Requests[r.ID]; got.First != r.First || got.Last != r.Last {
				t.Fatalf("request %d: %v and %v, core says %v and %v", r.ID, got.First, got.Last, r.First, r.Last)
			}
		}
		if _, err := sim.Run(context.Background(), &s); err != nil {
			t.Fatal(err)
		}
	})
}

// stepLaw is tokenLaw for core.
type stepLaw struct{}

func (stepLaw) StepTime(s step.Shape) time.Duration { return tokenLaw(kernels.Shape{Shape: s}) }

// TestContents wants blocks to be alike only where all tokens before them are, and never to be nothing.
func TestContents(t *testing.T) {
	a := Contents([]int32{1, 2, 3, 4, 5, 6, 7}, 2)
	b := Contents([]int32{1, 2, 9, 4, 5, 6}, 2)
	if len(a) != 3 || len(b) != 3 || a[0] != b[0] || a[1] == b[1] || a[2] == b[2] || slices.Contains(a, 0) {
		t.Errorf("contents %x and %x", a, b)
	}
}

// BenchmarkRun serves 1,000 requests under KV pressure; a step takes 10 ms.
func BenchmarkRun(b *testing.B) {
	c := server(constant)
	c.MaxSeqs, c.TokenBudget, c.BlockTokens, c.Blocks, c.Check = 128, 2048, 16, 4000, false
	var requests []Request
	for i := range 1000 {
		requests = append(requests, Request{
			Arrival: at(time.Duration(i) * 50 * ms), Prompt: int32(100 + i*37%900), Output: int32(50 + i*53%500),
		})
	}
	b.ReportAllocs()
	steps := 0
	for b.Loop() {
		o, err := Run(context.Background(), c, requests)
		if err != nil {
			b.Fatal(err)
		}
		steps = o.Steps
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*steps), "ns/step")
}
