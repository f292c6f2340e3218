package paper

import (
	"fmt"
	"math"
	"strings"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/engine/rpc/byhand/lines"
	"github.com/trbench/trbench/models"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/sim"
)

// articleGPUs are those that hold the article's pair, A100-80G: the large model on all of them, the small one on one.
const articleGPUs = 4

// article is a claim of the article at the cell's set-up: apc (throughput over rpc:vllm-apc), tpot/SYSTEM (change of the
// P99 TPOT, %), bill/SYSTEM (what is saved of the price of a token, %), lines/COUNT (of routing code, saved, %), or a
// part of a switch (mean, us).
func (b *bench) article(c *Cell, what string) (figure, error) {
	what, system, _ := strings.Cut(what, "/")
	switch what {
	case "bill":
		return b.bill(&c.Setup, system)
	case "tpot":
		ours, theirs, err := b.both(&c.Setup, system)
		if err != nil {
			return figure{}, err
		}
		x := results.Change(ours.TPOT.Percentile(99), theirs.TPOT.Percentile(99))
		return figure{value: results.F(100 * x.Or(math.NaN())), note: fmt.Sprintf("against %s: %.1f and %.1f ms",
			system, ours.TPOT.Percentile(99).Or(0), theirs.TPOT.Percentile(99).Or(0))}, nil
	case "lines":
		return routingLines(system)
	case "apc":
		ours, theirs, err := b.both(&c.Setup, "rpc:vllm-apc")
		if err != nil {
			return figure{}, err
		}
		return figure{value: results.Ratio(ours.SteadyTokS, theirs.SteadyTokS)}, nil
	}
	ours, err := b.eager(&c.Setup)
	if err != nil {
		return figure{}, err
	}
	mean := func(parts ...*results.Dist) (figure, error) {
		us := 0.
		for _, d := range parts {
			us += d.MeanValue().Or(0)
		}
		return figure{value: results.F(us)}, nil
	}
	if sw := ours.Switch; sw != nil {
		switch what {
		case "transport":
			return mean(sw.Transport)
		case "wait":
			return mean(sw.Wait)
		case "extend":
			return mean(sw.Extend)
		case "whole":
			return mean(sw.Transport, sw.Wait, sw.Extend)
		}
	}
	return figure{}, fmt.Errorf("measure article/%s: unknown", what)
}

// eager runs a set-up without delayed batching.
func (b *bench) eager(s *Setup) (*results.Point, error) {
	c, err := b.config(s, 1)
	if err != nil {
		return nil, err
	}
	return b.simulate(c)
}

// both runs a set-up as TokenRouter without delayed batching, and as a baseline of trbench run.
func (b *bench) both(s *Setup, system string) (ours, theirs *results.Point, err error) {
	if ours, err = b.eager(s); err != nil {
		return nil, nil, err
	}
	preset, err := experiment.FindSystem(system)
	if err != nil {
		return nil, nil, err
	}
	c, err := b.config(s, 1)
	if err != nil {
		return nil, nil, err
	}
	c.Topology, c.RPC = sim.RPC, preset.Costs
	theirs, err = b.simulate(c)
	return ours, theirs, err
}

// bill is how much less a token costs than where a system writes it on the same GPUs, %. The share depends on no price.
func (b *bench) bill(s *Setup, system string) (figure, error) {
	best, err := b.run(s)
	if err != nil {
		return figure{}, err
	}
	var other outcome
	if system == "large-only" {
		alone := *s
		alone.System = system
		other, err = b.run(&alone)
	} else {
		var theirs *results.Point
		if _, theirs, err = b.both(s, system); err == nil {
			other = outcomeOf(theirs, 1)
		}
	}
	if err != nil {
		return figure{}, err
	}
	usd, _ := models.AssumedGPUHourUSD("a100")
	price := func(tokS float64) float64 { return models.USDPerMTok(articleGPUs*usd, tokS) }
	return figure{value: results.F(100 * (1 - other.tokS/best.tokS)), note: fmt.Sprintf(
		"against %s: $%.2f instead of $%.2f a million tokens on %d A100 at $%.2f an hour (assumed), threshold %d",
		system, price(best.tokS), price(other.tokS), articleGPUs, usd, best.threshold)}, nil
}

// routingLines is the median saving of lines over all algorithms, in whole percent, against the same rule by hand over
// HTTP: of its own code, with its share of the plumbing, or with all of it.
func routingLines(count string) (figure, error) {
	of := map[string]func(lines.Count) float64{"own": lines.Count.Own, "shared": lines.Count.Shared, "alone": lines.Count.Alone}[count]
	if of == nil {
		return figure{}, fmt.Errorf("measure article/lines/%s: unknown", count)
	}
	r, err := lines.New()
	if err != nil {
		return figure{}, err
	}
	s := r.Spread(of)
	return figure{value: results.F(math.Round(100 * s.Median)), note: fmt.Sprintf("median of %d algorithms, of %.0f to %.0f %%",
		len(r.Counts), 100*s.Least, 100*s.Most)}, nil
}
