package models

import (
	"fmt"
	"strings"

	"github.com/trbench/trbench/internal/suggest"
)

// DefaultPair is the pair of a run that names none: the article's.
const DefaultPair = "llama3-8b-70b"

// Pair is the models that serve one request together: two, or more for an algorithm that mixes experts.
type Pair struct {
	Name   string
	Models []Card // at least two, smallest first; a model's index is its step.ModelID
}

// Pairs returns the known pairs, the default first. The Llama-3 and Qwen2.5 ones are the article's, the Qwen3 ones the
// paper's ("Setup", and its table of model pairs).
func Pairs() []Pair {
	return []Pair{
		pair(DefaultPair, "llama3-8b", "llama3-70b"),
		pair("qwen2.5-7b-72b", "qwen2.5-7b", "qwen2.5-72b"),
		pair("qwen3-0.6b-32b", "qwen3-0.6b", "qwen3-32b"),
		pair("qwen3-0.6b-8b-32b", "qwen3-0.6b", "qwen3-8b", "qwen3-32b"),
		pair("qwen3-0.6b-8b", "qwen3-0.6b", "qwen3-8b"),
		pair("qwen3-1.7b-8b", "qwen3-1.7b", "qwen3-8b"),
		pair("qwen3-4b-8b", "qwen3-4b", "qwen3-8b"),
	}
}

func pair(name string, members ...string) Pair {
	p := Pair{Name: name}
	for _, m := range members {
		c, err := Lookup(m)
		if err != nil {
			panic(err) // a name in the table above
		}
		p.Models = append(p.Models, c)
	}
	return p
}

// PairNames returns the names of Pairs, in its order.
func PairNames() []string {
	var names []string
	for _, p := range Pairs() {
		names = append(names, p.Name)
	}
	return names
}

// LookupPair returns a known pair by name, case ignored. The error of an unknown name gives the nearest known one, and
// all of them.
func LookupPair(name string) (Pair, error) {
	folded := strings.ToLower(strings.TrimSpace(name))
	for _, p := range Pairs() {
		if folded == p.Name {
			return p, nil
		}
	}
	known := strings.Join(PairNames(), ", ")
	if near, ok := suggest.Nearest(folded, PairNames()); ok {
		return Pair{}, fmt.Errorf("unknown pair %q: did you mean %s? (known: %s)", name, near, known)
	}
	return Pair{}, fmt.Errorf("unknown pair %q (known: %s); or name the models one by one", name, known)
}

// NewPair makes a pair of any models, smallest first, named after them ("qwen3-4b+llama3-8b") unless the pair is a
// known one. It fails on fewer than two models, and on one that is smaller than the one before it.
func NewPair(members ...Card) (Pair, error) {
	if len(members) < 2 {
		return Pair{}, fmt.Errorf("a pair needs at least 2 models, %d given", len(members))
	}
	var names []string
	for i, c := range members {
		if i > 0 && c.Params() < members[i-1].Params() {
			return Pair{}, fmt.Errorf("models go smallest first: %s (%.2f billion weights) follows %s (%.2f billion)",
				c.Name, float64(c.Params())/1e9, members[i-1].Name, float64(members[i-1].Params())/1e9)
		}
		names = append(names, c.Name)
	}
	name := strings.Join(names, "+")
	for _, p := range Pairs() {
		if strings.Join(p.members(), "+") == name {
			name = p.Name
		}
	}
	return Pair{Name: name, Models: append([]Card(nil), members...)}, nil
}

func (p Pair) members() []string {
	var names []string
	for _, c := range p.Models {
		names = append(names, c.Name)
	}
	return names
}
