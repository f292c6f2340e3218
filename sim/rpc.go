package sim

import (
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/dispatch"
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
}

// call is where a request stands between two steps.
type call struct {
	dispatch.Call
	signal float64       // what the server reported with the sampled token
	left   step.ModelID  // PerRun: where the request continues
	sent   clock.Instant // when the last reply left its server
	parted clock.Instant // when the reply before a switch left the other server
	stage  stage
	hop    bool // the switch to this model has not been recorded yet
}

type stage uint8

const (
	fresh   stage = iota // its first call is to be made
	replied              // a token has come back
	run                  // a run of tokens has ended
)

func newOrchestration(c *Config) *orchestration {
	return &orchestration{
		costs: &c.RPC, brain: dispatch.New(c.Router, c.RPC.Calls), server: make([]clock.Instant, len(c.Models)),
	}
}

// admit takes a new request to the orchestrator.
func (o *orchestration) admit(w *world, h step.Handle, r Request) {
	for int(h) >= len(o.calls) {
		o.calls = append(o.calls, call{})
	}
	o.calls[h] = call{Call: o.brain.Admit(h, w.live[h].id, r.Prompt, r.Output), stage: fresh}
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
		o.issue(w, h, o.brain.Left(h, c.left))
	case replied:
		from := c.Model
		v := o.brain.Reply(h, c.signal)
		if v.Commit > 0 {
			w.commit([]core.Commit{{Handle: h, Tokens: v.Commit, Own: v.Commit}}, from > 0)
		}
		if v.Done {
			o.end(w, h)
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
	prompt := time.Duration(next.Prompt)
	generated := prompt - time.Duration(w.cfg.Requests[w.live[h].id].Prompt)
	free := &o.server[next.Model]
	*free = max(*free, w.now.Add(o.costs.RTT/2)).Add(
		o.costs.Server + generated*o.costs.ServerPerGenerated + prompt*o.costs.ServerPerToken)
	w.queue.Push(*free, atMessage, evCall, int32(h), 0)
}

// submit hands a call to its server's scheduler.
func (o *orchestration) submit(w *world, h step.Handle) error {
	c := &o.calls[h]
	return w.subs[c.Model].Submit(w.now, core.Request{
		Handle: h, ID: w.live[h].id, Prompt: c.Prompt, Max: c.Max, Shared: c.Shared,
	})
}

// complete ends a step of server i: its tokens go back to the orchestrator.
func (o *orchestration) complete(w *world, i int, b *step.Batch) error {
	start := w.lanes[i].start
	for j, h := range b.Handle {
		c := &o.calls[h]
		c.signal = w.signal[j]
		if c.sent = w.now; c.hop {
			c.hop = false
			if !w.live[h].warm {
				w.out.Switch(metrics.Transport, o.costs.RTT)
				w.out.Switch(metrics.Wait, start.Sub(c.parted)-o.costs.RTT)
				w.out.Switch(metrics.Extend, w.now.Sub(start))
			}
		}
	}
	e, err := w.subs[i].Complete(w.now, &w.result)
	if err != nil {
		return err
	}
	back := w.now.Add(o.costs.RTT - o.costs.RTT/2)
	for j := range e.Commit {
		h := e.Commit[j].Handle
		if o.costs.Calls == dispatch.PerRun {
			w.queue.Push(back, atMessage, evStream, int32(h), uint32(e.Commit[j].Tokens))
			continue
		}
		o.calls[h].stage = replied
		w.queue.Push(back, atMessage, evReply, int32(h), 0)
	}
	for j := range e.Send {
		if m := &e.Send[j]; m.Kind == step.Resume {
			c := &o.calls[m.Handle]
			c.stage, c.left, c.Prompt = run, m.To, m.Loc
			w.queue.Push(back, atMessage, evReply, int32(m.Handle), 0)
		}
	}
	return nil
}

// stream delivers the tokens of a running call.
func (o *orchestration) stream(w *world, h step.Handle, tokens int32) {
	w.commit([]core.Commit{{Handle: h, Tokens: tokens, Own: tokens}}, o.calls[h].Model > 0)
	if o.brain.Stream(h, tokens) {
		o.end(w, h)
	}
}

// end lets every server forget the request; what its cache holds stays there, for nobody.
func (o *orchestration) end(w *world, h step.Handle) {
	w.end(h)
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
