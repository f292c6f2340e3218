package experiment

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/internal/suggest"
	"github.com/trbench/trbench/sim"
)

// System is one way to serve the models.
type System struct {
	Name    string
	Summary string
	// Topology of the simulator.
	Topology sim.Topology
	// Only is the model of a single-model system, counted from the smallest; -1 is the largest. Routed systems have none.
	Only int
	// Costs of an rpc system: its preset; Why says where they come from, by key.
	Costs sim.RPCCosts
	Why   map[string]string
}

// Routed says that the system runs a routing algorithm.
func (s System) Routed() bool { return s.Topology != sim.Single }

// AllLarge says that a model other than the smallest writes every token.
func (s System) AllLarge() bool { return !s.Routed() && s.Only != 0 }

// Systems lists the systems by name, TokenRouter first.
//
// The rpc presets charge what has a source and nothing else, so their ratios are lower bounds: a server's own request
// handling (tokenising, HTTP workers, process hops) comes on top and is rpc.server_us.
func Systems() []System {
	apc, none, radix := rpcPresets()
	return []System{
		{Name: "tokenrouter", Summary: "one subserver a model, handoff-resume with resident KV, delayed batching", Topology: sim.TokenRouter},
		{Name: "rpc:vllm-apc", Summary: "separate servers, a call a token, block-granular prefix cache", Topology: sim.RPC, Costs: apc.costs, Why: apc.why},
		{Name: "rpc:vllm-noapc", Summary: "separate servers, a call a token, no prefix cache", Topology: sim.RPC, Costs: none.costs, Why: none.why},
		{Name: "rpc:sglang-radix", Summary: "separate servers, a call a token, radix cache and the CPU time that it takes", Topology: sim.RPC,
			Costs: radix.costs, Why: radix.why},
		{Name: "step-sync", Summary: "the models in turn, a barrier after each step", Topology: sim.StepSync},
		{Name: "large-only", Summary: "the large model alone, one streaming call a request", Topology: sim.Single, Only: -1},
		{Name: "small-only", Summary: "the small model alone", Topology: sim.Single, Only: 0},
	}
}

// FindSystem returns the named system; rpc alone is rpc:vllm-apc.
func FindSystem(name string) (System, error) {
	plain := strings.ToLower(strings.TrimSpace(name))
	if plain == "rpc" {
		plain = "rpc:vllm-apc"
	}
	var names []string
	for _, s := range Systems() {
		if s.Name == plain {
			return s, nil
		}
		names = append(names, s.Name)
	}
	if near, ok := suggest.Nearest(plain, names); ok {
		return System{}, fmt.Errorf("unknown system %q: did you mean %s? (known: %s)", name, near, strings.Join(names, ", "))
	}
	return System{}, fmt.Errorf("unknown system %q (known: %s)", name, strings.Join(names, ", "))
}

func systems(s string) ([]string, error) {
	parts, err := split(s)
	if err != nil {
		return nil, err
	}
	for i, p := range parts {
		sys, err := FindSystem(p)
		if err != nil {
			return nil, err
		}
		if slices.Contains(parts[:i], sys.Name) {
			return nil, fmt.Errorf("%s stands there twice", sys.Name)
		}
		parts[i] = sys.Name
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("want at least one system")
	}
	return parts, nil
}

func algorithms(s string) ([]string, error) {
	parts, err := split(s)
	if err != nil {
		return nil, err
	}
	for i, p := range parts {
		name := strings.ToLower(p)
		if !slices.Contains(route.Names(), name) {
			_, err := route.New(name, route.Options{Models: 2})
			return nil, err
		}
		if slices.Contains(parts[:i], name) {
			return nil, fmt.Errorf("%s stands there twice", name)
		}
		parts[i] = name
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("want at least one algorithm")
	}
	return parts, nil
}
