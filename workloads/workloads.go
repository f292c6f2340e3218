// Package workloads says what a run replays: a list of requests, each so many prompt tokens and so many output tokens.
// The list is drawn once, by a seed, and every system of a run replays the same one, so that comparisons are paired.
//
// Three sources: traces of token counts that are built in (gsm8k, alpaca, sharegpt), dataset files (package trace reads
// them), and equal requests (fixed:512,512). When they arrive is package arrival's business.
//
// Read workloads.go (Set, Options), then load.go (a source becomes a Set), sampler.go (which entries may be used),
// choose.go (which are), builtin.go (what is built in). inspect.go looks at a file without running it.
package workloads

import (
	"time"

	"github.com/trbench/trbench/workloads/trace"
)

// Request is one request of a list.
type Request struct {
	Prompt  int           // tokens, >= 1
	Output  int           // tokens, >= 1
	Arrival time.Duration // since the start of the trace; only where Set.HasArrivals
	Text    string        // of the prompt; only where Options.KeepText
}

// Set is a list of requests and where it comes from.
type Set struct {
	Name     string    `json:"name"`   // gsm8k, fixed:512,512, or a file's base name
	Source   string    `json:"source"` // what it is: dataset, tokenizer, licence
	Requests []Request `json:"-"`      // those to measure
	Warmup   []Request `json:"-"`      // those to run before; not part of SHA256

	Total   int    `json:"entries"` // entries of the source; 0 where it makes requests without end
	Usable  int    `json:"usable"`  // entries that the sampler lets through: Total less those skipped
	Skipped []Skip `json:"skipped"` // by reason, sorted
	Sampler string `json:"sampler"` // the rules that chose
	// SHA256 is over the requests to measure, in order: the hexadecimal hash of "trbench.requests/1\n" and a line
	// "prompt,output,arrival\n" each, decimal, arrival in ns (0 where there are none).
	SHA256      string   `json:"sha256"`
	HasArrivals bool     `json:"has_arrivals"`
	Notes       []string `json:"notes"` // what a reader of results should know: estimates, wrap-around
}

// Skip counts entries left out for one reason.
type Skip = trace.Skip

// DataError is bad input, with its place; a command that meets one exits 3.
type DataError = trace.DataError

// Counter counts the tokens of a text.
type Counter = trace.Counter

// Arrivals are the requests' recorded arrivals, in order: nil where there are none.
func (s *Set) Arrivals() []time.Duration {
	if !s.HasArrivals {
		return nil
	}
	at := make([]time.Duration, len(s.Requests))
	for i, r := range s.Requests {
		at[i] = r.Arrival
	}
	return at
}

// Tokens are the prompt and the output tokens of the requests to measure.
func (s *Set) Tokens() (prompt, output int) {
	for _, r := range s.Requests {
		prompt += r.Prompt
		output += r.Output
	}
	return prompt, output
}

// MaxRequests bounds a list: ten million requests take half a gigabyte, and their numbers fit a step.RequestID.
const MaxRequests = 10_000_000

// DefaultOutput is the output, in tokens, of requests whose source has prompts only.
const DefaultOutput = 256

// Options say which requests to take. The zero value takes all of them.
type Options struct {
	N      int    // requests to measure; 0 means all that the source has
	Warmup int    // requests to run before; they reuse no measured one while the source has enough
	Seed   uint64 // of the choice
	// Sampler names the rules: vllm, sglang, seeded or none. Empty means seeded for what is built in, vllm for ShareGPT
	// files, none for files with arrivals, seeded for others.
	Sampler string
	// Replay keeps the order of the source, and with it the recorded arrivals, under any sampler: the first N usable
	// requests. Otherwise only the sampler none does; a shuffled choice has no arrivals.
	Replay bool
	// MaxPrompt and MaxTotal, of prompt and output together, drop longer requests; in tokens. 0 means the sampler's own
	// bound, if it has one.
	MaxPrompt, MaxTotal int
	Output              int    // tokens of every output, in the place of the source's; 0 means the source's
	Tokenizer           string // llama31 or qwen25: whose token counts; empty means llama31
	KeepText            bool   // keep the prompts' text; files of text only

	Format  string  // of a file: a form's name; empty means auto
	Counter Counter // counts the tokens of a file's text; nil means an estimate
}
