package experiment

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/dispatch"
	"github.com/trbench/trbench/sim"
)

// rpcPreset is what the calls of one baseline cost, and where each cost comes from.
type rpcPreset struct {
	costs sim.RPCCosts
	// why is the source of each cost, by key; a cost without one is not known to exist.
	why map[string]string
}

// The paper's breakdown of a step of the small model under its standard serving: means over the last 128 of 2,048 tokens,
// in ms. The cache is a radix tree of one node a call, since each call ends one token later: matching, locking,
// unlocking and inserting walk all of its nodes.
const (
	stdMatchMS, stdLockMS, stdUnlockMS, stdUpdateMS = 7.78, 6.49, 5.13, 12.12
	stdInferenceMS, stdOtherMS                      = 1.56, 4.08

	stdGenerated = 2048 - 128/2 // tokens, in the middle of them
)

// radixUS is what one call spends on the tree there, us.
const radixUS = 1000 * (stdMatchMS + stdLockMS + stdUnlockMS + stdUpdateMS)

// radixShare is the part of it that grows with the square of the output. Two of the four walks also copy what is left of the
// key at each node. The breakdown is of one length and can't tell the parts: half is assumed.
const radixShare = .5

// rpcPresets charge what has a source and nothing else, so ratios against them are lower bounds.
func rpcPresets() (apc, none, radix rpcPreset) {
	wire := map[string]string{
		"rpc.rtt_us":                "assumed: a local network, both ways, with its event loops",
		"rpc.dispatch_us":           "measured: HTTP + JSON with token ids, 65 / 235 / 722 us a call at 128 / 2,000 / 8,000 ids",
		"rpc.dispatch_us_per_token": "measured: as rpc.dispatch_us, the line through the ends",
	}
	base := sim.RPCCosts{RTT: micros(1000), Dispatch: micros(54), DispatchPerToken: micros(.084)}
	vllm := func(cache core.Retain) rpcPreset {
		p := rpcPreset{base, map[string]string{
			"rpc.extend_us": "none: vLLM captures steps with extends piecewise; SGLang without CUDA graphs: 9700,20900 (paper, ablation)",
		}}
		p.costs.Cache = cache
		for k, w := range wire {
			p.why[k] = w
		}
		return p
	}
	apc = vllm(core.RetainBlocks) // automatic prefix caching: full blocks of 16, so up to 16 tokens are fed again a call
	none = vllm(core.RetainNone)  // every call feeds the whole context again
	radix = vllm(core.RetainAll)  // every computed token is found again
	radix.costs.ServerPerGenerated = micros((1 - radixShare) * radixUS / stdGenerated)
	radix.costs.Squared.Generated = math.Round(1000*radixShare*radixUS*1000/(stdGenerated*stdGenerated)) / 1000
	radix.why["rpc.server_us_per_generated"] = fmt.Sprintf("published: half of the radix cache's %.1f ms a call at 2,000 tokens "+
		"(paper, breakdown of a step); that it is half is assumed", radixUS/1000)
	radix.why["rpc.server_ns_per_generated_squared"] = "published: the other half; copies of the rest of the key at each node"
	radix.why["rpc.server_us"] = fmt.Sprintf("in the step: inference and other are %.2f ms there, host overhead and kernels 6.0 ms here",
		stdInferenceMS+stdOtherMS)
	radix.why["rpc.extend_us"] = "none: with it the rest of the published step would take 16 ms, and takes 5.64"
	return apc, none, radix
}

// rpcCost is one cost of the baseline: its key, what the user gave, and where it goes.
type rpcCost struct {
	key   string
	unit  string
	given *float64
	to    *time.Duration // or
	plain *float64
}

func (k *RPC) costs(c *sim.RPCCosts) []rpcCost {
	return []rpcCost{
		{"rpc.rtt_us", "us", k.RTTUS, &c.RTT, nil},
		{"rpc.dispatch_us", "us", k.DispatchUS, &c.Dispatch, nil},
		{"rpc.dispatch_us_per_token", "us", k.DispatchUSPerToken, &c.DispatchPerToken, nil},
		{"rpc.server_us", "us", k.ServerUS, &c.Server, nil},
		{"rpc.server_us_per_generated", "us", k.ServerUSPerGen, &c.ServerPerGenerated, nil},
		{"rpc.server_us_per_token", "us", k.ServerUSPerToken, &c.ServerPerToken, nil},
		{"rpc.server_ns_per_generated_squared", "ns", k.ServerNSPerGen2, nil, &c.Squared.Generated},
		{"rpc.server_ns_per_token_squared", "ns", k.ServerNSPerToken2, nil, &c.Squared.Token},
	}
}

// rpcCosts is a system's preset with the keys that are set laid over it.
func (p *Plan) rpcCosts(s System) (sim.RPCCosts, error) {
	costs, k := s.Costs, p.Config.RPC
	costs.Calls = k.Calls
	for _, o := range k.costs(&costs) {
		switch {
		case o.given == nil:
		case o.to != nil:
			*o.to = micros(*o.given)
		default:
			*o.plain = *o.given
		}
	}
	if k.ExtendUS != nil {
		if len(k.ExtendUS) != len(p.Pair.Models) {
			return costs, usagef("rpc.extend_us: %d values for %d models", len(k.ExtendUS), len(p.Pair.Models))
		}
		costs.Extend = nil
		for _, us := range k.ExtendUS {
			costs.Extend = append(costs.Extend, micros(us))
		}
	}
	return costs, nil
}

// CostSources says of every rpc system what its calls cost, resolved, and where each cost comes from.
func (p *Plan) CostSources() ([]string, error) {
	var lines []string
	for _, name := range p.Config.System {
		s, err := FindSystem(name)
		if err != nil || s.Topology != sim.RPC {
			continue
		}
		costs, err := p.rpcCosts(s)
		if err != nil {
			return nil, err
		}
		calls := "one call a token"
		if costs.Calls == dispatch.PerRun {
			calls = "one call for each run of tokens on a model"
		}
		lines = append(lines, fmt.Sprintf("%s: %s; its cache keeps %s", s.Name, calls, retained(costs.Cache)))
		for _, o := range p.Config.RPC.costs(&costs) {
			var value float64
			if o.to != nil {
				value = float64(*o.to) / float64(time.Microsecond)
			} else {
				value = *o.plain
			}
			lines = append(lines, costLine(s, o.key, formatFloat(value), o.given != nil))
		}
		var extend []string
		for _, d := range costs.Extend {
			extend = append(extend, formatFloat(float64(d)/float64(time.Microsecond)))
		}
		if extend == nil {
			extend = []string{"0"}
		}
		lines = append(lines, costLine(s, "rpc.extend_us", strings.Join(extend, ","), p.Config.RPC.ExtendUS != nil))
	}
	return lines, nil
}

func costLine(s System, key, value string, given bool) string {
	why := s.Why[key]
	switch {
	case given:
		why = "as given"
	case why == "":
		why = "no source charges it"
	}
	return fmt.Sprintf("%s: %s = %s (%s)", s.Name, key, value, why)
}

func retained(r core.Retain) string {
	switch r {
	case core.RetainBlocks:
		return fmt.Sprintf("full blocks of %d tokens", core.DefaultBlockTokens)
	case core.RetainAll:
		return "every computed token (radix tree)"
	}
	return "nothing"
}
