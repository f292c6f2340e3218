package paper

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"

	"github.com/goccy/go-yaml"
)

//go:embed published.yaml
var published []byte

// Section is one table or figure of a source.
type Section struct {
	Name, Title string
	Note        string // shown below the table
	Setup       Setup  // what its cells have in common
	Cells       []*Cell
}

// Cell is one published number, and how ours is come by.
type Cell struct {
	ID        string
	Source    string   // paper or article; the default is paper
	Published *float64 // nil where the source gives no number
	Upto      *float64 // the upper end, of a range
	Unit      string   // the default is tok/s
	AtLeast   bool     `yaml:"at_least"` // the source claims this much or more: ours may exceed it
	Kind      string   // fitted or predicted; the default is predicted
	Why       string
	Than      string // a cell that this one lies above or below: what "direction" means
	Chance    bool   // `direction` is judged against 1: the number is a ratio

	Setup   Setup
	Over    *Setup  // ours is the ratio to this one
	Share   float64 // and is divided by this
	Metric  string  // of the run: throughput, the default, or ttft or latency, means in seconds
	Measure string  // a function of measure.go instead of one run
	None    bool    // nothing here regenerates it: Why says why
	Alone   bool    // the source prints no such number: ours stands beside those that it does, and is no claim
}

// Setup is one working point. Empty fields are the section's, and then the defaults.
type Setup struct {
	System    string  // tokenrouter, step-sync, large-only, chain (exact)
	N         int     // active requests
	B         int     // the large model's threshold; 0 is the best one of 1..N
	Algorithm string  // as trbench run knows it
	Middle    string  // a third model between the two, or none; as Small
	Small     string  // MODEL@TP, or MODEL@TP as OTHER@TP: scaled like another model's times from MODEL's TP to that one
	Large     string  // as Small
	Steps     string  // tables (A100 kernels and the host overhead), kernels (without it), or the whole steps of paper, article
	GPUs      string  // shared or separate
	P         float64 // the switch rate; 0: solved from RateOf
	Q         float64 // the return rate where the algorithm has one
	RateOf    string  `yaml:"rate_of"` // the cell at N = 1 that the switch rate is solved from
	Prompt    int     // tokens
	Output    int     // tokens
	Nodes     int     // 2: a model a node, and the fitted hop between them
	Graphs    string  // what runs without CUDA graphs: router, llm (and the router), slm (and both)
}

var defaults = Setup{
	System: "tokenrouter", N: 1, Algorithm: "r2r", RateOf: ablationRate, Prompt: 100, Output: 2048,
	Small: "qwen3-0.6b@1", Large: "qwen3-32b@2", Steps: "tables", GPUs: "shared",
}

// over lays s over base.
func (s Setup) over(base Setup) Setup {
	return Setup{
		System: cmp.Or(s.System, base.System), N: cmp.Or(s.N, base.N), B: cmp.Or(s.B, base.B),
		Algorithm: cmp.Or(s.Algorithm, base.Algorithm), Middle: cmp.Or(s.Middle, base.Middle), Small: cmp.Or(s.Small, base.Small), Large: cmp.Or(s.Large, base.Large),
		Steps: cmp.Or(s.Steps, base.Steps), GPUs: cmp.Or(s.GPUs, base.GPUs), P: cmp.Or(s.P, base.P), Q: cmp.Or(s.Q, base.Q),
		RateOf: cmp.Or(s.RateOf, base.RateOf), Prompt: cmp.Or(s.Prompt, base.Prompt), Output: cmp.Or(s.Output, base.Output),
		Nodes: cmp.Or(s.Nodes, base.Nodes), Graphs: cmp.Or(s.Graphs, base.Graphs),
	}
}

// Load reads the published numbers: the sections in their order, each set-up complete.
func Load() ([]Section, error) { return parse(published) }

func parse(data []byte) ([]Section, error) {
	var doc struct{ Sections []Section }
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.DisallowUnknownField()).Decode(&doc); err != nil {
		return nil, fmt.Errorf("published.yaml: %w", err)
	}
	ids := map[string]bool{}
	for i := range doc.Sections {
		s := &doc.Sections[i]
		base := s.Setup.over(defaults)
		for _, c := range s.Cells {
			c.ID = s.Name + "/" + c.ID
			c.Source, c.Kind, c.Unit = cmp.Or(c.Source, "paper"), cmp.Or(c.Kind, "predicted"), cmp.Or(c.Unit, "tok/s")
			c.Setup = c.Setup.over(base)
			if c.Over != nil {
				*c.Over = c.Over.over(base)
			}
			if err := c.valid(ids); err != nil {
				return nil, fmt.Errorf("published.yaml: %s: %w", c.ID, err)
			}
			ids[c.ID] = true
		}
	}
	for _, s := range doc.Sections {
		for _, c := range s.Cells {
			for _, ref := range []string{c.Than, c.Setup.RateOf} {
				if ref != "" && !ids[ref] {
					return nil, fmt.Errorf("published.yaml: %s: there is no cell %q", c.ID, ref)
				}
			}
		}
	}
	return doc.Sections, nil
}

func (c *Cell) valid(ids map[string]bool) error {
	switch {
	case ids[c.ID]:
		return fmt.Errorf("is there twice")
	case c.Source != "paper" && c.Source != "article":
		return fmt.Errorf("source %q: want paper or article", c.Source)
	case c.Metric != "" && c.Metric != "ttft" && c.Metric != "latency":
		return fmt.Errorf("metric %q: want ttft, latency or none", c.Metric)
	case c.Kind != "fitted" && c.Kind != "predicted":
		return fmt.Errorf("kind %q: want fitted or predicted", c.Kind)
	case c.None && c.Why == "":
		return fmt.Errorf("is not regenerated, and why says nothing")
	case c.Alone && c.Published != nil:
		return fmt.Errorf("stands alone, and has a published number")
	case c.Upto != nil && c.Published == nil:
		return fmt.Errorf("has the upper end of a range and no lower one")
	}
	return nil
}
