package paper

import (
	"context"
	"fmt"
	"math"

	"golang.org/x/sync/errgroup"

	"github.com/trbench/trbench/results"
)

// Options are what a comparison needs beside the published numbers.
type Options struct {
	Seed     uint64
	Workers  int              // cells at once, >= 1; does not change a result
	Progress func(ended int)  // told how many cells have ended; calls may come from several goroutines; may be nil
	Source   string           // compute the numbers of paper or article alone; "" is both
	Only     func(*Cell) bool // the cells to compute; nil is all
}

// Has says that a cell is to be computed.
func (o *Options) Has(c *Cell) bool {
	return (o.Source == "" || c.Source == o.Source) && (o.Only == nil || o.Only(c))
}

// Report is every published number beside ours.
type Report struct {
	Seed       uint64
	Source     string  // whose numbers; "" is all
	SwitchRate float64 // of the ablation, fitted
	Contention float64 // fitted
	Router     float64 // ms a step of the small model without the router's CUDA graph, fitted
	LLM, SLM   float64 // ms a step without the model's, fitted
	Hop        float64 // ms one way between two nodes, fitted
	Sections   []Compared
	other      map[string]float64 // figure.other by cell
	Warnings   []string           // steps that lay beyond what was measured, sorted
}

// Compared is a section with its claims, in the order of its cells.
type Compared struct {
	Section
	Claims []results.Claim
}

// Run computes ours of every cell. The result depends on the seed alone.
func Run(ctx context.Context, o Options) (*Report, error) {
	sections, err := Load()
	if err != nil {
		return nil, err
	}
	b := &bench{seed: o.Seed, cells: map[string]*Cell{}}
	for _, s := range sections {
		for _, c := range s.Cells {
			b.cells[c.ID] = c
		}
	}
	if err := b.fit(sections); err != nil {
		return nil, err
	}
	r := &Report{
		Seed: o.Seed, Source: o.Source, SwitchRate: b.rates[ablationRate], Contention: b.kappa,
		Router: results.Millis(b.graph.router), LLM: results.Millis(b.graph.llm), SLM: results.Millis(b.graph.slm),
		Hop: results.Millis(b.hop), other: map[string]float64{},
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, o.Workers))
	b.ctx = gctx
	ours := map[string]*figure{}
	for _, s := range sections {
		for _, c := range s.Cells {
			if !o.Has(c) {
				continue
			}
			f := &figure{}
			ours[c.ID] = f
			g.Go(func() error {
				var err error
				if *f, err = b.compute(c); err != nil {
					return fmt.Errorf("%s: %w", c.ID, err)
				}
				if o.Progress != nil {
					o.Progress(1)
				}
				return nil
			})
		}
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, s := range sections {
		compared := Compared{Section: s}
		for _, c := range s.Cells {
			if f := ours[c.ID]; f != nil {
				compared.Claims = append(compared.Claims, judge(c, f, b.cells[c.Than], ours[c.Than]))
				if f.other != 0 {
					r.other[c.ID] = f.other
				}
			}
		}
		r.Sections = append(r.Sections, compared)
	}
	r.Warnings = b.doubts.list()
	return r, nil
}

// compute is ours of one cell.
func (b *bench) compute(c *Cell) (figure, error) {
	switch {
	case c.None:
		return figure{}, nil
	case c.Measure != "":
		return b.measure(c)
	}
	o, err := b.run(&c.Setup)
	if err != nil {
		return figure{}, err
	}
	f := figure{note: describe(&c.Setup, o.threshold)}
	t := o.tokS
	switch c.Metric {
	case "ttft":
		t = o.ttft
	case "latency":
		t = o.e2e
	}
	if c.Over != nil {
		base, err := b.run(c.Over)
		if err != nil {
			return figure{}, err
		}
		t /= base.tokS
	}
	if c.Share > 0 {
		t /= c.Share
	}
	f.value = results.F(t)
	return f, nil
}

// describe says in short how a set-up was run; k is its threshold.
func describe(s *Setup, k int) string {
	switch s.System {
	case "chain":
		return "exact chain"
	case "step-sync":
		return "simulated, a barrier each step"
	case "large-only":
		return "simulated, kernels alone"
	}
	switch {
	case s.N == 1:
		return "simulated"
	case s.B == 0:
		return fmt.Sprintf("simulated, the best of 1 to %d is B = %d", s.N, k)
	}
	return fmt.Sprintf("simulated, B = %d", k)
}

// Near is how far ours may be from a published number that counts as reproduced: a tenth. The paper's own cells for one
// configuration differ by up to 7 %.
const Near = .1

// judge sets ours beside the published number. than is the cell that direction is judged against, with ours of it.
func judge(c *Cell, f *figure, than *Cell, oursThan *figure) results.Claim {
	claim := results.Claim{
		Source: c.Source, ID: c.ID, Ours: f.value, Kind: c.Kind, Status: "not", Why: because(c.Why, f.note),
	}
	if c.Kind == "fitted" && c.Measure == "" {
		claim.Why = because("fitted: "+c.Why, f.note)
	}
	if c.Published == nil {
		return claim
	}
	published := *c.Published
	claim.Published = results.F(published)
	ours, ok := f.value.Get()
	if c.Upto != nil {
		claim.Why = because(fmt.Sprintf("published: %g to %g", published, *c.Upto), claim.Why)
		if ok {
			published = min(max(ours, published), *c.Upto) // the nearest of the range
		}
	}
	if !ok {
		return claim
	}
	claim.Difference = results.F(ours/published - 1)
	switch {
	case math.Abs(ours/published-1) <= Near+1e-9, c.AtLeast && ours/published >= 1:
		claim.Status = "reproduced"
	case c.Chance && (ours > 1) == (published > 1), c.Unit == "%" && (ours > 0) == (published > 0):
		claim.Status = "direction"
	case than != nil && oursThan != nil && (ours > oursThan.value.Or(math.NaN())) == (published > *than.Published):
		claim.Status = "direction"
	}
	return claim
}

// because joins what is said of a cell and of its run.
func because(why, note string) string {
	if why != "" && note != "" {
		return why + "; " + note
	}
	return why + note
}
