// Package lines counts the lines of each routing algorithm in its three forms: a Program in Go, a Starlark file, and code
// by hand that calls separate servers over HTTP. The sources are embedded, so that the count is of what was built.
//
// A line counts if code stands on it: blank lines, comments, package clauses and imports don't. Of Go, whole
// declarations count, from "func" or "type" to the closing brace. Read counts.go, then source.go (how a line is told,
// and what a file needs) and report.go (tables).
package lines

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/route/starlark"
	"github.com/trbench/trbench/engine/rpc/byhand"
)

// Article is the published saving: "80 % fewer lines of routing code". The article doesn't say what was counted.
const Article = .80

// Count is the lines of one algorithm.
type Count struct {
	Algorithm string `json:"algorithm"`
	Program   int    `json:"program_lines"`  // as a route.Program: its function and the types and rules that it is made of
	Starlark  int    `json:"starlark_lines"` // as a .star file, rules included
	ByHand    int    `json:"by_hand_lines"`  // over HTTP: the algorithm's own file
	// Needs is the plumbing that the file reaches, and the service that calls it: what else is written where this is the
	// only algorithm. Share is all plumbing over the number of algorithms: where all of them are written.
	Needs int     `json:"plumbing_needed_lines"`
	Share float64 `json:"plumbing_share_lines"`
}

// Own is the saving of a Program on the algorithm's own code: 1 - program / by hand.
func (c Count) Own() float64 { return saving(c.Program, float64(c.ByHand)) }

// Shared is the saving where the plumbing is divided among all algorithms.
func (c Count) Shared() float64 { return saving(c.Program, float64(c.ByHand)+c.Share) }

// Alone is the saving where this is the only algorithm, and its plumbing is written for it.
func (c Count) Alone() float64 { return saving(c.Program, float64(c.ByHand+c.Needs)) }

// OwnStarlark is Own of the .star file: against Go by hand, so of another language too, whose errors need no line.
func (c Count) OwnStarlark() float64 { return saving(c.Starlark, float64(c.ByHand)) }

func saving(program int, byHand float64) float64 { return 1 - float64(program)/byHand }

// Reproduced says under which of the three counts the article's saving is reached, the strictest one: "own", "shared",
// "alone", or "no".
func (c Count) Reproduced() string {
	switch {
	case c.Own() >= Article:
		return "own"
	case c.Shared() >= Article:
		return "shared"
	case c.Alone() >= Article:
		return "alone"
	}
	return "no"
}

// form says where an algorithm's code is.
type form struct {
	name    string
	file    string   // of package route
	program []string // its declarations there; a method is Type.Method
	byHand  string   // file of package byhand
}

var forms = []form{
	{"automix", "cascade.go", []string{"AutoMix", "cascadeAnswers"}, "automix.go"},
	{"bild", "bild.go", []string{"BiLD"}, "bild.go"},
	{"cascade", "cascade.go", []string{"Cascade"}, "cascade.go"},
	{"citer", "deferral.go", []string{"Switch", "citerRule"}, "citer.go"},
	{"co-llm", "deferral.go", []string{"Switch", "coLLMRule"}, "co_llm.go"},
	{"entropy", "deferral.go", []string{"Switch", "entropyRule"}, "entropy.go"},
	{"frugalgpt", "cascade.go", []string{"Frugal", "cascadeAnswers"}, "frugalgpt.go"},
	{"glimprouter", "reasoning.go", []string{"ReasoningStep", "ReasoningStep.goesOn", "GlimpRouter"}, "glimprouter.go"},
	{"me", "ensemble.go", []string{"Mix"}, "me.go"},
	{"query", "cascade.go", []string{"Query"}, "query.go"},
	{"r-stitch", "stitch.go", []string{"Alternate"}, "r_stitch.go"},
	{"r2r", "deferral.go", []string{"Switch", "r2rRule"}, "r2r.go"},
	{"spec-cascade", "speccascade.go", []string{"SpecCascade", "defers"}, "spec_cascade.go"},
	{"specdec", "specdec.go", []string{"SpecDec", "SpecDecode"}, "specdec.go"},
	{"specreason", "reasoning.go", []string{"ReasoningStep", "ReasoningStep.goesOn", "SpecReason"}, "specreason.go"},
}

// Counts are the lines of every built-in algorithm, by name.
func Counts() ([]Count, error) {
	written, err := parse(byhand.Source)
	if err != nil {
		return nil, err
	}
	built, err := parse(route.Source)
	if err != nil {
		return nil, err
	}
	all := plumbing(written)
	counts := make([]Count, 0, len(forms))
	for _, f := range forms {
		c := Count{Algorithm: f.name}
		for _, name := range f.program {
			d, ok := built.declared(f.file, name)
			if !ok {
				return nil, fmt.Errorf("algorithm %s: no %s in route/%s", f.name, name, f.file)
			}
			c.Program += d.lines
		}
		src, ok := starlark.Example(f.name)
		if !ok {
			return nil, fmt.Errorf("algorithm %s: no .star file", f.name)
		}
		c.Starlark = starlarkLines(string(src))
		own := written.in(f.byHand)
		if len(own) == 0 {
			return nil, fmt.Errorf("algorithm %s: no byhand/%s", f.name, f.byHand)
		}
		c.ByHand = total(own)
		c.Needs = total(reached(own, all))
		c.Share = float64(total(all)) / float64(len(forms))
		counts = append(counts, c)
	}
	return counts, nil
}

// Plumbing is the number of lines that the code by hand shares.
func Plumbing() (int, error) {
	written, err := parse(byhand.Source)
	return total(plumbing(written)), err
}

// plumbing are the declarations that no algorithm owns.
func plumbing(s source) []declaration {
	owned := map[string]bool{"source.go": true}
	for _, f := range forms {
		owned[f.byHand] = true
	}
	return slices.DeleteFunc(slices.Clone(s), func(d declaration) bool { return owned[d.file] })
}

// reached are the declarations of all that own needs, and those of the service that calls it.
func reached(own, all []declaration) []declaration {
	var found []declaration
	taken := make([]bool, len(all))
	named := map[string]bool{}
	take := func(d declaration) {
		for _, u := range d.uses {
			named[u] = true
		}
	}
	for _, d := range own {
		take(d)
	}
	for more := true; more; {
		more = false
		for i, d := range all {
			if taken[i] || !named[d.plain()] && d.file != "front.go" {
				continue
			}
			taken[i], more = true, true
			found = append(found, d)
			take(d)
		}
	}
	return found
}

// starlarkLines are the lines of a .star file with code on them.
func starlarkLines(src string) int {
	n := 0
	for line := range strings.Lines(src) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			n++
		}
	}
	return n
}

// read reads all Go files of a folder of sources.
func read(files fs.FS) (map[string][]byte, error) {
	names, err := fs.Glob(files, "*.go")
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, name := range names {
		if out[name], err = fs.ReadFile(files, name); err != nil {
			return nil, err
		}
	}
	return out, nil
}
