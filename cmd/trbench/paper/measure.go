package paper

import (
	"fmt"
	"strings"

	"github.com/trbench/trbench/results"
)

// figure is ours of a cell: a number, or none, and what to say beside it.
type figure struct {
	value results.Float
	note  string
	other float64 // of a combination: under the other reading of the baseline's cost
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
	if head == "tradeoff" {
		return b.tradeoff(c)
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

// tradeoff is the throughput of a set-up, and what one user gets of it.
func (b *bench) tradeoff(c *Cell) (figure, error) {
	o, err := b.run(&c.Setup)
	note := fmt.Sprintf("%.1f tok/s a user", o.tokS/float64(c.Setup.N))
	return figure{value: results.F(o.tokS), note: because(note, describe(&c.Setup, o.threshold))}, err
}
