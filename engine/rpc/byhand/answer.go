package byhand

import (
	"math/rand/v2"
	"slices"
)

// Answer is one request: its prompt, and what is committed of its output.
type Answer struct {
	Temperature float64
	Seed        uint64

	tokens  []int32 // prompt and output
	prompt  int
	max     int // output tokens
	stopped bool
	emit    func([]Token) // streams what is committed to the client
}

// NewAnswer returns a request of max output tokens; emit takes them as they are committed.
func NewAnswer(prompt []int32, max int, emit func([]Token)) *Answer {
	return &Answer{tokens: slices.Clone(prompt), prompt: len(prompt), max: max, emit: emit}
}

// Done says that nothing is left to write.
func (a *Answer) Done() bool { return a.stopped || a.Left() == 0 }

// Left is how many output tokens there may still be.
func (a *Answer) Left() int { return a.prompt + a.max - len(a.tokens) }

// Len is the number of tokens, prompt included.
func (a *Answer) Len() int { return len(a.tokens) }

// Context is all tokens, with drafts behind them. It is the caller's.
func (a *Answer) Context(drafts ...Token) []int32 {
	all := make([]int32, len(a.tokens), len(a.tokens)+len(drafts)+1)
	copy(all, a.tokens)
	for _, t := range drafts {
		all = append(all, t.ID)
	}
	return all
}

// Call continues this request, drafts included, by max tokens. A seed belongs to a position, so that no two calls draw
// alike.
func (a *Answer) Call(max int, drafts ...Token) Call {
	all := a.Context(drafts...)
	return Call{Prompt: all, Max: max, Temperature: a.Temperature, Seed: a.Seed + uint64(len(all))}
}

// Commit keeps tokens, up to the end of the answer, and streams them.
func (a *Answer) Commit(tokens ...Token) {
	tokens = tokens[:min(len(tokens), max(0, a.Left()))]
	if end := slices.IndexFunc(tokens, func(t Token) bool { return t.Stop }); end >= 0 {
		tokens = tokens[:end+1]
	}
	if a.stopped || len(tokens) == 0 {
		return
	}
	for _, t := range tokens {
		a.tokens = append(a.tokens, t.ID)
	}
	a.stopped = tokens[len(tokens)-1].Stop
	a.emit(tokens)
}

// Take commits one token: what a streaming call hands its tokens to.
func (a *Answer) Take(t Token) { a.Commit(t) }

// Draw is uniform in [0, 1), by position of the sequence and purpose, so that a request that is made again repeats
// itself.
func (a *Answer) Draw(pos int, purpose uint64) float64 {
	return rand.New(rand.NewPCG(a.Seed, uint64(pos)<<8|purpose)).Float64()
}
