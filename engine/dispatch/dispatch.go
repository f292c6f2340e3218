// Package dispatch is the brain of the baseline: an orchestrator that serves routed requests from separate single-model
// servers which know nothing of each other. It decides which call comes next for which request. It makes no call and
// knows no time: a driver (the simulator, or HTTP) carries the calls and their cost.
//
// Read dispatch.go (calls and verdicts), then reply.go (what a server says of a token).
package dispatch

import (
	"fmt"
	"strings"

	"github.com/trbench/trbench/engine/clock"
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
	Verify int32 // of which drafts, at their end, that the server scores in one pass
	Max    int32 // tokens wanted, counted from before the drafts
	Shared int32 // of the prompt, tokens that the server may have cached from earlier calls
	First  bool  // the request's first call
	Hop    bool  // another model than the call before
}

// Verdict is what one reply leads to.
type Verdict struct {
	Commit int32 // tokens that are kept now, earlier drafts included: delivered to the client
	Own    int32 // of which the server that replied has sampled itself
	Done   bool  // the request is complete, or failed with Err; otherwise Next is the call to make
	Err    error
	Next   Call
}

// Orchestrator keeps one small record a live request.
type Orchestrator struct {
	router route.Router // nil: every token stays on the first model
	drafts bool
	calls  Calls
	live   []record // by handle
	batch  step.Batch
	result step.Result
	moves  route.Moves
}

// record is one live request.
//
// Invariant: committed <= n, theirs <= n - committed.
type record struct {
	id        step.RequestID
	n         int32 // tokens, prompt and drafts included
	committed int32 // of which committed
	theirs    int32 // drafts that other models than this one sampled
	end       int32
	verify    int32                 // drafts that the call being made scores
	agrees    [step.MaxModels]int32 // tokens of what each server saw last that are still the request's
	model     step.ModelID
}

// New returns an orchestrator without requests. The router must be fresh.
func New(r route.Router, calls Calls) *Orchestrator {
	o := &Orchestrator{
		router: r, calls: calls,
		batch: step.Batch{
			Handle: make([]step.Handle, 1), ID: make([]step.RequestID, 1), Pos: make([]int32, 1), Feed: []int32{1},
			Verify: make([]int32, 1), Sample: []bool{true},
		},
	}
	if d, ok := r.(route.Drafter); ok {
		o.drafts = d.Drafts()
	}
	if r != nil {
		o.batch.Want, o.batch.TopK = route.Reads(r)
	}
	return o
}

// Drafts says that calls may carry drafts.
func (o *Orchestrator) Drafts() bool { return o.drafts }

// Reads are the optional columns that replies must hold, and the number of candidates a token.
func (o *Orchestrator) Reads() (step.Columns, int) { return o.batch.Want, o.batch.TopK }

// Admit takes a new request and returns its first call, to the smallest model unless the algorithm says otherwise. An
// error fails the request.
func (o *Orchestrator) Admit(a route.Arrival) (Call, error) {
	for int(a.Handle) >= len(o.live) {
		o.live = append(o.live, record{})
	}
	r := &o.live[a.Handle]
	*r = record{id: a.ID, n: a.Prompt, committed: a.Prompt, end: a.Prompt + a.Output}
	if f, ok := o.router.(route.Follower); ok {
		first, err := f.Begin(a)
		if err != nil {
			return Call{}, err
		}
		r.model = first
	}
	c := o.call(r, r.model)
	c.First = true
	return c, nil
}

// Forget lets go of a request that has ended.
func (o *Orchestrator) Forget(h step.Handle) {
	if f, ok := o.router.(route.Follower); ok {
		f.End(h)
	}
}

// Reply takes one sampled token and what the server reported about it (PerToken).
func (o *Orchestrator) Reply(now clock.Instant, h step.Handle, reply *Reply) Verdict {
	r := &o.live[h]
	from := r.model
	var end error
	var drop int32
	verify := r.verify
	accept := verify
	hold := false
	if o.router != nil {
		b := &o.batch
		b.Model, b.Handle[0], b.ID[0], b.Pos[0], b.Verify[0], b.End = from, h, r.id, r.n, r.verify, now
		reply.result(b, &o.result)
		o.moves.Resize(1, o.drafts)
		o.router.Route(from, b, &o.result, &o.moves)
		r.model = o.moves.To[0]
		if o.drafts {
			end, drop, hold = o.moves.End[0], o.moves.Drop[0], o.moves.Draft[0]
			accept = max(0, min(o.moves.Accept[0], r.verify))
		}
		if r.model != from {
			drop = o.router.Send(b, 0, r.model)
		}
	}
	if end != nil && end != route.ErrEnd {
		return Verdict{Done: true, Err: end}
	}
	if r.verify > 0 {
		r.cut(r.committed + accept)
		r.theirs = accept
	}
	r.n++
	r.cut(r.n - min(drop, r.n-r.committed))
	v := Verdict{}
	if !hold {
		v = r.commit()
		v.Done = v.Done || drop == 0 && reply.ends(verify, accept) || end != nil
	}
	if !v.Done {
		v.Next = o.call(r, from)
	}
	return v
}

// cut shortens the request to n tokens; no server agrees with more of them.
func (r *record) cut(n int32) {
	if n >= r.n {
		return
	}
	r.n = n
	r.theirs = min(r.theirs, n-r.committed)
	for j := range r.agrees {
		r.agrees[j] = min(r.agrees[j], n)
	}
}

// commit makes all tokens committed, up to the end.
func (r *record) commit() Verdict {
	r.n = min(r.n, r.end)
	v := Verdict{Commit: r.n - r.committed}
	v.Own = max(0, v.Commit-r.theirs)
	v.Done = r.n == r.end
	r.committed, r.theirs = r.n, 0
	return v
}

// Stream takes tokens that a running call has delivered (PerRun). It says whether the request is complete.
func (o *Orchestrator) Stream(h step.Handle, tokens int32) (done bool) {
	r := &o.live[h]
	r.committed += tokens
	r.n = max(r.n, r.committed)
	return r.committed == r.end
}

// Left takes the end of a run: the server says that the request continues on another model, with loc tokens, of which
// those not streamed yet are drafts, after it was shared tokens long at its shortest (PerRun).
func (o *Orchestrator) Left(h step.Handle, to step.ModelID, loc, shared int32) Call {
	r := &o.live[h]
	for j := range r.agrees {
		r.agrees[j] = min(r.agrees[j], shared)
	}
	r.agrees[r.model] = loc
	r.n = loc
	from := r.model
	r.model = to
	return o.call(r, from)
}

// call is the next call for r, after one to model from. Drafts that come to another server are verified there.
func (o *Orchestrator) call(r *record, from step.ModelID) Call {
	c := Call{Model: r.model, Prompt: r.n, Shared: r.agrees[r.model], Hop: r.model != from}
	if c.Hop {
		c.Verify = r.n - r.committed
		r.theirs = c.Verify
	}
	r.verify = c.Verify
	if c.Max = c.Verify + 1; o.calls == PerRun {
		c.Max = r.end - r.committed
	}
	r.agrees[r.model] = r.n
	return c
}
