// Package serve simulates one server that holds one model: vLLM's scheduler (engine version 1) over a latency model, on a
// virtual clock. Requests arrive by a trace, and all output lengths are forced.
//
// It is not engine/core: that routes tokens between models and knows requests by count, while this shares blocks of KV
// between requests by content and plans a step before the last one has ended (ADR 0008).
//
// Read serve.go (what goes in and comes out), then scheduler.go (who runs next), memory.go (blocks of KV) and loop.go
// (the clock: steps back to back, or one after the other).
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/kv"
	"github.com/trbench/trbench/models/latency/kernels"
)

var (
	// ErrTooLong is the kind of a request that can never run: it exceeds the pool, or the budget where prompts are not
	// split.
	ErrTooLong = errors.New("request can never run")
	// ErrConfig is the kind of settings that no server has.
	ErrConfig = errors.New("settings")
)

// Request is one request of a trace.
type Request struct {
	Arrival clock.Instant
	Prompt  int32 // tokens, >= 1
	Output  int32 // tokens, >= 1
	// Blocks are the contents of the full blocks of the prompt, by Contents; nil where nobody knows: then the prompt
	// shares a prefix with no other.
	Blocks []kv.Hash
}

// StepTimer is a latency model.
type StepTimer interface {
	// Time is how long a step takes on the GPU.
	Time(kernels.Shape) time.Duration
}

// Config is how the server is set, in vLLM's terms.
type Config struct {
	MaxSeqs     int   // max_num_seqs: requests that run at once
	TokenBudget int   // max_num_batched_tokens: tokens a step
	BlockTokens int32 // block_size
	// Blocks is num_gpu_blocks; 0 is no limit. One of them stands for no block, so that a server of n has n - 1 to give.
	Blocks  int32
	Chunked bool // prompts longer than what is left of a step's budget are split
	Caching bool // requests share the blocks of a common prefix
	// Async plans a step while the one before it runs: the GPU never waits for the host, and what the scheduler knows is
	// one step old.
	Async bool
	// FirstChunk admits a request once its first chunk fits KV; else only once its whole prompt does, vLLM's default.
	FirstChunk bool
	Latency    StepTimer
	// Check looks at all invariants after each step, for tests.
	Check bool
}

func (c *Config) validate() error {
	for _, p := range []struct {
		name  string
		value int
	}{{"max_num_seqs", c.MaxSeqs}, {"token budget", c.TokenBudget}, {"block size", int(c.BlockTokens)}} {
		if p.value < 1 {
			return fmt.Errorf("serve: %w: %s %d: want at least 1", ErrConfig, p.name, p.value)
		}
	}
	if c.Blocks < 0 || c.Blocks == 1 {
		return fmt.Errorf("serve: %w: %d blocks of KV: want at least 2, or 0 for no limit", ErrConfig, c.Blocks)
	}
	return nil
}

// fits says whether a request can run at all. The last token needs no KV.
func (c *Config) fits(i int, r *Request) error {
	if r.Prompt < 1 || r.Output < 1 {
		return fmt.Errorf("serve: %w: request %d: %d prompt and %d output tokens, want at least 1 of each", ErrConfig, i,
			r.Prompt, r.Output)
	}
	tokens := int64(r.Prompt) + int64(r.Output) - 1
	if room := int64(c.Blocks-1) * int64(c.BlockTokens); c.Blocks > 0 && tokens > room {
		return fmt.Errorf("serve: %w: request %d: %d prompt and %d output tokens, KV has room for %d", ErrTooLong, i,
			r.Prompt, r.Output, room)
	}
	if !c.Chunked && int(r.Prompt) > c.TokenBudget {
		return fmt.Errorf("serve: %w: request %d: a prompt of %d tokens that is not split, and a budget of %d", ErrTooLong, i,
			r.Prompt, c.TokenBudget)
	}
	return nil
}

// Times are when what happened to a request.
type Times struct {
	Scheduled clock.Instant // planned into its first step
	First     clock.Instant // first token
	Last      clock.Instant // last token
}

// Sample is the state at the end of a step.
type Sample struct {
	At               clock.Instant
	Running, Waiting int
	BlocksHeld       int32
}

// Outcome is what a run left.
type Outcome struct {
	Requests   []Times  // by request
	Samples    []Sample // by step
	End        clock.Instant
	Steps      int
	Busy       time.Duration // of the GPU
	Preempted  int
	Recomputed int64 // tokens fed again after a preemption
	CacheHits  int64 // prompt tokens found in the prefix cache at a first admission
	MostHeld   int32 // blocks
}

// Run serves requests, in any order of arrival. It stops early, with the context's cause, when ctx ends.
func Run(ctx context.Context, c *Config, requests []Request) (*Outcome, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	order := make([]int32, len(requests))
	for i := range requests {
		if err := c.fits(i, &requests[i]); err != nil {
			return nil, err
		}
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Compare(requests[a].Arrival, requests[b].Arrival)
	})
	w := newWorld(c, requests, order)
	if err := w.loop(ctx); err != nil {
		return nil, err
	}
	return &w.out, nil
}
