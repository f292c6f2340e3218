// Package byhand holds the routing algorithms of package route as they are written without it: an orchestrator that
// calls separate OpenAI-compatible servers, one a model, over HTTP. It is what `trbench programs --lines` counts, and
// its tests run it beside the engine: both write the same tokens.
//
// Each algorithm has a file, written as if it were the only one: nothing is shared with another algorithm. What any of
// them would need is plumbing: http.go (a call, and when to make it again), server.go (a model's completions), scorer.go
// (an external router), logprobs.go (what is known of a distribution), answer.go (a request's state), front.go (the
// service that clients call). Nothing here imports the rest of the module.
//
// The servers speak vLLM's dialect of the completions API: prompts are token ids, tokens come back as "token_id:7",
// prompt_logprobs scores a prompt in one pass. Read entropy.go first, then specdec.go.
package byhand

import "context"

// Algorithm answers one request: it calls servers until a is done, and commits what it keeps. Requests run at the same
// time, each in a goroutine of its own. When ctx ends, so do the calls.
type Algorithm interface {
	Answer(ctx context.Context, a *Answer) error
}
