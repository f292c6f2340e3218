//go:build unix

package sim

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/route/starlark"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/signal"
)

// cpuSeconds is the CPU time that the process has used: what other processes on the machine don't change.
func cpuSeconds(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

// One model, 512 tokens in and out, Poisson 8/s, Llama-3-8B on an H100: what a single-model simulator is asked.
// The metric requests/CPU-s is comparable between simulators; 10,000 requests in 0.22 CPU-s are 45,000 a second.
func BenchmarkSingle(b *testing.B) {
	for _, n := range []int{1000, 10000, 100000} {
		b.Run(fmt.Sprintf("requests=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			from := cpuSeconds(b)
			for b.Loop() {
				c := &Config{
					Topology: Single, Requests: equal(n, 512, 512), Arrivals: poisson(n, 8, 1),
					Models: []Model{{Name: "llama3-8b", Latency: profile(b, "h100", "llama3-8b", 1), KVTokens: 427000}},
				}
				mustRun(b, c)
			}
			b.ReportMetric(float64(b.N*n)/(cpuSeconds(b)-from), "requests/CPU-s")
		})
	}
}

// Two models, R2R at p = .1: what the simulator is built for.
func BenchmarkRouted(b *testing.B) {
	for _, n := range []int{4, 64} {
		b.Run(fmt.Sprintf("clients=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var tokens int64
			from := cpuSeconds(b)
			for b.Loop() {
				c := &Config{Models: []Model{
					{Name: "qwen3-0.6b", Latency: profile(b, "h100", "qwen3-0.6b", 1)},
					{Name: "qwen3-32b", Latency: profile(b, "h100", "qwen3-32b", 1)},
				}, Requests: equal(1024, 100, 2048), Clients: n}
				routed(b, c, "r2r", 1, 0, .1)
				threshold(c, 1, min(n, 5))
				tokens += mustRun(b, c).Tokens
			}
			b.ReportMetric(float64(tokens)/(cpuSeconds(b)-from)/1e6, "Mtok/CPU-s")
		})
	}
}

// The same as a program: a coroutine a request, woken for each token, or only where it leaves the small model; and as
// a file, lowered to a table, or as a coroutine.
func BenchmarkProgram(b *testing.B) {
	const n = 64
	plain := func(r *route.Request) error {
		for !r.Done() {
			t, err := r.Decode(r.Small())
			if err != nil {
				return err
			}
			if t.Score > .5 {
				r.Drop(1)
				if _, err := r.Decode(r.Large()); err != nil {
					return err
				}
			}
		}
		return nil
	}
	src, _ := starlark.Example("r2r")
	file, err := starlark.Parse("r2r.star", src, starlark.Options{Models: 2})
	if err != nil {
		b.Fatal(err)
	}
	for _, form := range []string{"Decode", "DecodeWhile", "file/table", "file/coroutine"} {
		b.Run(form, func(b *testing.B) {
			b.ReportAllocs()
			var tokens int64
			from := cpuSeconds(b)
			for b.Loop() {
				c := &Config{Models: []Model{
					{Name: "qwen3-0.6b", Latency: profile(b, "h100", "qwen3-0.6b", 1)},
					{Name: "qwen3-32b", Latency: profile(b, "h100", "qwen3-32b", 1)},
				}, Requests: equal(1024, 100, 2048), Clients: n}
				routed(b, c, "r2r", 1, 0, .1)
				threshold(c, 1, 5)
				rule := c.Router.(route.Ruled).Rule(0)
				switch form {
				case "DecodeWhile":
					c.Router, _ = route.New("r2r", route.Options{Models: 2, Program: true})
				case "file/table":
					c.Router = file.Router()
				case "file/coroutine":
					c.Router = route.NewRunner(file.Spec())
				default:
					c.Router = route.NewRunner(route.Spec{Name: "r2r", Program: plain, Models: 2, Rules: []signal.Rule{rule}})
				}
				tokens += mustRun(b, c).Tokens
			}
			b.ReportMetric(float64(tokens)/(cpuSeconds(b)-from)/1e6, "Mtok/CPU-s")
		})
	}
}

// The RPC baseline of the same work.
func BenchmarkRPC(b *testing.B) {
	const n = 16
	var tokens int64
	from := cpuSeconds(b)
	for b.Loop() {
		c := &Config{Topology: RPC, Models: []Model{
			{Name: "qwen3-0.6b", Latency: profile(b, "h100", "qwen3-0.6b", 1)},
			{Name: "qwen3-32b", Latency: profile(b, "h100", "qwen3-32b", 1)},
		}, Requests: equal(4*n, 100, 1024), Clients: n, RPC: RPCCosts{RTT: time.Millisecond, Server: 100 * time.Microsecond}}
		routed(b, c, "r2r", 1, 0, .1)
		tokens += mustRun(b, c).Tokens
	}
	b.ReportMetric(float64(tokens)/(cpuSeconds(b)-from)/1e6, "Mtok/CPU-s")
}

// Cost grows with the tokens, not with the models: an ensemble of M models that share the work.
func BenchmarkModels(b *testing.B) {
	for _, m := range []int{2, 4, 8} {
		b.Run(fmt.Sprintf("models=%d", m), func(b *testing.B) {
			var tokens int64
			from := cpuSeconds(b)
			for b.Loop() {
				c := &Config{Requests: equal(64, 100, 1024), Clients: 32}
				weights := make([]float64, m)
				for i := range m {
					c.Models = append(c.Models, Model{Latency: latency.Affine{C0: 5 + float64(i), C1: .01, C2: 1e-5, P0: 5, P1: .01, P2: 1e-6}})
					weights[i] = 1
				}
				r, err := route.New("me", route.Options{Models: m, Weights: weights})
				if err != nil {
					b.Fatal(err)
				}
				var rules []signal.Rule
				for i := range m {
					rules = append(rules, r.(route.Ruled).Rule(step.ModelID(i)))
				}
				c.Router = r
				if c.Signal, err = signal.New(signal.Config{Seed: 1, Rules: rules, Rates: make([]float64, m)}); err != nil {
					b.Fatal(err)
				}
				tokens += mustRun(b, c).Tokens
			}
			b.ReportMetric(float64(tokens)/(cpuSeconds(b)-from)/1e6, "Mtok/CPU-s")
		})
	}
}
