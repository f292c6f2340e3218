package engine

import (
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
)

// host returns a fresh router for one engine. One that follows requests runs programs as coroutines, and a coroutine
// must not be resumed by a goroutine whose lock to its OS thread differs from that of the one that made it. The
// engine's callers and its decode loops, whose backends may lock them, are any of both: so such a router runs on a
// goroutine of its own, which is locked to none. A step pays for that once, whatever its rows.
func host(r route.Router) (hosted route.Router, done func()) {
	r, done = route.Fresh(r)
	f, ok := r.(route.Follower)
	if !ok {
		return r, done
	}
	h := &hostedRouter{Follower: f, work: make(chan func()), did: make(chan struct{}), over: make(chan struct{})}
	go h.loop()
	hosted = h
	if d, ok := r.(route.Drafter); ok && d.Drafts() {
		hosted = &hostedDrafter{h}
	}
	return hosted, func() {
		h.Close()
		close(h.work)
		<-h.over
	}
}

// hostedRouter runs everything that may resume a coroutine on one goroutine. Engine.mu is held by its callers, so they
// come one at a time.
type hostedRouter struct {
	route.Follower
	work chan func()
	did  chan struct{}
	over chan struct{}
}

// hostedDrafter is a hosted router that drafts.
type hostedDrafter struct{ *hostedRouter }

// Drafts implements route.Drafter.
func (*hostedDrafter) Drafts() bool { return true }

func (h *hostedRouter) loop() {
	defer close(h.over)
	for f := range h.work {
		f()
		h.did <- struct{}{}
	}
}

func (h *hostedRouter) do(f func()) {
	h.work <- f
	<-h.did
}

// Reads implements route.Reader.
func (h *hostedRouter) Reads() (step.Columns, int) { return route.Reads(h.Follower) }

// Route implements route.Router.
func (h *hostedRouter) Route(m step.ModelID, b *step.Batch, res *step.Result, mv *route.Moves) {
	h.do(func() { h.Follower.Route(m, b, res, mv) })
}

// Begin implements route.Follower.
func (h *hostedRouter) Begin(a route.Arrival) (first step.ModelID, err error) {
	h.do(func() { first, err = h.Follower.Begin(a) })
	return first, err
}

// End implements route.Follower.
func (h *hostedRouter) End(handle step.Handle) { h.do(func() { h.Follower.End(handle) }) }

// Close implements route.Follower.
func (h *hostedRouter) Close() { h.do(h.Follower.Close) }
