package workloads

import (
	"fmt"
	"strings"

	"github.com/trbench/trbench/internal/suggest"
	"github.com/trbench/trbench/workloads/trace"
)

// sampler is a set of rules: which entries may be used, and whether the choice among them is drawn or the first come.
type sampler struct {
	name      string
	minPrompt int  // tokens
	minOutput int  // tokens; doesn't hold for outputs that Options.Output sets
	maxPrompt int  // tokens; 0 means no bound
	maxTotal  int  // tokens; 0 means no bound
	twoTurns  bool // a conversation of one turn is out even where its output isn't needed
	ordered   bool // the order of the source, not a seeded shuffle
}

// samplers are the rules that exist.
//
//   - vllm: as vLLM's benchmarks prune ShareGPT (benchmark_serving.py, later is_valid_sequence): prompt and output of
//     at least 4 tokens, a prompt of at most 1024 and both together of at most 2048; shuffled, then the first N.
//   - sglang: as SGLang's bench_serving (sample_sharegpt_requests): prompt and output of at least 2 tokens; a bound on
//     both together only where one is given (its context length, here MaxTotal); shuffled, then the first N.
//   - seeded: every possible request; shuffled, then the first N.
//   - none: every possible request, in the order of the source.
//
// Both tools take turn 0 as the prompt and the tokens of turn 1 as the output, whatever the roles, of conversations of
// two turns or more. Their shuffles are Python's; ours is not, so that equal seeds give other requests than theirs.
func samplers() []sampler {
	return []sampler{
		{name: "vllm", minPrompt: 4, minOutput: 4, maxPrompt: 1024, maxTotal: 2048, twoTurns: true},
		{name: "sglang", minPrompt: 2, minOutput: 2, twoTurns: true},
		{name: "seeded", minPrompt: 1, minOutput: 1},
		{name: "none", minPrompt: 1, minOutput: 1, ordered: true},
	}
}

// Samplers lists the names of the rules.
func Samplers() []string {
	var names []string
	for _, s := range samplers() {
		names = append(names, s.name)
	}
	return names
}

func samplerNamed(name string) (sampler, error) {
	for _, s := range samplers() {
		if strings.EqualFold(name, s.name) {
			return s, nil
		}
	}
	return sampler{}, unknown("sampler", name, Samplers())
}

func unknown(what, name string, known []string) error {
	hint := ""
	if near, ok := suggest.Nearest(name, known); ok {
		hint = fmt.Sprintf("; did you mean %s?", near)
	}
	return fmt.Errorf("unknown %s %q%s (known: %s)", what, name, hint, strings.Join(known, ", "))
}

// usual is the sampler for a file of the given form, where none is named.
func usual(t *trace.Trace) string {
	switch {
	case t.Format == trace.ShareGPT:
		return "vllm"
	case t.HasArrivals:
		return "none"
	default:
		return "seeded"
	}
}

// bounded is the sampler under the options' own bounds.
func (s sampler) bounded(o Options) sampler {
	if o.MaxPrompt > 0 {
		s.maxPrompt = o.MaxPrompt
	}
	if o.MaxTotal > 0 {
		s.maxTotal = o.MaxTotal
	}
	if o.Output > 0 {
		s.minOutput = 1
	}
	s.ordered = s.ordered || o.Replay
	return s
}

// drop says why an entry of these lengths is left out; empty means it isn't.
func (s sampler) drop(prompt, output int) string {
	switch {
	case prompt == 0:
		return "prompt of 0 tokens"
	case output == 0:
		return "output of 0 tokens"
	case prompt < s.minPrompt:
		return fmt.Sprintf("prompt < %d tokens", s.minPrompt)
	case output < s.minOutput:
		return fmt.Sprintf("output < %d tokens", s.minOutput)
	case s.maxPrompt > 0 && prompt > s.maxPrompt:
		return fmt.Sprintf("prompt > %d tokens", s.maxPrompt)
	case s.maxTotal > 0 && prompt+output > s.maxTotal:
		return fmt.Sprintf("prompt + output > %d tokens", s.maxTotal)
	}
	return ""
}
