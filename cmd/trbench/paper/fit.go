package paper

import (
	"fmt"
	"math"
	"time"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/sim/markov"
)

// The cells that numbers are fitted to.
const (
	ablationRate   = "ablation/n1/tokenrouter"
	contentionCell = "ablation/n4/eager"
	routerCell     = "ablation/n1/router-graph"
	llmCell        = "ablation/n1/llm-graph"
	slmCell        = "ablation/n1/slm-graph"
	oneNodeCell    = "gpus/r2r/n1-separate"
	twoNodesCell   = "nodes/r2r/n1"
)

// overheads is what a step costs more without CUDA graphs.
type overheads struct{ router, llm, slm time.Duration }

// of is the overhead of a step of model i where graphs are off from there on: the ablation takes them away one by one,
// the router's (which runs in a step of the small model) first.
func (o overheads) of(graphs string, i int) time.Duration {
	switch {
	case graphs == "router" && i == 0, graphs == "llm" && i == 0:
		return o.router
	case graphs == "slm" && i == 0:
		return o.router + o.slm
	case (graphs == "llm" || graphs == "slm") && i == 1:
		return o.llm
	}
	return 0
}

// from are the cells whose numbers set the parameters of a set-up.
func (s *Setup) from() []string {
	var cells []string
	if s.P == 0 && s.Middle == "" && s.System != "large-only" {
		cells = append(cells, s.RateOf)
	}
	if s.contends() {
		cells = append(cells, contentionCell)
	}
	if s.Graphs != "" { // each overhead is a difference of two cells
		cells = append(cells, ablationRate, routerCell)
	}
	if s.Graphs == "llm" || s.Graphs == "slm" {
		cells = append(cells, llmCell)
	}
	if s.Graphs == "slm" {
		cells = append(cells, slmCell)
	}
	if s.Nodes == 2 {
		cells = append(cells, oneNodeCell, twoNodesCell)
	}
	return cells
}

// fit solves what the cells at one request say: the switch rate of each set-up, and the overheads.
func (b *bench) fit(sections []Section) error {
	b.kappa = latency.FittedContention
	b.rates = map[string]float64{}
	for _, s := range sections {
		for _, c := range s.Cells {
			id := c.Setup.RateOf
			if _, ok := b.rates[id]; ok {
				continue
			}
			p, err := b.solveRate(b.cells[id])
			if err != nil {
				return err
			}
			b.rates[id] = p
		}
	}
	// One request takes L_0 + p L_1 a token (paper, appendix D, N = 1): what it loses from one row to the next is the
	// overhead of a step, times the steps a token.
	perToken := func(id string) float64 { return 1 / *b.cells[id].Published }
	p := b.rates[ablationRate]
	b.graph.router = seconds(perToken(routerCell) - perToken(ablationRate))
	b.graph.llm = seconds((perToken(llmCell) - perToken(routerCell)) / p)
	b.graph.slm = seconds(perToken(slmCell) - perToken(llmCell))
	b.hop = seconds((perToken(twoNodesCell) - perToken(oneNodeCell)) / b.rates[oneNodeCell] / 2) // there and back
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(math.Round(s * 1e9)) }

// rate is a set-up's switch rate.
func (b *bench) rate(s *Setup) (float64, error) {
	if s.P > 0 {
		return s.P, nil
	}
	p, ok := b.rates[s.RateOf]
	if !ok {
		return 0, fmt.Errorf("no switch rate has been solved from %s", s.RateOf)
	}
	return p, nil
}

// solveRate is the switch rate at which one request alone gives what c publishes (paper, appendix D, N = 1), with the
// step times in the middle of a request. Throughput falls with the rate: bisection.
func (b *bench) solveRate(c *Cell) (float64, error) {
	if c.Setup.N != 1 || c.Published == nil {
		return 0, fmt.Errorf("%s: a switch rate is solved from a published throughput at N = 1", c.ID)
	}
	r, err := route.New(c.Setup.Algorithm, route.Options{Models: 2})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.ID, err)
	}
	lo, hi := 1e-6, 1-1e-6
	for range 50 {
		p := (lo + hi) / 2
		m, err := b.chained(&c.Setup, r, rates(p, c.Setup.Q))
		if err != nil {
			return 0, fmt.Errorf("%s: %w", c.ID, err)
		}
		t, err := markov.SingleRequest(m)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", c.ID, err)
		}
		if t > *c.Published {
			lo = p
		} else {
			hi = p
		}
	}
	return (lo + hi) / 2, nil
}
