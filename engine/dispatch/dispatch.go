// Package dispatch is the brain of the baseline: an orchestrator that serves routed requests from separate single-model
// servers which know nothing of each other. It decides which call comes next for which request. It makes no call and
// knows no time: a driver (the simulator, or HTTP) carries the calls and their cost.
package dispatch

import (
	"fmt"
	"strings"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
)

// Calls is how much one call asks for.
type Calls uint8

const (
	// PerToken makes one call a token and routes in the orchestrator: what works with any server.
	PerToken Calls = iota
	// PerRun makes one call for each run of tokens on a model: the server applies the leaving rule itself and streams.
	PerRun
)

// ParseCalls reads "token" or "run".
func ParseCalls(s string) (Calls, error) {
	switch strings.ToLower(s) {
	case "token":
		return PerToken, nil
	case "run":
		return PerRun, nil
	}
	return 0, fmt.Errorf("rpc.calls %q: want token or run", s)
}

func (c Calls) String() string {
	if c == PerRun {
		return "run"
	}
	return "token"
}

// Call asks one server to continue a request: its prompt is all tokens so far.
type Call struct {
	Model  step.ModelID
	Prompt int32 // tokens known, all of them sent
	Max    int32 // tokens wanted
	Shared int32 // of the prompt, tokens that the server may have cached from earlier calls
	First  bool  // the request's first call
	Hop    bool  // another model than the call before
}

// Verdict is what one reply leads to.
type Verdict struct {
	Commit int32 // tokens of the reply that are kept: delivered to the client
	Done   bool  // the request is complete; otherwise Next is the call to make
	Next   Call
}

// Orchestrator keeps one small record a live request.
type Orchestrator struct {
	router route.Router // nil: every token stays on the first model
	calls  Calls
	live   []record // by handle
	batch  step.Batch
	result step.Result
	moves  route.Moves
}

type record struct {
	id    step.RequestID
	known int32 // tokens, prompt included
	end   int32
	model step.ModelID
}

// New returns an orchestrator without requests.
func New(r route.Router, calls Calls) *Orchestrator {
	return &Orchestrator{
		router: r, calls: calls,
		batch: step.Batch{
			Handle: make([]step.Handle, 1), ID: make([]step.RequestID, 1), Pos: make([]int32, 1), Feed: []int32{1}, Sample: []bool{true},
		},
		result: step.Result{Signal: make([]float64, 1)},
		moves:  route.Moves{To: make([]step.ModelID, 1)},
	}
}

// Admit takes a new request and returns its first call, to the smallest model.
func (o *Orchestrator) Admit(h step.Handle, id step.RequestID, prompt, output int32) Call {
	for int(h) >= len(o.live) {
		o.live = append(o.live, record{})
	}
	o.live[h] = record{id: id, known: prompt, end: prompt + output}
	c := o.call(&o.live[h])
	c.First, c.Hop = true, false
	return c
}

// Reply takes one sampled token and what the server reported about it (PerToken).
func (o *Orchestrator) Reply(h step.Handle, signal float64) Verdict {
	r := &o.live[h]
	from := r.model
	drop := int32(0)
	if o.router != nil {
		b := &o.batch
		b.Model, b.Handle[0], b.ID[0], b.Pos[0] = from, h, r.id, r.known
		o.result.Signal[0] = signal
		o.router.Route(from, b, &o.result, &o.moves)
		if to := o.moves.To[0]; to != from {
			drop = o.router.Send(b, 0, to)
			r.model = to
		}
	}
	v := Verdict{Commit: 1 - min(drop, 1)}
	r.known += v.Commit
	if v.Done = r.known == r.end; !v.Done {
		v.Next = o.call(r)
		v.Next.Hop = r.model != from
	}
	return v
}

// Stream takes tokens that a running call has delivered (PerRun). It says whether the request is complete.
func (o *Orchestrator) Stream(h step.Handle, tokens int32) (done bool) {
	r := &o.live[h]
	r.known += tokens
	return r.known == r.end
}

// Left takes the end of a run: the server says that the request continues on another model (PerRun).
func (o *Orchestrator) Left(h step.Handle, to step.ModelID) Call {
	r := &o.live[h]
	hop := r.model != to
	r.model = to
	c := o.call(r)
	c.Hop = hop
	return c
}

func (o *Orchestrator) call(r *record) Call {
	c := Call{Model: r.model, Prompt: r.known, Max: 1, Shared: r.known}
	if o.calls == PerRun {
		c.Max = r.end - r.known
	}
	return c
}
