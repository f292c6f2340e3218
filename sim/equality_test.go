package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/dispatch"
	"github.com/trbench/trbench/engine/route"
)

// canonical sorts what happened within one Instant, and the requests within one batch: the baseline's servers see every
// call as a new arrival, so they order a batch by id alone.
func canonical(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		if at, ids, ok := strings.Cut(l, "["); ok {
			rows := strings.Fields(strings.TrimSuffix(ids, "]"))
			slices.Sort(rows)
			l = at + "[" + strings.Join(rows, " ") + "]"
		}
		out[i] = l
	}
	stamp := func(l string) string { return l[:strings.IndexByte(l, ' ')] }
	for i := 0; i < len(out); {
		j := i + 1
		for j < len(out) && stamp(out[j]) == stamp(out[i]) {
			j++
		}
		slices.Sort(out[i:j])
		i = j
	}
	return out
}

// Without costs, eager, and with every server's KV resident, orchestration over RPC is TokenRouter: the same steps of
// the same requests at the same instants, and the same commits.
func TestFreeRPCIsTokenRouter(t *testing.T) {
	lengths := make([]Request, 50)
	for i := range lengths {
		lengths[i] = Request{int32(3 + 41*i%300), int32(1 + 17*i%90)}
	}
	for _, algorithm := range route.Names() {
		for _, calls := range []dispatch.Calls{dispatch.PerToken, dispatch.PerRun} {
			for _, equalSteps := range []bool{false, true} {
				t.Run(fmt.Sprint(algorithm, " calls=", calls, " equal steps=", equalSteps), func(t *testing.T) {
					run := func(topology Topology) []string {
						log := &core.EventLog{}
						c := &Config{Topology: topology, Requests: lengths, Clients: 6, Log: log, Check: true}
						c.RPC = RPCCosts{Calls: calls, Cache: core.RetainAll}
						if equalSteps {
							c.Models = constants(small, small)
						} else {
							c.Models = []Model{
								{Name: "llama3-8b", Latency: profile(t, "a100", "llama3-8b", 1)},
								{Name: "llama3-70b", Latency: profile(t, "a100", "llama3-70b", 4)},
							}
						}
						routed(t, c, algorithm, 9, 0, .2, .7)
						mustRun(t, c)
						return canonical(log.Lines)
					}
					a, b := run(TokenRouter), run(RPC)
					for i := range min(len(a), len(b)) {
						if a[i] != b[i] {
							t.Fatalf("line %d of %d / %d:\ntokenrouter %s\nrpc         %s", i, len(a), len(b), a[i], b[i])
						}
					}
					if len(a) != len(b) {
						t.Fatalf("%d and %d lines", len(a), len(b))
					}
				})
			}
		}
	}
}

// Each cost makes the baseline slower, and its price at N = 1 is what the knob says.
func TestRPCCostsAtOneRequest(t *testing.T) {
	const tokens = 100
	base := func(costs RPCCosts) time.Duration {
		c := &Config{Topology: RPC, Models: constants(small, large), Requests: equal(1, 50, tokens), Clients: 1, RPC: costs, Check: true}
		c.RPC.Cache = core.RetainAll
		routed(t, c, "r2r", 1, 0, 0) // never leaves the small model: tokens calls
		return time.Duration(mustRun(t, c).End)
	}
	free := base(RPCCosts{})
	if free != tokens*small {
		t.Fatalf("free: %v, want %v", free, tokens*small)
	}
	const us = time.Microsecond
	sum := time.Duration(tokens*50+tokens*(tokens-1)/2) * us // prompts sent, one microsecond a token
	squares := time.Duration(0)
	for i := time.Duration(50); i < 150; i++ {
		squares += i * i
	}
	for _, c := range []struct {
		name  string
		costs RPCCosts
		want  time.Duration
	}{
		{"round trip", RPCCosts{RTT: 1000 * us}, tokens * 1000 * us},
		{"orchestrator", RPCCosts{Dispatch: 70 * us}, (tokens + 1) * 70 * us}, // the last reply too
		{"server", RPCCosts{Server: 70 * us}, tokens * 70 * us},
		{"server, per token sent", RPCCosts{ServerPerToken: us}, sum},
		{"server, per token generated", RPCCosts{ServerPerGenerated: us}, time.Duration(tokens*(tokens-1)/2) * us},
		{"server, per square of tokens generated", RPCCosts{Squared: SquaredCosts{Generated: 3}}, 3 * (99 * 100 * 199 / 6)},
		{"server, per square of tokens sent", RPCCosts{Squared: SquaredCosts{Token: 2}}, 2 * squares},
		{"extend", RPCCosts{Extend: []time.Duration{500 * us}}, 500 * us}, // the prefill alone
	} {
		if got := base(c.costs) - free; got != c.want {
			t.Errorf("%s: %v more, want %v", c.name, got, c.want)
		}
	}
}

// A server without prefix cache feeds the whole prompt each call; a block cache all but the tail; a full cache one token.
func TestRPCPrefixCache(t *testing.T) {
	fed := map[core.Retain]int64{}
	for _, cache := range []core.Retain{core.RetainNone, core.RetainBlocks, core.RetainAll} {
		c := &Config{Topology: RPC, Models: constants(small, large), Requests: equal(1, 50, 100), Clients: 1, Check: true}
		c.RPC.Cache = cache
		routed(t, c, "r2r", 1, 0, 0)
		log := &core.EventLog{}
		c.Log = log
		mustRun(t, c)
		for _, l := range log.Lines {
			var at, id, feed, pos int64
			if n, _ := fmt.Sscanf(l, "%d m0 [%d+%d@%d]", &at, &id, &feed, &pos); n == 4 {
				fed[cache] += feed
			}
		}
	}
	none, blocks := int64(0), int64(0)
	for i := int64(0); i < 100; i++ {
		known, cached := 50+i, int64(0)
		none += known
		if i > 0 {
			cached = min((known-1)/16*16, (known-1)/16*16)
		}
		blocks += known - cached
	}
	if fed[core.RetainNone] != none || fed[core.RetainBlocks] != blocks || fed[core.RetainAll] != 50+99 {
		t.Errorf("fed %v; want none %d, blocks %d, all 149", fed, none, blocks)
	}
}
