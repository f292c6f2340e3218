package engine

import (
	"fmt"
	"runtime"
	"time"

	"github.com/trbench/trbench/engine/backend"
	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
)

// lane is what connects one subserver's loops. Engine.mu guards all but the channels.
type lane struct {
	mail  chan struct{} // the inbox holds letters
	inbox []letter      // to the inter-model loop; no more than two a request
	read  []letter      // the inbox being emptied; the two take turns
	busy  bool          // a step is in flight
	taken bool          // a decode loop has it
	due   clock.Instant // when to ask the core again, if nobody has it
	// working says that the decode loop found a batch when it last asked.
	working bool
	asleep  bool          // it found none, and no letter has been read since
	ended   clock.Instant // of the last step, until the decode loop waits for work; 0 after
	heard   []*Stream     // the decode loop's own: whom its last step had tokens for
}

func newLane() *lane { return &lane{mail: make(chan struct{}, 1), due: clock.Never} }

// poke makes a signal that coalesces with one that has not been taken yet.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// decodeLoop runs steps, of any model that has work and no other loop with it. There are as many loops as models, so that
// none waits for another's step. A loop stays with its model while that has work; where all of a step's requests leave for
// a model that sleeps, it goes with them, since to wake another thread takes longer than a small model's step.
func (e *Engine) decodeLoop() {
	defer e.loops.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	at := none
	var owed lanes // were given work, and nobody has been told
	for {
		i, b, wake, err := e.pick(at)
		if b != nil {
			e.announce(owed &^ (1 << i))
			owed, err = e.forward(i, b)
		}
		if err != nil {
			e.fail(fmt.Errorf("model %s: %w", e.cfg.Models[i].Name, err))
			return
		}
		if at = i; b != nil {
			if e.crowded() {
				runtime.Gosched()
			}
			continue
		}
		owed = 0 // all that sleep have been asked
		var due <-chan time.Time
		if wake != clock.Never {
			timer.Reset(max(0, wake.Sub(e.now())))
			due = timer.C
		}
		select {
		case <-e.kick:
		case <-due:
		case <-e.ctx.Done():
			return
		}
	}
}

// none is no lane.
const none = -1

// crowded says that steps keep all cores busy. Go takes a core from a goroutine that does not give it up after 10 ms
// only: without a yield clients would hear of their tokens, and send their next requests, whole batches late.
func (e *Engine) crowded() bool { return int(e.stepping.Load()) >= e.cores }

// pick asks the core for a batch: of model at, which the loop has, then of all that no loop has. The loop has the batch's
// model then. A nil batch comes with the Instant to ask again; an error with the model that it is of.
func (e *Engine) pick(at int) (i int, b *step.Batch, wake clock.Instant, err error) {
	wake = clock.Never
	if at != none {
		if b, wake, err = e.next(at); b != nil || err != nil {
			return at, b, wake, err
		}
	}
	for i := range e.lanes {
		if !e.take(i) {
			continue
		}
		b, w, err := e.next(i)
		if b != nil {
			e.mind()
		}
		if b != nil || err != nil {
			return i, b, w, err
		}
		wake = min(wake, w)
	}
	return none, nil, wake, nil
}

// mind has another loop look after the models that wait for an Instant, if the caller was to.
func (e *Engine) mind() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range e.lanes {
		if !l.taken && l.due != clock.Never {
			poke(e.kick)
			return
		}
	}
}

// take gives model i to the caller, unless another loop has it.
func (e *Engine) take(i int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lanes[i].taken {
		return false
	}
	e.lanes[i].taken = true
	return true
}

// next asks the core for a batch of model i, which the caller has and without a batch has no longer, after it has taken
// in what peers have sent: the inter-model loop may be waiting for a processor. A nil batch comes with the Instant to ask
// again.
func (e *Engine) next(i int) (*step.Batch, clock.Instant, error) {
	if e.cfg.Settle != nil {
		e.cfg.Settle(i)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lanes[i]
	l.due = clock.Never
	if e.err != nil {
		l.taken = false
		return nil, clock.Never, nil
	}
	for k := range e.lanes {
		if k == i || e.cfg.StepSync { // whose turn it is depends on all of them
			if err := e.receive(k); err != nil {
				return nil, clock.Never, err
			}
		}
	}
	if e.cfg.StepSync && !e.onTurn(i) {
		l.taken = false
		return nil, clock.Never, nil
	}
	b, wake, ok := e.subs[i].Next(e.now())
	if !ok {
		e.working(i, false)
		l.ended, l.asleep, l.taken, l.due = 0, true, false, wake
		return nil, wake, nil
	}
	l.busy, l.asleep = true, false
	e.working(i, true)
	e.turn = (i + 1) % len(e.subs)
	return b, 0, nil
}

// working notes whether decode loop i has work, rather than waits for some.
func (e *Engine) working(i int, yes bool) {
	switch l := e.lanes[i]; {
	case yes && !l.working:
		e.stepping.Add(1)
	case !yes && l.working:
		e.stepping.Add(-1)
	}
	e.lanes[i].working = yes
}

// onTurn says whether model i may run while only one may: nothing runs, and no model before it in turn has work.
func (e *Engine) onTurn(i int) bool {
	for _, l := range e.lanes {
		if l.busy {
			return false
		}
	}
	for j := e.turn; j != i; j = (j + 1) % len(e.subs) {
		if e.subs[j].Available() > 0 {
			return false
		}
	}
	return true
}

// forward runs one step and carries out what follows from it. owed is a sleeping peer that was given all that there is to
// do and was not told: the caller goes on with it.
func (e *Engine) forward(i int, b *step.Batch) (owed lanes, err error) {
	start := e.now()
	res, err := e.cfg.Models[i].Backend.Forward(e.ctx, b)
	if err != nil {
		return 0, err
	}
	e.mu.Lock()
	now := e.now()
	e.cfg.Log.Step(now, b)
	l := e.lanes[i]
	if e.cfg.Host != nil && l.ended > 0 {
		e.cfg.Host(step.ModelID(i), start.Sub(l.ended))
	}
	l.ended = now
	if e.cfg.Stepped != nil {
		e.cfg.Stepped(b, start, now)
	}
	began := time.Now()
	eff, err := e.subs[i].Complete(now, res)
	if err != nil {
		e.mu.Unlock()
		return 0, err
	}
	l.busy = false
	if e.cfg.Sequences != nil {
		e.cfg.Sequences.stepped(b, res, eff)
	}
	posted := e.post(began, eff)
	heard := l.heard[:0]
	for _, c := range eff.Commit {
		s := e.live[c.Handle]
		e.cfg.Log.Commit(now, s.request.ID, c.Tokens)
		chunk := Chunk{At: now, Model: step.ModelID(i), Tokens: int(c.Tokens), Own: int(c.Own)}
		if e.cfg.Sequences != nil {
			chunk.IDs = e.cfg.Sequences.commit(c.Handle, c.Tokens)
		}
		s.push(chunk)
		heard = append(heard, s)
	}
	l.heard = heard
	for _, m := range eff.Send {
		if m.Kind == step.Resume {
			e.live[m.Handle].hops.Add(1)
		}
	}
	for _, d := range eff.Done {
		e.end(now, d)
	}
	if e.cfg.StepSync {
		e.wakeAll()
	}
	if e.subs[i].Available() == 0 && len(l.inbox) == 0 {
		owed = e.sleeper(posted)
	}
	e.mu.Unlock()
	// To wake a goroutine may take a system call, and who wakes wants the lock.
	e.announce(posted &^ owed)
	for _, s := range heard {
		poke(s.notify)
	}
	return owed, nil
}

// sleeper is one of a set of lanes, as a set, that no decode loop has; empty where each of them is at work.
func (e *Engine) sleeper(of lanes) lanes {
	for i, l := range e.lanes {
		if of&(1<<i) != 0 && !l.taken {
			return 1 << i
		}
	}
	return 0
}

// wakeAll has all decode loops that wait ask the core again.
func (e *Engine) wakeAll() {
	for range e.lanes {
		poke(e.kick)
	}
}

// cancelRequest ends a request whose client has gone.
func (e *Engine) cancelRequest(s *Stream) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil || e.live[s.handle] != s {
		return
	}
	s.gone = true
	e.cancelHere(e.now(), s)
}

// cancelHere asks every subserver: the one that holds the request ends it, now or with the step in flight; if it is on
// its way between two of them, the inter-model loop asks again when it arrives.
func (e *Engine) cancelHere(now clock.Instant, s *Stream) {
	for _, sub := range e.subs {
		eff := sub.Cancel(now, s.handle)
		if len(eff.Done) == 0 {
			continue
		}
		e.announce(e.post(time.Now(), eff))
		for _, d := range eff.Done {
			e.end(now, d)
		}
	}
}

// begin tells the router of a new request, and returns the model that runs its first step. Engine.mu is held.
func (e *Engine) begin(now clock.Instant, h step.Handle, r Request) (step.ModelID, error) {
	a := route.Arrival{At: now, Handle: h, ID: r.ID, Prompt: int32(r.Prompt), Output: int32(r.Max)}
	if e.cfg.Admit != nil {
		a.Score = e.cfg.Admit(h, r.ID, a.Prompt)
	}
	if e.follow == nil {
		return 0, nil
	}
	return e.follow.Begin(a)
}

// letGo tells the router that a request has ended. Engine.mu is held.
func (e *Engine) letGo(h step.Handle) {
	if e.follow != nil {
		e.follow.End(h)
	}
}

// end closes a request's stream and tells every subserver that one fewer is active.
func (e *Engine) end(now clock.Instant, d core.Done) {
	s := e.live[d.Handle]
	e.active--
	e.setActive(now)
	if s.stop != nil {
		s.stop()
	}
	e.letGo(d.Handle)
	err := d.Err
	if d.Status == core.Cancelled {
		err = ErrCancelled
	}
	if d.Status == core.Failed {
		e.cfg.Log.Failed(now, s.request.ID)
	} else {
		e.cfg.Log.Done(now, s.request.ID)
	}
	e.live[d.Handle] = nil
	s.end(now, err)
	e.release(d.Handle)
}

// setActive tells every subserver how many requests are active; a lower N can start a batch that waited.
func (e *Engine) setActive(now clock.Instant) {
	for _, s := range e.subs {
		s.Active(now, e.active)
	}
	e.wakeAll()
}

// release drops one hold on a handle; the last one frees it, and what the backends keep for it.
func (e *Engine) release(h step.Handle) {
	if e.refs[h]--; e.refs[h] > 0 {
		return
	}
	e.free = append(e.free, h)
	for i := range e.cfg.Models {
		if r, ok := e.cfg.Models[i].Backend.(backend.Releaser); ok {
			r.Release(h)
		}
	}
}
