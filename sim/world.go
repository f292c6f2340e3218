package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/dispatch"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results/metrics"
	"github.com/trbench/trbench/sim/des"
)

// Kinds of events.
const (
	evComplete uint8 = iota // a step ends; Arg is the model, Tag the plan it belongs to
	evMessage               // a peer message arrives; Arg is its slot
	evReply                 // RPC: a reply reaches the orchestrator; Arg is the handle
	evDecide                // RPC: the orchestrator has spent its CPU time on a call; Arg is the handle
	evCall                  // RPC: a server has spent its CPU time on a call; Arg is the handle
	evStream                // RPC: streamed tokens reach the client; Arg is the handle, Tag the chunk's slot
	evArrive                // a request arrives at the client loop
	evWake                  // a subserver asked for this Instant
	evRouse                 // a subserver that slept is awake; Arg is the model
)

// Priorities within one Instant: completions, messages, submissions, timers (then Next, by subserver).
const (
	atCompletion uint8 = iota
	atMessage
	atSubmission
	atTimer
)

// world is one run in progress.
type world struct {
	cfg   *Config
	now   clock.Instant
	queue des.Queue
	subs  []*core.Subserver
	lanes []lane // by subserver
	gpu   *latency.Contention
	turn  int // StepSync: the model to ask first

	changes int32 // of the number of active requests
	changed bool  // something has happened at now that was not decided on yet

	router   route.Router   // this run's own
	follower route.Follower // router, if it follows requests
	let      func()         // lets go of what the router holds
	results  *signal.Results
	judge    signal.Judge  // nil: nobody knows when the models agree
	grader   signal.Grader // nil: nor how likely they find a reference

	client
	rpc *orchestration // topology RPC only

	messages []step.PeerReq // in flight, by slot
	spare    []int32        // free slots

	out Outcome
}

// lane is the decode loop of one subserver.
type lane struct {
	batch *step.Batch // in flight
	start clock.Instant
	plan  uint32        // counts the plans of the step's end: an event of an older one is void
	end   clock.Instant // as planned
	wake  clock.Instant // an evWake is queued for it
	heard int32         // the change of the number of active requests that its subserver knows of
	busy  time.Duration

	asleep bool // it had nothing to run when it last decided; only with Config.Wake
	roused bool // an evRouse is queued for it

	clocked latency.Clocked // the model's latency, if it goes by the clock
}

func newWorld(c *Config) *world {
	w := &world{cfg: c}
	w.router, w.let = route.Fresh(c.Router)
	w.follower, _ = w.router.(route.Follower)
	w.judge, _ = c.Signal.(signal.Judge)
	w.grader, _ = c.Signal.(signal.Grader)
	if c.Topology == RPC {
		w.rpc = newOrchestration(c, w.router)
	}
	rows := 1
	for i, m := range c.Models {
		sc := core.Config{
			Model: step.ModelID(i), Policy: m.Policy, KVBlocks: blocks(m.KVTokens), BlockTokens: core.DefaultBlockTokens,
			Router: w.router,
		}
		if w.rpc != nil {
			sc.Retain = c.RPC.Cache
			if c.RPC.Calls == dispatch.PerToken {
				sc.Router, sc.Verifies = nil, w.rpc.brain.Drafts()
				sc.Want, sc.TopK = w.rpc.brain.Reads()
			}
		}
		w.subs = append(w.subs, core.New(sc))
		clocked, _ := m.Latency.(latency.Clocked)
		w.lanes = append(w.lanes, lane{wake: clock.Never, asleep: c.Wake != nil, clocked: clocked})
		rows = max(rows, m.Policy.MaxBatch, core.DefaultMaxBatch)
	}
	w.results = signal.NewResults(c.Signal, rows)
	if c.Contention > 0 && len(c.Models) > 1 {
		w.gpu = latency.NewContention(c.Contention, len(c.Models))
	}
	w.out.Collector = metrics.NewCollector(c.Collect)
	w.client.init(c)
	return w
}

func blocks(tokens int) int32 { return int32(tokens / core.DefaultBlockTokens) }

func (w *world) outcome() *Outcome {
	o := &w.out
	o.End = w.now
	o.Ended = w.ended
	o.Models = o.Models[:0]
	for i, s := range w.subs {
		o.Models = append(o.Models, ModelStats{s.Stats(), w.lanes[i].busy})
	}
	return o
}

// run takes events until none is left.
func (w *world) run(ctx context.Context) error {
	w.open()
	for w.queue.Len() > 0 {
		if w.out.Events&0xfff == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := w.advance(); err != nil {
			return err
		}
	}
	if w.ended < len(w.cfg.Requests) {
		return w.stranded()
	}
	for _, s := range w.subs {
		if err := s.Idle(); err != nil {
			return fmt.Errorf("sim: after the last request: %w", err)
		}
	}
	return nil
}

// advance takes one event. All that happens at one Instant is taken before anything is decided at it.
func (w *world) advance() error {
	e := w.queue.Pop()
	w.now = e.At
	w.out.Events++
	live, err := w.take(&e)
	if err != nil {
		return err
	}
	w.changed = w.changed || live
	if w.queue.NextAt() == w.now || !w.changed {
		return nil
	}
	w.changed = false
	w.decide()
	if w.cfg.Check {
		return w.check()
	}
	return nil
}

// take acts on one event. live is false for an event that has been overtaken.
func (w *world) take(e *des.Event) (live bool, err error) {
	switch e.Kind {
	case evComplete:
		if w.lanes[e.Arg].plan != e.Tag {
			return false, nil
		}
		return true, w.complete(int(e.Arg))
	case evMessage:
		m := w.messages[e.Arg]
		w.spare = append(w.spare, e.Arg)
		return true, w.deliver(&m)
	case evReply:
		w.rpc.reply(w, step.Handle(e.Arg))
	case evDecide:
		return true, w.rpc.decide(w, step.Handle(e.Arg))
	case evCall:
		return true, w.rpc.submit(w, step.Handle(e.Arg))
	case evStream:
		w.rpc.stream(w, step.Handle(e.Arg), e.Tag)
	case evArrive:
		return true, w.arrive()
	case evWake:
		w.lanes[e.Arg].wake, w.lanes[e.Arg].asleep = clock.Never, false
	case evRouse:
		w.lanes[e.Arg].asleep, w.lanes[e.Arg].roused = false, false
	}
	return true, nil
}

// decide asks every idle subserver for a batch, in order.
func (w *world) decide() {
	if w.cfg.Topology == StepSync {
		w.decideInTurn()
		return
	}
	for i := range w.subs {
		if w.lanes[i].batch == nil && !w.asleep(i) {
			w.ask(i)
		}
	}
}

// asleep says that subserver i sleeps, and has it woken if there is work for it.
func (w *world) asleep(i int) bool {
	l := &w.lanes[i]
	if l.asleep && !l.roused && w.subs[i].Available() > 0 {
		l.roused = true
		w.queue.Push(w.now.Add(w.cfg.Wake(step.ModelID(i), w.beside(i))), atTimer, evRouse, int32(i), 0)
	}
	return l.asleep
}

// beside says that another subserver than i has work.
func (w *world) beside(i int) bool {
	for k := range w.lanes {
		if k != i && (w.lanes[k].batch != nil || w.subs[k].Available() > 0) {
			return true
		}
	}
	return false
}

// decideInTurn lets one model run at a time: the next in turn that has work.
func (w *world) decideInTurn() {
	for i := range w.lanes {
		if w.lanes[i].batch != nil {
			return
		}
	}
	for k := range w.subs {
		i := (w.turn + k) % len(w.subs)
		if w.ask(i) {
			w.turn = (i + 1) % len(w.subs)
			return
		}
	}
}

// ask asks subserver i for a batch and starts it.
func (w *world) ask(i int) bool {
	b, wake, ok := w.subs[i].Next(w.now)
	if ok {
		w.begin(i, b)
		return true
	}
	l := &w.lanes[i]
	l.asleep = w.cfg.Wake != nil
	if wake != l.wake && wake != clock.Never {
		l.wake = wake
		w.queue.Push(wake, atTimer, evWake, int32(i), 0)
	}
	return false
}

// begin starts a step: prices it and plans its end.
func (w *world) begin(i int, b *step.Batch) {
	l := &w.lanes[i]
	l.batch, l.start = b, w.now
	var d time.Duration
	if l.clocked != nil {
		d = l.clocked.StepTimeAt(w.now, b.Shape)
	} else {
		d = w.cfg.Models[i].Latency.StepTime(b.Shape)
	}
	if w.router != nil && w.rpc == nil {
		d += w.cfg.RouterCost
	}
	if w.rpc != nil {
		d += w.rpc.penalty(b)
	}
	if w.gpu == nil {
		w.plan(i, w.now.Add(d))
		return
	}
	w.gpu.Start(w.now, i, d)
	w.replan()
}

// plan queues the end of the step on lane i.
func (w *world) plan(i int, end clock.Instant) {
	l := &w.lanes[i]
	l.plan++
	l.end = end
	w.queue.Push(end, atCompletion, evComplete, int32(i), l.plan)
}

// replan follows the contention model: a step that starts or ends changes when the others end.
func (w *world) replan() {
	for i := range w.lanes {
		l := &w.lanes[i]
		if l.batch == nil {
			continue
		}
		if end := w.gpu.End(i); l.end != end {
			w.plan(i, end)
		}
	}
}

// complete ends the step on lane i.
func (w *world) complete(i int) error {
	l := &w.lanes[i]
	b := l.batch
	l.batch, l.end = nil, clock.Never
	l.busy += w.now.Sub(l.start)
	if w.gpu != nil {
		w.gpu.Finish(w.now, i)
		w.replan()
	}
	w.out.Tokens += sampled(b)
	res := w.results.Of(b)
	if w.cfg.Stepped != nil {
		w.cfg.Stepped(b, l.start, w.now)
	}
	w.cfg.Log.Step(w.now, b)
	if w.rpc != nil {
		return w.rpc.complete(w, i, b, res)
	}
	w.resumed(b, l.start)
	e, err := w.subs[i].Complete(w.now, res)
	if err != nil {
		return err
	}
	w.commit(e.Commit, i > 0)
	for j := range e.Send {
		if err := w.send(&e.Send[j]); err != nil {
			return err
		}
	}
	for _, d := range e.Done {
		w.end(d.Handle, d.Err)
		w.setActive(step.ModelID(i))
		w.release(d.Handle)
	}
	return nil
}

// sampled is how many rows of a step sampled a token: all but the chunks of a prefill that go on.
func sampled(b *step.Batch) int64 {
	n := int64(b.Len())
	if b.Shape.Extends > 0 {
		for _, s := range b.Sample {
			if !s {
				n--
			}
		}
	}
	return n
}

// resumed records what the rows that came from a peer paid for the switch.
func (w *world) resumed(b *step.Batch, start clock.Instant) {
	for i, t := range b.Since {
		if t == step.Fresh || w.live[b.Handle[i]].warm {
			continue
		}
		w.out.Switch(metrics.Transport, w.cfg.Transport)
		w.out.Switch(metrics.Wait, start.Sub(t))
		w.out.Switch(metrics.Extend, w.now.Sub(start))
	}
}

// send carries a message to its peer: at once in one process, else after Transport.
func (w *world) send(m *step.PeerReq) error {
	l := &w.live[m.Handle]
	switch m.Kind {
	case step.Resume:
		l.hops++
		m.ActiveN = int32(w.active)
	case step.Finished:
		l.refs++
	}
	if w.cfg.Transport == 0 {
		return w.deliver(m)
	}
	w.post(m)
	return nil
}

// post puts a message on the wire.
func (w *world) post(m *step.PeerReq) {
	slot := int32(len(w.messages))
	if n := len(w.spare); n > 0 {
		slot = w.spare[n-1]
		w.spare = w.spare[:n-1]
		w.messages[slot] = *m
	} else {
		w.messages = append(w.messages, *m)
	}
	w.queue.Push(w.now.Add(w.cfg.Transport), atMessage, evMessage, slot, 0)
}

func (w *world) deliver(m *step.PeerReq) error {
	if m.Kind == step.Active {
		l := &w.lanes[m.To]
		if m.ActiveSeq < l.heard {
			return nil // overtaken by a change that happened at this subserver
		}
		l.heard = m.ActiveSeq
	}
	if err := w.subs[m.To].Receive(w.now, m); err != nil {
		return err
	}
	if m.Kind == step.Finished {
		w.release(m.Handle)
	}
	return nil
}

// setActive tells every subserver how many requests are active: the one where it changed at once, its peers by message.
func (w *world) setActive(at step.ModelID) {
	w.changes++
	for i, s := range w.subs {
		if w.cfg.Transport == 0 || step.ModelID(i) == at {
			s.Active(w.now, w.active)
			w.lanes[i].heard = w.changes
			continue
		}
		w.post(&step.PeerReq{ActiveN: int32(w.active), ActiveSeq: w.changes, From: at, To: step.ModelID(i), Kind: step.Active})
	}
}

func (w *world) check() error {
	for _, s := range w.subs {
		if err := s.Valid(); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) stranded() error {
	err := fmt.Errorf("sim: %w at %v: %d of %d requests have ended, %d are active and none can run", ErrStranded, w.now, w.ended,
		len(w.cfg.Requests), w.active)
	for i, s := range w.subs {
		err = fmt.Errorf("%w; %s has %d available", err, w.cfg.Models[i].Name, s.Available())
	}
	return err
}
