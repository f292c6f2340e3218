package paper

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/sim"
)

// figure is ours of a cell: a number, or none, and what to say beside it.
type figure struct {
	value results.Float
	note  string
}

// measure computes a cell that takes more than one run.
func (b *bench) measure(c *Cell) (figure, error) {
	head, rest, _ := strings.Cut(c.Measure, "/")
	if head == "article" {
		return b.article(c, rest)
	}
	if c.Measure == "tokenrouter/loss" {
		return b.steadiness()
	}
	for _, l := range laws() {
		if l.name == head {
			return b.orchestrated(l, rest)
		}
	}
	return figure{}, fmt.Errorf("measure %q: unknown", c.Measure)
}

// law is what a call costs a server of the baseline beside its step.
type law struct {
	name  string
	costs sim.RPCCosts
}

// laws are the readings of the paper's breakdown of one call: about 4 ms, which the host overhead of a step stands for,
// and 31.5 ms more at 2,000 tokens, 16 us each, of which it doesn't say what they grow with. The round trip is assumed.
func laws() []law {
	flat := sim.RPCCosts{RTT: time.Millisecond, Cache: core.RetainAll}
	generated, context, prefill := flat, flat, flat
	generated.ServerPerGenerated = 16 * time.Microsecond
	context.ServerPerToken = 16 * time.Microsecond
	prefill.Cache = core.RetainNone
	return []law{{"flat", flat}, {"generated", generated}, {"context", context}, {"prefill", prefill}}
}

// job is an algorithm on a workload.
type job struct {
	algorithm, workload string
	setup               Setup
}

// jobs are the algorithms and workloads over which the paper gives its ranges. ME has three models, and is left out.
func jobs() []job {
	var js []job
	for _, a := range []struct {
		name string
		q    float64
	}{{"r2r", 0}, {"citer", 0}, {"co-llm", 0}, {"r-stitch", .5}} {
		for _, w := range []struct {
			name           string
			prompt, output int
		}{{"low", 100, 2048}, {"high", 100, 8192}, {"agentic", 8192, 1024}} {
			s := Setup{Algorithm: a.name, Q: a.q, RateOf: "gpus/" + a.name + "/n1-shared", Prompt: w.prompt, Output: w.output}
			js = append(js, job{a.name, w.name, s.over(defaults)})
		}
	}
	return js
}

// memo holds throughputs that several cells need, each computed once.
type memo struct {
	mu   sync.Mutex
	done map[memoKey]*memoEntry
}

type memoKey struct {
	law string
	s   Setup
}

type memoEntry struct {
	once sync.Once
	tokS float64
	err  error
}

func (m *memo) get(k memoKey, compute func() (float64, error)) (float64, error) {
	m.mu.Lock()
	if m.done == nil {
		m.done = map[memoKey]*memoEntry{}
	}
	e := m.done[k]
	if e == nil {
		e = &memoEntry{}
		m.done[k] = e
	}
	m.mu.Unlock()
	e.once.Do(func() { e.tokS, e.err = compute() })
	return e.tokS, e.err
}

// ours is TokenRouter's throughput on a job.
func (b *bench) ours(s Setup) (float64, error) {
	return b.memo.get(memoKey{"tokenrouter", s}, func() (float64, error) {
		best := 0.
		for k := 1; k <= s.N; k++ {
			c, err := b.config(&s, k)
			if err != nil {
				return 0, err
			}
			c.Requests = c.Requests[:2*s.N]
			p, err := b.simulate(c)
			if err != nil {
				return 0, err
			}
			best = max(best, p.SteadyTokS.Or(0))
		}
		return best, nil
	})
}

// theirs is the baseline's: servers on GPUs of their own, with the law's costs.
func (b *bench) theirs(l law, s Setup) (float64, error) {
	return b.memo.get(memoKey{l.name, s}, func() (float64, error) {
		s.GPUs = "separate"
		c, err := b.config(&s, 1)
		if err != nil {
			return 0, err
		}
		c.Requests = c.Requests[:2*s.N]
		c.Topology, c.RPC = sim.RPC, l.costs
		p, err := b.simulate(c)
		if err != nil {
			return 0, err
		}
		return p.SteadyTokS.Or(0), nil
	})
}

// orchestrated is, under a law, an end of the range of ratios (N/least, N/most), an end of the share of throughput lost
// to longer outputs in percent (N/loss-least, N/loss-most), or the ratio of one job at N = 4 (ALGORITHM/WORKLOAD).
func (b *bench) orchestrated(l law, what string) (figure, error) {
	first, second, _ := strings.Cut(what, "/")
	n, one := 4, true
	if _, err := fmt.Sscan(first, &n); err == nil {
		one = false
	}
	least, most := math.Inf(1), math.Inf(-1)
	var atLeast, atMost string
	low := 0.
	for _, j := range jobs() {
		j.setup.N = n
		if one && (j.algorithm != first || j.workload != second) {
			continue
		}
		theirs, err := b.theirs(l, j.setup)
		if err != nil {
			return figure{}, err
		}
		var x float64
		switch {
		case strings.HasPrefix(second, "loss-") && j.workload == "low":
			low = theirs
			continue
		case strings.HasPrefix(second, "loss-") && j.workload != "high":
			continue
		case strings.HasPrefix(second, "loss-"):
			x = 100 * (1 - theirs/low)
		default:
			ours, err := b.ours(j.setup)
			if err != nil {
				return figure{}, err
			}
			x = ours / theirs
		}
		if x < least {
			least, atLeast = x, j.algorithm+" "+j.workload
		}
		if x > most {
			most, atMost = x, j.algorithm+" "+j.workload
		}
	}
	switch {
	case one:
		return figure{value: results.F(most)}, nil
	case strings.HasSuffix(second, "least"):
		return figure{results.F(least), "at " + atLeast}, nil
	case strings.HasSuffix(second, "most"):
		return figure{results.F(most), "at " + atMost}, nil
	}
	return figure{}, fmt.Errorf("measure %s/%s: unknown", l.name, what)
}

// steadiness is the most that TokenRouter loses from 2,048 to 8,192 tokens out, %.
func (b *bench) steadiness() (figure, error) {
	most, low := math.Inf(-1), 0.
	at := ""
	for _, j := range jobs() {
		j.setup.N = 4
		if j.workload == "agentic" {
			continue
		}
		t, err := b.ours(j.setup)
		if err != nil {
			return figure{}, err
		}
		if j.workload == "low" {
			low = t
		} else if x := 100 * (1 - t/low); x > most {
			most, at = x, j.algorithm
		}
	}
	return figure{results.F(most), "at " + at}, nil
}

// Prices of the bill. Both are assumed; the share that is saved depends on neither, since both systems run on the same
// GPUs.
const (
	billGPUs       = 4   // A100-80G, which hold the article's pair
	usdPerGPUHour  = 2.0 // on demand
	secondsPerHour = 3600
)

// usdPerMTok is what a million output tokens cost at a throughput.
func usdPerMTok(tokS float64) float64 { return billGPUs * usdPerGPUHour / secondsPerHour / tokS * 1e6 }

// article is a claim of the article at the cell's set-up.
func (b *bench) article(c *Cell, what string) (figure, error) {
	s := c.Setup
	k, share := 1, 0.
	if what == "bill" {
		best, at, err := b.throughput(&s)
		if err != nil {
			return figure{}, err
		}
		s.System = "large-only"
		large, _, err := b.throughput(&s)
		if err != nil {
			return figure{}, err
		}
		share = 100 * (1 - large/best)
		return figure{results.F(share), fmt.Sprintf(
			"$%.2f instead of $%.2f a million tokens on %d GPUs at $%.2f an hour (assumed), threshold %d",
			usdPerMTok(best), usdPerMTok(large), billGPUs, usdPerGPUHour, at)}, nil
	}
	cfg, err := b.config(&s, k)
	if err != nil {
		return figure{}, err
	}
	ours, err := b.simulate(cfg)
	if err != nil {
		return figure{}, err
	}
	us := func(d *results.Dist) (figure, error) { return figure{value: d.MeanValue()}, nil }
	if sw := ours.Switch; sw != nil {
		switch what {
		case "transport":
			return us(sw.Transport)
		case "wait":
			return us(sw.Wait)
		case "extend":
			return us(sw.Extend)
		case "whole":
			whole := 0.
			for _, part := range []*results.Dist{sw.Transport, sw.Wait, sw.Extend} {
				whole += part.MeanValue().Or(0)
			}
			return figure{value: results.F(whole)}, nil
		}
	}
	system, err := experiment.FindSystem("rpc:vllm-apc")
	if err != nil {
		return figure{}, err
	}
	if cfg, err = b.config(&s, k); err != nil {
		return figure{}, err
	}
	cfg.Topology, cfg.RPC = sim.RPC, system.Costs
	theirs, err := b.simulate(cfg)
	if err != nil {
		return figure{}, err
	}
	switch what {
	case "apc":
		return figure{value: results.Ratio(ours.SteadyTokS, theirs.SteadyTokS)}, nil
	case "tpot":
		x := results.Change(ours.TPOT.Percentile(99), theirs.TPOT.Percentile(99))
		return figure{results.F(100 * x.Or(math.NaN())), fmt.Sprintf("%.1f against %.1f ms",
			ours.TPOT.Percentile(99).Or(0), theirs.TPOT.Percentile(99).Or(0))}, nil
	}
	return figure{}, fmt.Errorf("measure article/%s: unknown", what)
}
