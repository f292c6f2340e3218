package paper

import (
	"fmt"
	"math"
	"strings"

	"github.com/trbench/trbench/cmd/trbench/experiment"
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
	if head == "breakdown" {
		return b.breakdown(c, rest)
	}
	l, err := findLaw(head)
	if err != nil {
		return figure{}, fmt.Errorf("measure %q: %w", c.Measure, err)
	}
	return b.orchestrated(l, rest)
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
