package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trbench/trbench/engine/dispatch"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/internal/suggest"
	"github.com/trbench/trbench/results/metrics"
	"github.com/trbench/trbench/workloads"
	"github.com/trbench/trbench/workloads/arrival"
)

// Key is one setting: the same name in a file, in --set, in --axis, and (upper case, after TRBENCH_) in the environment.
type Key struct {
	Name    string
	Flag    bool   // has a flag of its own: the name with dashes
	Kind    string // of its value, in help
	Default string
	Group   string // of help
	Help    string
	// Free keys decide where results go or how fast, not what they are: they are left out of the run's hash.
	Free bool

	set func(*Config, string) error
	get func(*Config) string
}

// Groups of keys, in the order of help.
const (
	groupWork    = "Work"
	groupModels  = "Models and machine"
	groupRouting = "Routing"
	groupSystem  = "Systems"
	groupBatch   = "Batching"
	groupRPC     = "Costs of the RPC baseline (unset: the system's preset)"
	groupOutput  = "Output"
)

// Keys lists every key.
func Keys() []Key {
	return []Key{
		list("workload", groupWork, "gsm8k,alpaca,sharegpt", "workloads: gsm8k, alpaca, sharegpt, fixed:PROMPT,OUTPUT",
			func(c *Config) *[]string { return &c.Workload }, workloads.ParseList),
		list("data", groupWork, "", "dataset files, in the place of workloads", func(c *Config) *[]string { return &c.Data }, split),
		word("format", groupWork, "auto", "form of the dataset files: auto, sharegpt, alpaca, gsm8k, questions, azure, mooncake, burstgpt, lengths",
			func(c *Config) *string { return &c.Format }, nil),
		word("sampler", groupWork, "", "rules that choose requests: vllm, sglang, seeded, none (unset: the usual ones of the source)",
			func(c *Config) *string { return &c.Sampler }, append([]string{""}, workloads.Samplers()...)),
		count("requests", groupWork, "200", "requests a point", 1, workloads.MaxRequests, func(c *Config) *int { return &c.Requests }),
		count("warmup", groupWork, "0", "requests before them that are not measured", 0, workloads.MaxRequests, func(c *Config) *int { return &c.Warmup }),
		counts("concurrency", groupWork, "1,4,16,64", "workers of the closed loop, a point each", func(c *Config) *[]int { return &c.Concurrency }),
		flag("chat", groupWork, "false", "with --engine cpu, give prompts as a user's message in the tokenizer's chat template", func(c *Config) *bool { return &c.Chat }),
		{Name: "arrival", Flag: true, Kind: "process", Group: groupWork, Default: "closed",
			Help: "arrivals: closed, poisson:8, gamma:8,cv=2, constant:8, ramp:1..8,60s, trace[:scale]",
			set: func(c *Config, s string) (err error) {
				c.Arrival, err = arrival.Parse(s)
				return err
			},
			get: func(c *Config) string { return c.Arrival.String() }},
		{Name: "seed", Flag: true, Kind: "number", Group: groupWork, Default: "1", Help: "of every random draw",
			set: func(c *Config, s string) (err error) {
				if c.Seed, err = strconv.ParseUint(s, 10, 64); err != nil {
					return fmt.Errorf("%q: want a whole number from 0 to 2^64-1", s)
				}
				return nil
			},
			get: func(c *Config) string { return strconv.FormatUint(c.Seed, 10) }},
		count("repeat", groupWork, "1", "runs of each point under seeds seed, seed+1, ...; their mean is reported, with a 95 % interval", 1, 1000,
			func(c *Config) *int { return &c.Repeat }),

		word("pair", groupModels, "llama3-8b-70b", "small and large model: see trbench models list", func(c *Config) *string { return &c.Pair }, nil),
		word("small", groupModels, "", "small model, in the place of the pair's; with --engine cpu a folder of Hugging Face files", func(c *Config) *string { return &c.Small }, nil),
		word("large", groupModels, "", "large model, likewise", func(c *Config) *string { return &c.Large }, nil),
		word("latency", groupModels, "a100", "step times: a100, h100, h200 (measured), cpu-demo (fitted), article, paper, const:6.0ms,27.9ms, FILE",
			func(c *Config) *string { return &c.Latency }, nil),
		word("modulation", groupModels, "none", "Markov-modulated slow spells over the step times: none, jitter (assumed), cpu-demo (measured), FILE",
			func(c *Config) *string { return &c.Modulation }, nil),
		reals("host_ms", groupModels, "", "host overhead of a step by model, ms (unset: the latency's)", func(c *Config) *[]float64 { return &c.Host }),
		real("contention", groupModels, "auto", "kappa: how much slower steps run while both models are busy on shared GPUs; auto: .47 (fitted) on measured tables, else 0",
			-1, 100, func(c *Config) *float64 { return &c.Contention }),
		count("deployment.gpus", groupModels, "0", "GPUs; 0: as many as needed", 0, 4096, func(c *Config) *int { return &c.GPUs }),
		count("deployment.small_tp", groupModels, "0", "tensor parallelism of the small model; 0: the smallest tabled one", 0, 64, func(c *Config) *int { return &c.SmallTP }),
		count("deployment.large_tp", groupModels, "0", "tensor parallelism of the large model; 0: the smallest tabled one at which all fits", 0, 64,
			func(c *Config) *int { return &c.LargeTP }),
		flag("deployment.shared", groupModels, "true", "models share GPUs", func(c *Config) *bool { return &c.Shared }),
		real("deployment.memory_share", groupModels, "0.9", "share of the GPU's memory, or with --engine cpu of what the machine has available, for weights and KV", 0.01, 1,
			func(c *Config) *float64 { return &c.MemoryShare }),
		count("deployment.memory_bytes", groupModels, "0", "with --engine cpu, memory for weights and KV; 0: memory_share of what is available", 0, 1<<50,
			func(c *Config) *int { return &c.MemoryBytes }),
		{Name: "price.gpu_hour_usd", Kind: "list", Group: groupModels,
			Help: "price of one GPU an hour, USD, for the cost of a million output tokens: one for all, one for the GPUs of each model, or auto: assumed by type (unset: no bill)",
			set: func(c *Config, s string) error {
				c.Price = Price{Auto: s == auto}
				if c.Price.Auto {
					return nil
				}
				parts, err := split(s)
				if err != nil {
					return err
				}
				for _, part := range parts {
					x, err := strconv.ParseFloat(part, 64)
					if err != nil || !(x > 0 && x <= 1e6) {
						return fmt.Errorf("%q: want USD above 0 and at most 1e6, or auto", part)
					}
					c.Price.USD = append(c.Price.USD, x)
				}
				return nil
			},
			get: func(c *Config) string { return c.Price.String() }},
		count("kv_tokens", groupModels, "0", "KV pool of each model, tokens; 0: what the deployment leaves", 0, 1<<30, func(c *Config) *int { return &c.KVTokens }),

		list("algorithm", groupRouting, "r2r", "routing algorithms: see trbench programs", func(c *Config) *[]string { return &c.Algorithm }, algorithms),
		word("program", groupRouting, "", "routing program, a Starlark file, in the place of the algorithms (trbench program new NAME makes one)",
			func(c *Config) *string { return &c.Program }, nil),
		real("algorithm.threshold", groupRouting, "0", "of the algorithm's rule; 0: the published one", 0, 1e9, func(c *Config) *float64 { return &c.AlgThreshold }),
		reals("algorithm.weights", groupRouting, "", "of the models of me (unset: the published .5,.3,.2)", func(c *Config) *[]float64 { return &c.Weights }),
		real("switch_rate", groupRouting, "0.1", "probability that the algorithm's deciding rule fires for a token", 0, 1, func(c *Config) *float64 { return &c.SwitchRate }),
		real("return_rate", groupRouting, "auto", "probability that the large model returns after a token, where the algorithm lets it stay (auto: 1 - switch_rate)",
			-1, 1, func(c *Config) *float64 { return &c.ReturnRate }),
		count("algorithm.draft", groupRouting, "0", "tokens drafted before a verification, of specdec, spec-cascade and bild; 0: the published number", 0, route.MaxDraft,
			func(c *Config) *int { return &c.Draft }),
		flag("algorithm.adaptive", groupRouting, "false", "specdec changes the number of drafts after each verification", func(c *Config) *bool { return &c.Adaptive }),
		flag("algorithm.greedy", groupRouting, "false", "specdec keeps the drafts that are the large model's likeliest tokens", func(c *Config) *bool { return &c.Greedy }),
		word("algorithm.defer", groupRouting, "", "spec-cascade's rule: chow, diff, opt", func(c *Config) *string { return &c.Defer }, []string{"", "chow", "diff", "opt"}),
		count("algorithm.step", groupRouting, "0", "most tokens of a reasoning step, of specreason and glimprouter; 0: the default", 0, 1<<20, func(c *Config) *int { return &c.Step }),
		{Name: "signal", Flag: true, Kind: "word", Group: groupRouting, Default: "iid",
			Help: "what the router sees: iid, bursty, phased, replay:FILE (a recorded pair; switch_rate then sets the rule's threshold)",
			set: func(c *Config, s string) error {
				kind, file, _ := strings.Cut(s, ":")
				if kind == "replay" && file != "" {
					c.Signal = s
					return nil
				}
				known := []string{"iid", "bursty", "phased"}
				if !slices.Contains(known, s) {
					return unknownValue(s, append(known, "replay:FILE"))
				}
				c.Signal = s
				return nil
			},
			get: func(c *Config) string { return c.Signal }},
		acceptanceKey(),
		real("signal.correlation", groupRouting, "0.0848", "of a bursty signal: between one token's firing and the next one's (default: a recorded R2R trace's)",
			0, 0.999, func(c *Config) *float64 { return &c.Correlation }),

		list("system", groupSystem, "tokenrouter,rpc:vllm-apc,rpc:vllm-noapc,large-only",
			"systems: tokenrouter, rpc:vllm-apc, rpc:vllm-noapc, rpc:sglang-radix, step-sync, large-only, small-only", func(c *Config) *[]string { return &c.System }, systems),
		word("engine", groupSystem, "sim", "what runs the scheduler: sim (virtual clock), fake (wall clock, sleeps the latency), cpu (wall clock, real models)",
			func(c *Config) *string { return &c.Engine }, []string{"sim", "fake", "cpu"}),
		real("sampling.temperature", groupSystem, "0", "of real models; 0: greedy", 0, 100, func(c *Config) *float64 { return &c.Temperature }),
		real("sampling.top_p", groupSystem, "0", "share of probability that tokens are sampled from; 0: all", 0, 1, func(c *Config) *float64 { return &c.TopP }),
		count("sampling.top_k", groupSystem, "0", "likeliest tokens that are sampled from; 0: all", 0, 1<<30, func(c *Config) *int { return &c.TopK }),
		real("transport_us", groupSystem, "0", "one way, of a message between subservers; 0 in one process", 0, 1e9, func(c *Config) *float64 { return &c.TransportUS }),
		real("router_us", groupSystem, "0", "of the routing decision, added to each step that routes", 0, 1e9, func(c *Config) *float64 { return &c.RouterUS }),

		word("threshold", groupBatch, "eager", "fewest available requests that start a batch: eager, auto (computed), K for the large model, 1,3 by model, FILE",
			func(c *Config) *string { return &c.Threshold }, nil),
		flag("threshold.strict", groupBatch, "false", "keep the threshold when fewer requests are active than it needs", func(c *Config) *bool { return &c.Strict }),
		word("batching", groupBatch, "threshold", "delayed batching of the large model: threshold, gate:K (arrivals join a running batch K at a time), timer:5ms",
			func(c *Config) *string { return &c.Batching }, nil),
		count("max_batch", groupBatch, "256", "most requests in a batch", 1, 1<<20, func(c *Config) *int { return &c.MaxBatch }),
		count("token_budget", groupBatch, "8192", "most tokens fed by a batch: longer prefills run in chunks", 1, 1<<24, func(c *Config) *int { return &c.TokenBudget }),

		{Name: "rpc.calls", Kind: "word", Group: groupRPC, Default: "token", Help: "one call a token, or one for each run of tokens on a model: token, run",
			set: func(c *Config, s string) (err error) {
				c.RPC.Calls, err = dispatch.ParseCalls(s)
				return err
			},
			get: func(c *Config) string { return c.RPC.Calls.String() }},
		knob("rpc.rtt_us", "round trip of a call", func(c *Config) **float64 { return &c.RPC.RTTUS }),
		knob("rpc.dispatch_us", "orchestrator's CPU time a call, one call at a time", func(c *Config) **float64 { return &c.RPC.DispatchUS }),
		knob("rpc.dispatch_us_per_token", "and for each token sent", func(c *Config) **float64 { return &c.RPC.DispatchUSPerToken }),
		knob("rpc.server_us", "a server's CPU time a call, one call at a time", func(c *Config) **float64 { return &c.RPC.ServerUS }),
		knob("rpc.server_us_per_generated", "and for each token generated so far", func(c *Config) **float64 { return &c.RPC.ServerUSPerGen }),
		knob("rpc.server_us_per_token", "and for each token of the prompt", func(c *Config) **float64 { return &c.RPC.ServerUSPerToken }),
		knobIn("ns", "rpc.server_ns_per_generated_squared", "and for the square of the tokens generated so far", func(c *Config) **float64 { return &c.RPC.ServerNSPerGen2 }),
		knobIn("ns", "rpc.server_ns_per_token_squared", "and for the square of the tokens of the prompt", func(c *Config) **float64 { return &c.RPC.ServerNSPerToken2 }),
		reals("rpc.extend_us", groupRPC, "", "added to a step that feeds more than one token of a request, by model: no CUDA graph", func(c *Config) *[]float64 { return &c.RPC.ExtendUS }),

		{Name: "slo", Flag: true, Kind: "list", Group: groupOutput, Help: "for goodput: ttft=500ms,tpot=30ms,e2e=10s,itl=200ms; a request must meet all",
			set: func(c *Config, s string) error {
				_, err := metrics.ParseSLO(s)
				c.SLO = s
				return err
			},
			get: func(c *Config) string { return c.SLO }},
		{Name: "percentiles", Flag: true, Kind: "list", Group: groupOutput, Default: "50,90,99", Help: "of every latency, beside 50, 90 and 99",
			set: func(c *Config, s string) (err error) {
				c.Percentiles, err = metrics.ParsePercentiles(s)
				return err
			},
			get: func(c *Config) string { return joinFloats(c.Percentiles) }},
		free(word("out", groupOutput, "", "folder of the results (default: runs/NAME-HASH)", func(c *Config) *string { return &c.Out }, nil)),
		free(word("output", groupOutput, "table", "on stdout: table, json (summary.json), csv, md", func(c *Config) *string { return &c.Output },
			[]string{"table", "json", "csv", "md"})),
		free(list("plot", groupOutput, "svg,png", "plots: svg, png, term, none", func(c *Config) *[]string { return &c.Plot }, plots)),
		free(flag("trace", groupOutput, "false", "write trace.json, a timeline of every step for Perfetto or chrome://tracing", func(c *Config) *bool { return &c.Trace })),
		free(flag("step_log", groupOutput, "false", "write steps.NNN.csv, every step of each point, as trbench calibrate reads it", func(c *Config) *bool { return &c.Steps })),
		free(count("workers", groupOutput, "0", "points run at once; 0: one a core", 0, 1024, func(c *Config) *int { return &c.Workers })),
		free(count("max_failed", groupOutput, "0", "requests that may fail before the run exits with 5", 0, workloads.MaxRequests, func(c *Config) *int { return &c.MaxFail })),
	}
}

// FindKey returns the named key. The error of an unknown name gives the nearest known one.
func FindKey(name string) (Key, error) {
	var names []string
	plain := strings.ReplaceAll(strings.ToLower(name), "-", "_")
	for _, k := range Keys() {
		if k.Name == plain {
			return k, nil
		}
		names = append(names, k.Name)
	}
	if near, ok := suggest.Nearest(plain, names); ok {
		return Key{}, fmt.Errorf("unknown key %q: did you mean %s?", name, near)
	}
	return Key{}, fmt.Errorf("unknown key %q (trbench run --dry-run lists them)", name)
}

// Set gives the named key a value, as text.
func (c *Config) Set(name, value string) error {
	k, err := FindKey(name)
	if err != nil {
		return err
	}
	if err := k.set(c, value); err != nil {
		return fmt.Errorf("%s: %w", k.Name, err)
	}
	return nil
}

// Get returns a key's value as text, the form that Set takes.
func (k Key) Get(c *Config) string { return k.get(c) }

func free(k Key) Key {
	k.Free = true
	return k
}

func split(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	parts := strings.Split(s, ",")
	for i := range parts {
		if parts[i] = strings.TrimSpace(parts[i]); parts[i] == "" {
			return nil, fmt.Errorf("%q: an entry is empty", s)
		}
	}
	return parts, nil
}

func list(name, group, def, help string, at func(*Config) *[]string, parse func(string) ([]string, error)) Key {
	return Key{Name: name, Flag: !strings.Contains(name, "."), Kind: "list", Group: group, Default: def, Help: help,
		set: func(c *Config, s string) error {
			v, err := parse(s)
			if err != nil {
				return err
			}
			*at(c) = v
			return nil
		},
		get: func(c *Config) string { return strings.Join(*at(c), ",") }}
}

func word(name, group, def, help string, at func(*Config) *string, known []string) Key {
	return Key{Name: name, Flag: !strings.Contains(name, "."), Kind: "word", Group: group, Default: def, Help: help,
		set: func(c *Config, s string) error {
			if known != nil && !slices.Contains(known, s) {
				return unknownValue(s, known)
			}
			*at(c) = s
			return nil
		},
		get: func(c *Config) string { return *at(c) }}
}

func unknownValue(s string, known []string) error {
	list := strings.Join(nonempty(known), ", ")
	if near, ok := suggest.Nearest(s, known); ok {
		return fmt.Errorf("unknown value %q: did you mean %s? (known: %s)", s, near, list)
	}
	return fmt.Errorf("unknown value %q (known: %s)", s, list)
}

func nonempty(s []string) []string {
	return slices.DeleteFunc(slices.Clone(s), func(x string) bool { return x == "" })
}

func count(name, group, def, help string, lo, hi int, at func(*Config) *int) Key {
	return Key{Name: name, Flag: !strings.Contains(name, "."), Kind: "number", Group: group, Default: def, Help: help,
		set: func(c *Config, s string) error {
			n, err := parseCount(s, lo, hi)
			if err != nil {
				return err
			}
			*at(c) = n
			return nil
		},
		get: func(c *Config) string { return strconv.Itoa(*at(c)) }}
}

func parseCount(s string, lo, hi int) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < lo || n > hi {
		return 0, fmt.Errorf("%q: want a whole number from %d to %d", s, lo, hi)
	}
	return n, nil
}

func counts(name, group, def, help string, at func(*Config) *[]int) Key {
	return Key{Name: name, Flag: true, Kind: "list", Group: group, Default: def, Help: help,
		set: func(c *Config, s string) error {
			parts, err := split(s)
			if err != nil {
				return err
			}
			var v []int
			for _, p := range parts {
				n, err := parseCount(p, 1, 1<<20)
				if err != nil {
					return err
				}
				if slices.Contains(v, n) {
					return fmt.Errorf("%q: %d stands there twice", s, n)
				}
				v = append(v, n)
			}
			if len(v) == 0 {
				return fmt.Errorf("want at least one number")
			}
			*at(c) = v
			return nil
		},
		get: func(c *Config) string {
			var parts []string
			for _, n := range *at(c) {
				parts = append(parts, strconv.Itoa(n))
			}
			return strings.Join(parts, ",")
		}}
}

// auto is the text of a number that follows from other keys; it is held as -1.
const auto = "auto"

func real(name, group, def, help string, lo, hi float64, at func(*Config) *float64) Key {
	return Key{Name: name, Flag: !strings.Contains(name, "."), Kind: "number", Group: group, Default: def, Help: help,
		set: func(c *Config, s string) error {
			if lo < 0 && s == auto {
				*at(c) = -1
				return nil
			}
			x, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
			if err != nil || !(x >= max(lo, 0) && x <= hi) {
				return fmt.Errorf("%q: want a number from %g to %g", s, max(lo, 0), hi)
			}
			*at(c) = x
			return nil
		},
		get: func(c *Config) string {
			if *at(c) < 0 {
				return auto
			}
			return formatFloat(*at(c))
		}}
}

func reals(name, group, def, help string, at func(*Config) *[]float64) Key {
	return Key{Name: name, Flag: false, Kind: "list", Group: group, Default: def, Help: help,
		set: func(c *Config, s string) error {
			parts, err := split(s)
			if err != nil {
				return err
			}
			var v []float64
			for _, p := range parts {
				x, err := strconv.ParseFloat(p, 64)
				if err != nil || !(x >= 0) || math.IsInf(x, 0) {
					return fmt.Errorf("%q: want numbers >= 0", p)
				}
				v = append(v, x)
			}
			*at(c) = v
			return nil
		},
		get: func(c *Config) string { return joinFloats(*at(c)) }}
}

// acceptanceKey is the fate of drafts, where it is drawn.
func acceptanceKey() Key {
	k := reals("signal.acceptance", groupRouting, "0.732", "probability that a drafted token is kept, of one that stands first, second, ... "+
		"in its pass; the last number holds beyond (default: a recorded pair's mean)", func(c *Config) *[]float64 { return &c.Acceptance })
	set := k.set
	k.set = func(c *Config, s string) error {
		if err := set(c, s); err != nil {
			return err
		}
		for _, x := range c.Acceptance {
			if x > 1 {
				return fmt.Errorf("%g: want probabilities from 0 to 1", x)
			}
		}
		return nil
	}
	return k
}

// knob is a cost that may be left to a preset.
func knob(name, help string, at func(*Config) **float64) Key { return knobIn("us", name, help, at) }

func knobIn(unit, name, help string, at func(*Config) **float64) Key {
	return Key{Name: name, Kind: "number", Group: groupRPC, Help: help + ", " + unit,
		set: func(c *Config, s string) error {
			if s == "" {
				*at(c) = nil
				return nil
			}
			x, err := strconv.ParseFloat(s, 64)
			if err != nil || !(x >= 0 && x <= 1e9) {
				return fmt.Errorf("%q: want %s from 0 to 1e9", s, map[string]string{"us": "microseconds", "ns": "nanoseconds"}[unit])
			}
			*at(c) = &x
			return nil
		},
		get: func(c *Config) string {
			if *at(c) == nil {
				return ""
			}
			return formatFloat(**at(c))
		}}
}

func flag(name, group, def, help string, at func(*Config) *bool) Key {
	return Key{Name: name, Flag: !strings.Contains(name, "."), Kind: "bool", Group: group, Default: def, Help: help,
		set: func(c *Config, s string) error {
			b, err := strconv.ParseBool(s)
			if err != nil {
				return fmt.Errorf("%q: want true or false", s)
			}
			*at(c) = b
			return nil
		},
		get: func(c *Config) string { return strconv.FormatBool(*at(c)) }}
}

func formatFloat(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

func joinFloats(v []float64) string {
	var parts []string
	for _, x := range v {
		parts = append(parts, formatFloat(x))
	}
	return strings.Join(parts, ",")
}

func plots(s string) ([]string, error) {
	known := []string{"svg", "png", "term", "none"}
	v, err := split(s)
	if err != nil {
		return nil, err
	}
	for _, p := range v {
		if !slices.Contains(known, p) {
			return nil, fmt.Errorf("unknown plot %q (known: %s)", p, strings.Join(known, ", "))
		}
	}
	return v, nil
}
