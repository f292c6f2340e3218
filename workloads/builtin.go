package workloads

import (
	"bytes"
	"embed"
	"fmt"

	"github.com/trbench/trbench/workloads/trace"
)

// files are the built-in traces: NAME.TOKENIZER.csv, numbers only, in the lengths form. Row i is the same request in
// both tokenizers.
//
//go:embed embed/*.csv
var files embed.FS

// builtin is a trace of token counts that the binary carries. Counts are of the real tokenizer over the raw text: no
// begin-of-text token, no chat template.
type builtin struct {
	name  string
	what  string
	notes []string
}

// builtins are the traces, in the order that lists show.
func builtins() []builtin {
	return []builtin{{
		name: "gsm8k",
		what: "GSM8K test split, 1,319 questions and their reference answers (openai/grade-school-math, MIT)",
	}, {
		name: "alpaca",
		what: "Alpaca, 5,000 instructions with their inputs, and outputs (stanford_alpaca, CC BY-NC 4.0; lengths only)",
		notes: []string{"prompts are the bare instruction and input; Alpaca's template would add 24-25 tokens, with " +
			"an input 35-37 (measured)"},
	}, {
		// The 30,731 conversations of sarathi-serve's trace were not taken: their prompts are whole histories of up to
		// 8,000 tokens, counted with Llama 2's tokenizer only.
		name: "sharegpt",
		what: "ShareGPT, 300 requests with arrivals at about 10 requests/s (LLMServingSim workloads, MIT)",
		notes: []string{"requests are longer than ShareGPT's as a whole: this record holds prompts from 262 tokens " +
			"(mean 857) and outputs from 512 (mean 653)"},
	}}
}

// read parses the trace as the options' tokenizer counted it.
func (b *builtin) read(o Options) (*trace.Trace, error) {
	tokenizer, err := trace.ParseTokenizer(o.Tokenizer)
	if err != nil {
		return nil, fmt.Errorf("workload %s: %w", b.name, err)
	}
	name := fmt.Sprintf("%s.%s.csv", b.name, tokenizer)
	data, err := files.ReadFile("embed/" + name)
	if err != nil {
		return nil, fmt.Errorf("workload %s: built-in trace: %w", b.name, err)
	}
	return trace.Read(bytes.NewReader(data), name, trace.Options{Format: trace.Lengths})
}

// source says what the trace is.
func (b *builtin) source(o Options) string {
	tokenizer, _ := trace.ParseTokenizer(o.Tokenizer)
	if tokenizer == trace.Qwen25 {
		return b.what + "; tokens as Qwen 2.5 counts them"
	}
	return b.what + "; tokens as Llama 3.1 counts them"
}
