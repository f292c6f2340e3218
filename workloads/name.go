package workloads

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/trbench/trbench/internal/suggest"
	"github.com/trbench/trbench/workloads/trace"
)

// Names lists what Load takes.
func Names() []string {
	var names []string
	for _, b := range builtins() {
		names = append(names, b.name)
	}
	return append(names, fixedForm)
}

const (
	fixedForm = "fixed:PROMPT,OUTPUT"
	fixedKind = "fixed"
)

// spec is a workload's name, read.
type spec struct {
	name           string   // canonical
	builtin        *builtin // nil for equal requests
	prompt, output int      // of equal requests
}

// Describe is a line on what a workload is.
func Describe(name string) (string, error) {
	s, err := parseName(name)
	switch {
	case err != nil:
		return "", err
	case s.builtin == nil:
		return fmt.Sprintf("equal requests: %d prompt tokens, %d output tokens", s.prompt, s.output), nil
	default:
		return s.builtin.what, nil
	}
}

// ParseList reads names with commas between them, as in gsm8k,fixed:512,512,alpaca: a comma after fixed:PROMPT belongs
// to the name. It returns canonical names; an unknown, empty or repeated one is an error.
func ParseList(list string) ([]string, error) {
	var names []string
	seen := map[string]bool{}
	parts := strings.Split(list, ",")
	for i := 0; i < len(parts); i++ {
		name := strings.TrimSpace(parts[i])
		kind, _, _ := strings.Cut(name, ":")
		if strings.EqualFold(strings.TrimSpace(kind), fixedKind) && i+1 < len(parts) {
			i++
			name += "," + parts[i]
		}
		s, err := parseName(name)
		if err != nil {
			return nil, err
		}
		if seen[s.name] {
			return nil, fmt.Errorf("workload %s: found it twice in %q, wanted it once", s.name, list)
		}
		seen[s.name] = true
		names = append(names, s.name)
	}
	return names, nil
}

func parseName(name string) (spec, error) {
	plain := strings.ToLower(strings.TrimSpace(name))
	if plain == "" {
		return spec{}, fmt.Errorf("workload: found no name, wanted one of %s", strings.Join(Names(), ", "))
	}
	known := []string{fixedKind}
	for _, b := range builtins() {
		if plain == b.name {
			return spec{name: plain, builtin: &b}, nil
		}
		known = append(known, b.name)
	}
	kind, lengths, colon := strings.Cut(plain, ":")
	if strings.TrimSpace(kind) == fixedKind {
		s, err := parseFixed(lengths)
		if err != nil {
			return spec{}, fmt.Errorf("workload %q: %w: %s (for example fixed:512,512)", name, err, fixedForm)
		}
		return s, nil
	}
	if colon {
		plain = kind
	}
	hint := ""
	if near, ok := suggest.Nearest(plain, known); ok {
		if near == fixedKind {
			near = fixedForm
		}
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return spec{}, fmt.Errorf("unknown workload %q%s (known: %s)", name, hint, strings.Join(Names(), ", "))
}

// parseFixed reads PROMPT,OUTPUT.
func parseFixed(lengths string) (spec, error) {
	prompt, output, comma := strings.Cut(lengths, ",")
	if !comma {
		return spec{}, fmt.Errorf("found %q, wanted two lengths", lengths)
	}
	var s spec
	var err error
	if s.prompt, err = length("prompt", prompt); err != nil {
		return spec{}, err
	}
	if s.output, err = length("output", output); err != nil {
		return spec{}, err
	}
	s.name = fmt.Sprintf("%s:%d,%d", fixedKind, s.prompt, s.output)
	return s, nil
}

func length(what, s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < 1 || n > trace.MaxTokens {
		return 0, fmt.Errorf("found the %s %q, wanted a whole number of tokens from 1 to %d", what, s, trace.MaxTokens)
	}
	return n, nil
}

// fixed makes equal requests.
func (s spec) fixed(o Options) (*Set, error) {
	if o.N == 0 {
		return nil, fmt.Errorf("workload %s: %w", s.name, errNoEnd)
	}
	set := newSet(s.name, "equal requests", sampler{name: "none"})
	r := Request{Prompt: s.prompt, Output: s.output}
	if o.Output > 0 {
		r.Output = o.Output
		set.note("every output is set to %d tokens", o.Output)
	}
	set.Requests, set.Warmup = make([]Request, o.N), make([]Request, o.Warmup)
	for _, list := range [][]Request{set.Requests, set.Warmup} {
		for i := range list {
			list[i] = r
		}
	}
	set.SHA256 = digest(set.Requests)
	return set, nil
}

var errNoEnd = errors.New("equal requests have no end: wanted a number of them")
