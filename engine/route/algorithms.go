package route

import (
	"fmt"
	"strings"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/internal/suggest"
	"github.com/trbench/trbench/models/signal"
)

// Options sets up an algorithm. Zero values are the algorithm's defaults.
type Options struct {
	Models    int       // models of the deployment, >= 2
	Threshold float64   // of the deciding rule; 0 is the published default
	Weights   []float64 // ME only: weight of each model; nil is the published default

	// Draft is the most tokens drafted before a verification: specdec, spec-cascade, bild; at most MaxDraft.
	Draft int
	// Adaptive lets specdec change the number of drafts after each verification.
	Adaptive bool
	// Greedy makes specdec keep the drafts that are the large model's likeliest tokens, not those that the rule of
	// speculative sampling keeps.
	Greedy bool
	// Defer is spec-cascade's rule: chow, diff or opt.
	Defer string
	// Rollback is bild's second threshold: the loss at which a draft is taken back, nats.
	Rollback float64
	// Step is the most tokens of a reasoning step, and Delimiter the token that ends one earlier, 0 for none:
	// specreason, glimprouter.
	Step      int
	Delimiter int32
	// Program selects the program form of an algorithm that has a batch form too. They decide alike; the batch form is
	// faster.
	Program bool
	// Seed keys a program's own random draws.
	Seed uint64
}

// MaxDraft bounds Options.Draft.
const MaxDraft = 64

// Algorithm describes a routing algorithm.
type Algorithm struct {
	Name    string
	Summary string // one line
	Source  string // where the rule and its default come from
	new     func(Options) (Router, error)
}

// Algorithms lists the built-in algorithms by name.
func Algorithms() []Algorithm {
	const table = "paper, table of algorithms; "
	return []Algorithm{
		{"automix", "small model answers and verifies itself; the large one answers again when that score is below .5",
			"AutoMix, arXiv 2310.12963", newAutoMix},
		{"bild", "small model drafts until it is unsure; the large one rolls back to the first draft that it finds unlikely",
			"BiLD, arXiv 2302.07863; thresholds: its published code", newBiLD},
		{"cascade", "each token goes to the next larger model while confidence is below .5",
			"Chow's rule at token level", newCascade},
		{"citer", "small model leaves when the router's score is below .98; one token on the large model",
			table + "CITER", deferral(citerRule())},
		{"co-llm", "small model leaves when the deferral probability is above .15; one token on the large model",
			table + "Co-LLM", deferral(coLLMRule())},
		{"entropy", "small model leaves when its entropy is above 3.38 nats; one token on the large model",
			"article; measured: sends 10 % of a recorded pair's tokens", deferral(entropyRule())},
		{"frugalgpt", "each request's answer is accepted from the smallest model whose answer scores at least .96",
			"FrugalGPT, arXiv 2305.05176", newFrugalGPT},
		{"glimprouter", "the large model writes a reasoning step whose first token has more than 2.68 nats on the small one",
			"GlimpRouter, arXiv 2601.05110; measured: 20 % of a recorded pair's tokens", newGlimpRouter},
		{"me", "a model drawn by weights (.5, .3, .2) after every token",
			table + "model ensemble", newEnsemble},
		{"query", "the large model answers a request whose predicted win rate is above .1881",
			"RouteLLM, arXiv 2406.18665", newQuery},
		{"r-stitch", "the large model writes while normalised entropy is above .03, the small one otherwise",
			table + "R-Stitch", newStitch},
		{"r2r", "small model leaves when the token is predicted to diverge; one token on the large model",
			table + "R2R", deferral(r2rRule())},
		{"spec-cascade", "small model drafts 4 tokens; the large one keeps those it would not defer, the others by min(1, p/q)",
			"speculative cascades, arXiv 2405.19261", newSpecCascade},
		{"specdec", "small model drafts 4 tokens; the large one keeps each with probability min(1, p/q) and adds one",
			"speculative decoding, arXiv 2211.17192 and 2302.01318", newSpecDec},
		{"specreason", "small model drafts a reasoning step; the large one rewrites it when its utility is below 7 of 9",
			"SpecReason, arXiv 2504.07891; threshold: its published code", newSpecReason},
	}
}

// Names lists the names of the built-in algorithms.
func Names() []string {
	var names []string
	for _, a := range Algorithms() {
		names = append(names, a.Name)
	}
	return names
}

// New returns the named algorithm, case ignored. An unknown name is an error that says the nearest one.
func New(name string, o Options) (Router, error) {
	if o.Models < 2 || o.Models > step.MaxModels {
		return nil, fmt.Errorf("algorithm %s: routing needs 2 to %d models, not %d", name, step.MaxModels, o.Models)
	}
	for _, a := range Algorithms() {
		if strings.EqualFold(a.Name, name) {
			r, err := a.new(o)
			if err != nil {
				return nil, fmt.Errorf("algorithm %s: %w", a.Name, err)
			}
			return named(r, a.Name), nil
		}
	}
	if near, ok := suggest.Nearest(name, Names()); ok {
		return nil, fmt.Errorf("unknown algorithm %q: did you mean %s? (known: %s)", name, near, strings.Join(Names(), ", "))
	}
	return nil, fmt.Errorf("unknown algorithm %q (known: %s)", name, strings.Join(Names(), ", "))
}

// program is the router of an algorithm's program; New names it.
func program(o Options, p Program, rules ...signal.Rule) *Runner {
	return NewRunner(Spec{Program: p, Models: o.Models, Rules: rules, Seed: o.Seed})
}

// reading makes the program read further columns.
func (r *Runner) reading(c step.Columns) *Runner {
	r.spec.Reads |= c
	r.reads |= c
	return r
}

// named gives a program the algorithm's name, and its chain if it has one.
func named(r Router, name string) Router {
	p, ok := r.(*Runner)
	if !ok {
		return r
	}
	p.spec.Name = name
	return p.chained()
}

// withThreshold replaces a rule's threshold, if one is set.
func withThreshold(r signal.Rule, t float64) (signal.Rule, error) {
	if t == 0 {
		return r, nil
	}
	if !(t > r.Lo && t < r.Hi) {
		return r, fmt.Errorf("threshold %g: want %s inside (%g, %g)", t, r.Name, r.Lo, r.Hi)
	}
	r.Threshold = t
	return r, nil
}

// within reads a whole number option: 0 is the default.
func within(name string, x, standard, most int) (int, error) {
	switch {
	case x == 0:
		return standard, nil
	case x < 1 || x > most:
		return 0, fmt.Errorf("%s %d: want 1 to %d", name, x, most)
	}
	return x, nil
}

// Column is where a result holds the score that a rule on single tokens reads.
func Column(res *step.Result, s signal.Score) []float64 {
	switch s {
	case signal.Entropy:
		return res.Entropy
	case signal.Normalised:
		return res.Normalised
	case signal.Confidence:
		return res.Confidence
	case signal.Margin:
		return res.Margin
	}
	return res.Signal
}

// Value is the score that a rule on single tokens reads.
func (t Token) Value(s signal.Score) float64 {
	switch s {
	case signal.Entropy:
		return t.Entropy
	case signal.Normalised:
		return t.Normalised
	case signal.Confidence:
		return t.Confidence
	case signal.Margin:
		return t.Margin
	}
	return t.Score
}

// Quiet is DecodeWhile's predicate of a run that ends where a rule on single tokens fires.
func Quiet(r signal.Rule) func(Token) bool {
	score, above, threshold := r.Score, r.Above, r.Threshold
	return func(t Token) bool {
		x := t.Score
		if score != signal.External {
			x = t.Value(score)
		}
		if above {
			return !(x > threshold)
		}
		return !(x < threshold)
	}
}

// Always is DecodeWhile's predicate of a run that nothing but the end of the request ends.
func Always(Token) bool { return true }

func square(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}
