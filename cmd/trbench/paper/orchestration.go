package paper

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/sim"
)

// law is what a call costs the baseline: a preset of trbench run, with the server's CPU time read in another way.
type law struct {
	name  string
	costs sim.RPCCosts
}

// laws are the presets, and readings of the paper's breakdown of one call: 31.5 ms of a server's CPU at the end of 100
// tokens in and 2,048 out, of which it doesn't say what they grow with.
//
//	radix    the preset: half with the generated tokens, half with their square
//	linear   with the generated tokens alone
//	context  half with the tokens of the context, half with their square
//	flat     nothing of it: a prefix cache that costs nothing
//	prefill  no prefix cache: the context is fed again each call
func laws() ([]law, error) {
	radix, err := experiment.FindSystem("rpc:sglang-radix")
	if err != nil {
		return nil, err
	}
	none, err := experiment.FindSystem("rpc:vllm-noapc")
	if err != nil {
		return nil, err
	}
	reading := func(generated, token time.Duration, squared float64) sim.RPCCosts {
		c := radix.Costs
		c.ServerPerGenerated, c.ServerPerToken, c.Squared = generated, token, sim.SquaredCosts{Token: squared}
		return c
	}
	return []law{
		{"radix", radix.Costs},
		{"linear", reading(15_890, 0, 0)},
		{"context", reading(0, 7_560, 3.63)},
		{"flat", reading(0, 0, 0)},
		{"prefill", none.Costs},
	}, nil
}

func findLaw(name string) (law, error) {
	all, err := laws()
	if err != nil {
		return law{}, err
	}
	for _, l := range all {
		if l.name == name {
			return l, nil
		}
	}
	return law{}, fmt.Errorf("law %q: unknown", name)
}

// job is one of the paper's 15: an algorithm on a workload.
type job struct {
	algorithm, workload string
	setup               Setup
}

// jobs are five algorithms on three workloads. Rates come from each algorithm's cell of shared GPUs at N = 1; ME draws by its
// published weights, over three models, of which the middle one is taken to be on one GPU.
func jobs() []job {
	var js []job
	for _, a := range []Setup{
		{Algorithm: "r2r", RateOf: "gpus/r2r/n1-shared"},
		{Algorithm: "citer", RateOf: "gpus/citer/n1-shared"},
		{Algorithm: "co-llm", RateOf: "gpus/co-llm/n1-shared"},
		{Algorithm: "r-stitch", Q: .5, RateOf: "gpus/r-stitch/n1-shared"},
		{Algorithm: "me", Middle: "qwen3-8b@1"},
	} {
		for _, w := range []struct {
			name           string
			prompt, output int
		}{{"low", 100, 2048}, {"high", 100, 8192}, {"agentic", 8192, 1024}} {
			s := a
			s.Prompt, s.Output = w.prompt, w.output
			js = append(js, job{a.Algorithm, w.name, s.over(defaults)})
		}
	}
	return js
}

// ours is TokenRouter on a job, with its best threshold.
func (b *bench) ours(s Setup) (outcome, error) {
	return b.memo.get(memoKey{"tokenrouter", s}, func() (outcome, error) { return b.best(&s, 1, s.N, 2*s.N) })
}

// theirs is the baseline, on the same GPUs.
func (b *bench) theirs(l law, s Setup) (outcome, error) {
	return b.memo.get(memoKey{l.name, s}, func() (outcome, error) {
		c, err := b.config(&s, 1)
		if err != nil {
			return outcome{}, err
		}
		c.Requests = c.Requests[:2*s.N]
		c.Topology, c.RPC = sim.RPC, l.costs
		p, err := b.simulate(c)
		if err != nil {
			return outcome{}, err
		}
		return outcomeOf(p, 1), nil
	})
}

// ratio is TokenRouter's throughput over the baseline's, and the baseline's latency over TokenRouter's.
func (b *bench) ratio(l law, j job, n int) (throughput, latency float64, err error) {
	j.setup.N = n
	theirs, err := b.theirs(l, j.setup)
	if err != nil {
		return 0, 0, err
	}
	ours, err := b.ours(j.setup)
	return ours.tokS / theirs.tokS, theirs.e2e / ours.e2e, err
}

// loss is the share of a system's throughput that 8,192 tokens of output lose against 2,048, in percent; low is the job of
// the shorter ones.
func loss(low, high job, n int, of func(Setup) (outcome, error)) (float64, error) {
	low.setup.N, high.setup.N = n, n
	short, err := of(low.setup)
	if err != nil {
		return 0, err
	}
	long, err := of(high.setup)
	return 100 * (1 - long.tokS/short.tokS), err
}

// orchestrated is, under a law, an end of the range of ratios over all jobs (N/least, N/most), an end of the loss to
// longer outputs (N/loss-least, N/loss-most) or of the ratio of latencies (N/latency-least, N/latency-most), or the ratio
// of one job (N/ALGORITHM/WORKLOAD).
func (b *bench) orchestrated(l law, what string) (figure, error) {
	first, second, _ := strings.Cut(what, "/")
	n, err := strconv.Atoi(first)
	if err != nil {
		return figure{}, fmt.Errorf("measure %s/%s: want a number of requests first", l.name, what)
	}
	if algorithm, workload, ok := strings.Cut(second, "/"); ok {
		return b.combination(l, n, algorithm, workload)
	}
	value := func(j job, low job) (float64, bool, error) {
		x, latency, err := b.ratio(l, j, n)
		if strings.HasPrefix(second, "latency-") {
			x = latency
		}
		return x, true, err
	}
	if strings.HasPrefix(second, "loss-") {
		value = func(j job, low job) (float64, bool, error) {
			if j.workload != "high" {
				return 0, false, nil
			}
			x, err := loss(low, j, n, func(s Setup) (outcome, error) { return b.theirs(l, s) })
			return x, true, err
		}
	}
	return extreme(strings.HasSuffix(second, "least"), value)
}

// steadiness is the most that TokenRouter loses from 2,048 to 8,192 tokens out, %.
func (b *bench) steadiness() (figure, error) {
	return extreme(false, func(j, low job) (float64, bool, error) {
		if j.workload != "high" {
			return 0, false, nil
		}
		x, err := loss(low, j, 4, b.ours)
		return x, true, err
	})
}

// extreme is the least or the most of a value over all jobs, and where it is. low is the algorithm's job of short outputs.
func extreme(least bool, value func(j, low job) (x float64, ok bool, err error)) (figure, error) {
	best, at := math.NaN(), ""
	var low job
	for _, j := range jobs() {
		if j.workload == "low" {
			low = j
		}
		x, ok, err := value(j, low)
		if err != nil {
			return figure{}, err
		}
		if ok && !(least && x >= best || !least && x <= best) {
			best, at = x, j.algorithm+" "+j.workload
		}
	}
	return figure{value: results.F(best), note: "at " + at}, nil
}

// combination is the ratio of one job, with what the other reading of the breakdown gives.
func (b *bench) combination(l law, n int, algorithm, workload string) (figure, error) {
	for _, j := range jobs() {
		if j.algorithm != algorithm || j.workload != workload {
			continue
		}
		x, _, err := b.ratio(l, j, n)
		if err != nil || l.name != "radix" {
			return figure{value: results.F(x)}, err
		}
		other, err := findLaw("context")
		if err != nil {
			return figure{}, err
		}
		var more [3]float64
		for i, of := range []struct {
			law law
			n   int
		}{{other, n}, {l, 1}, {other, 1}} {
			if more[i], _, err = b.ratio(of.law, j, of.n); err != nil {
				return figure{}, err
			}
		}
		return figure{value: results.F(x), note: fmt.Sprintf("in tokens of context %.2f x; at N = 1 %.2f and %.2f x", more[0], more[1], more[2]), other: more[0]}, nil
	}
	return figure{}, fmt.Errorf("there is no job %s/%s", algorithm, workload)
}

// breakdown is a part of a step of the small model as the preset has it, ms, in the middle of the published breakdown.
func (b *bench) breakdown(c *Cell, what string) (figure, error) {
	const prompt, generated = 100, 2048 - 128/2
	ms := func(d time.Duration) figure { return figure{value: results.F(results.Millis(d))} }
	s := c.Setup
	s.Steps = "kernels"
	kernels, err := b.stepTimes(&s, 0)
	if err != nil {
		return figure{}, err
	}
	radix, err := findLaw("radix")
	if err != nil {
		return figure{}, err
	}
	tree := radix.costs.ServerTime(prompt+generated, generated)
	inference := kernels.StepTime(step.Shape{Decodes: 1, DecodeContext: prompt + generated, Longest: prompt + generated})
	switch what {
	case "tree":
		return ms(tree), nil
	case "inference":
		return ms(inference), nil
	case "other":
		return ms(latency.DefaultHost(0)), nil
	case "rest":
		return ms(inference + latency.DefaultHost(0)), nil
	}
	return figure{}, fmt.Errorf("measure breakdown/%s: unknown", what)
}
