package sim

import (
	"math"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/dispatch"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/results/metrics"
)

// orchestration drives dispatch on the virtual clock and charges what each call costs. A call goes through five places:
// the orchestrator's CPU (one call at a time), half a round trip, the server's CPU (one call at a time), the server's
// scheduler, and half a round trip back. Ties and the order at each CPU are the order of arrival there.
type orchestration struct {
	costs  *RPCCosts
	brain  *dispatch.Orchestrator
	free   clock.Instant   // the orchestrator's CPU
	server []clock.Instant // each server's CPU
	calls  []call          // by handle
	chunks []chunk         // on their way to the client, by slot
	spare  []uint32        // free slots
}

// SquaredCosts is CPU time of a server that grows with the square of a length, ns for each token squared.
type SquaredCosts struct{ Generated, Token float64 }

// ServerTime is a server's CPU time for one call of prompt tokens, of which generated ones are not the request's own
// prompt: Server + g ServerPerGenerated + n ServerPerToken + g² Squared.Generated + n² Squared.Token.
func (c *RPCCosts) ServerTime(prompt, generated int32) time.Duration {
	n, g := time.Duration(prompt), time.Duration(generated)
	t := c.Server + g*c.ServerPerGenerated + n*c.ServerPerToken
	if c.Squared == (SquaredCosts{}) {
		return t
	}
	square := func(tokens int32, ns float64) time.Duration {
		return time.Duration(min(math.Round(float64(tokens)*float64(tokens)*ns), float64(longest)))
	}
	return t + square(generated, c.Squared.Generated) + square(prompt, c.Squared.Token)
}

// longest bounds one cost, so that absurd keys make a slow server and not an overflow.
const longest = 30 * 24 * time.Hour

// chunk is streamed tokens on their way to the client.
type chunk struct {
	tokens, own int32
	large       bool
}

// call is where a request stands between two steps.
type call struct {
	dispatch.Call
	reply  dispatch.Reply // what the server reported with the sampled token
	left   step.PeerReq   // PerRun: where the request continues
	err    error          // what failed it
	wrote  int32          // PerRun: tokens that servers have committed
	sent   clock.Instant  // when the last reply left its server
	parted clock.Instant  // when the reply before a switch left the other server
	stage  stage
	hop    bool // the switch to this model has not been recorded yet
}

type stage uint8

const (
	fresh   stage = iota // its first call is to be made
	replied              // a token has come back
	run                  // a run of tokens has ended
	closed               // the request has ended before its limit
)

func newOrchestration(c *Config, r route.Router) *orchestration {
	return &orchestration{
		costs: &c.RPC, brain: dispatch.New(r, c.RPC.Calls), server: make([]clock.Instant, len(c.Models)),
	}
}

// admit takes a new request to the orchestrator.
func (o *orchestration) admit(w *world, a route.Arrival) {
	h := a.Handle
	for int(h) >= len(o.calls) {
		o.calls = append(o.calls, call{})
	}
	c := &o.calls[h]
	*c = call{reply: c.reply}
	var err error
	if c.Call, err = o.brain.Admit(a); err != nil {
		o.end(w, h, err)
		return
	}
	o.enqueue(w, h)
}

// enqueue takes a request to the orchestrator's CPU.
func (o *orchestration) enqueue(w *world, h step.Handle) {
	tokens := time.Duration(o.calls[h].Prompt)
	o.free = max(o.free, w.now).Add(o.costs.Dispatch + tokens*o.costs.DispatchPerToken)
	w.queue.Push(o.free, atMessage, evDecide, int32(h), 0)
}

// reply takes a reply to the orchestrator.
func (o *orchestration) reply(w *world, h step.Handle) { o.enqueue(w, h) }

// decide is what the orchestrator does once it has spent its CPU time.
func (o *orchestration) decide(w *world, h step.Handle) error {
	c := &o.calls[h]
	switch c.stage {
	case fresh:
		o.issue(w, h, c.Call)
	case run:
		o.issue(w, h, o.brain.Left(h, c.left.To, c.left.Loc, c.left.Shared))
	case closed:
		o.end(w, h, c.err)
	case replied:
		from := c.Model
		v := o.brain.Reply(w.now, h, &c.reply)
		if v.Commit > 0 {
			w.commit([]core.Commit{{Handle: h, Tokens: v.Commit, Own: v.Own}}, from > 0)
		}
		if v.Done {
			o.end(w, h, v.Err)
			return nil
		}
		o.issue(w, h, v.Next)
	}
	return nil
}

// issue sends a call. All calls take the same time on the wire, so they reach a server's CPU in the order of issue.
func (o *orchestration) issue(w *world, h step.Handle, next dispatch.Call) {
	c := &o.calls[h]
	c.Call = next
	c.hop = next.Hop
	if next.Hop {
		c.parted = c.sent
		w.live[h].hops++
	}
	generated := next.Prompt - w.cfg.Requests[w.live[h].id].Prompt
	free := &o.server[next.Model]
	*free = max(*free, w.now.Add(o.costs.RTT/2)).Add(o.costs.ServerTime(next.Prompt, generated))
	w.queue.Push(*free, atMessage, evCall, int32(h), 0)
}

// submit hands a call to its server's scheduler.
func (o *orchestration) submit(w *world, h step.Handle) error {
	c := &o.calls[h]
	return w.subs[c.Model].Submit(w.now, core.Request{
		Handle: h, ID: w.live[h].id, Prompt: c.Prompt, Max: c.Max, Shared: c.Shared, Verify: c.Verify,
	})
}

// complete ends a step of server i: its tokens go back to the orchestrator.
func (o *orchestration) complete(w *world, i int, b *step.Batch, res *step.Result) error {
	start := w.lanes[i].start
	first := 0 // draft of the row
	for j, h := range b.Handle {
		c := &o.calls[h]
		if o.costs.Calls == dispatch.PerToken {
			c.reply.Take(b, res, j, first)
		}
		if len(b.Verify) > 0 {
			first += int(b.Verify[j])
		}
		if c.sent = w.now; c.hop {
			c.hop = false
			if !w.live[h].warm {
				w.out.Switch(metrics.Transport, o.costs.RTT)
				w.out.Switch(metrics.Wait, start.Sub(c.parted)-o.costs.RTT)
				w.out.Switch(metrics.Extend, w.now.Sub(start))
			}
		}
	}
	e, err := w.subs[i].Complete(w.now, res)
	if err != nil {
		return err
	}
	back := w.now.Add(o.costs.RTT - o.costs.RTT/2)
	if o.costs.Calls == dispatch.PerRun {
		o.forward(w, e, back, i > 0)
		return nil
	}
	for j := range e.Commit {
		h := e.Commit[j].Handle
		o.calls[h].stage = replied
		w.queue.Push(back, atMessage, evReply, int32(h), 0)
	}
	return nil
}

// forward sends what a step of a running call leads to on its way: tokens, the end of the run, or of the request where
// the tokens don't tell.
func (o *orchestration) forward(w *world, e *core.Effects, back clock.Instant, large bool) {
	for _, c := range e.Commit {
		o.calls[c.Handle].wrote += c.Tokens
		slot := uint32(len(o.chunks))
		if n := len(o.spare); n > 0 {
			slot = o.spare[n-1]
			o.spare = o.spare[:n-1]
		} else {
			o.chunks = append(o.chunks, chunk{})
		}
		o.chunks[slot] = chunk{c.Tokens, c.Own, large}
		w.queue.Push(back, atMessage, evStream, int32(c.Handle), slot)
	}
	for j := range e.Send {
		if m := &e.Send[j]; m.Kind == step.Resume {
			c := &o.calls[m.Handle]
			c.stage, c.left, c.Prompt = run, *m, m.Loc
			w.queue.Push(back, atMessage, evReply, int32(m.Handle), 0)
		}
	}
	for _, d := range e.Done {
		c := &o.calls[d.Handle]
		if d.Status == core.Failed || c.wrote < w.cfg.Requests[w.live[d.Handle].id].Output {
			c.stage, c.err = closed, d.Err
			w.queue.Push(back, atMessage, evReply, int32(d.Handle), 0)
		}
	}
}

// stream delivers the tokens of a running call.
func (o *orchestration) stream(w *world, h step.Handle, slot uint32) {
	c := o.chunks[slot]
	o.spare = append(o.spare, slot)
	w.commit([]core.Commit{{Handle: h, Tokens: c.tokens, Own: c.own}}, c.large)
	if o.brain.Stream(h, c.tokens) {
		o.end(w, h, nil)
	}
}

// end lets every server forget the request; what its cache holds stays there, for nobody.
func (o *orchestration) end(w *world, h step.Handle, err error) {
	o.brain.Forget(h)
	w.end(h, err)
	for _, s := range w.subs {
		s.Release(w.now, h)
	}
	w.release(h)
}

// penalty is what a step with an extend costs beyond its latency model.
func (o *orchestration) penalty(b *step.Batch) time.Duration {
	if b.Shape.Extends == 0 || int(b.Model) >= len(o.costs.Extend) {
		return 0
	}
	return o.costs.Extend[b.Model]
}
