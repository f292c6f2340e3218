package engine

// host runs functions on a goroutine of its own, one at a time. Routing programs are coroutines, and a coroutine must
// not be resumed by a goroutine whose lock to its OS thread differs from that of the one that made it. Decode loops are
// the engine's and locked to none, but callers may be anything: what makes coroutines or ends them on a caller's behalf
// runs here. A step never comes here, since it would have to wait for a processor. The methods of nil run functions
// where they are called.
type host struct {
	work chan func()
	did  chan struct{}
	over chan struct{}
}

func newHost() *host {
	h := &host{work: make(chan func()), did: make(chan struct{}), over: make(chan struct{})}
	go func() {
		defer close(h.over)
		for f := range h.work {
			f()
			h.did <- struct{}{}
		}
	}()
	return h
}

// do runs f and returns when it has.
func (h *host) do(f func()) {
	if h == nil {
		f()
		return
	}
	h.work <- f
	<-h.did
}

// close ends the goroutine.
func (h *host) close() {
	if h != nil {
		close(h.work)
		<-h.over
	}
}
