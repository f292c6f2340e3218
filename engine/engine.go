// Package engine runs the scheduler core on the wall clock: for each model an inter-model loop that takes requests from
// peers, as many decode loops, which schedule and execute for whichever model has work, and a client loop that admits
// requests and streams their tokens. Each loop goes at its own pace. Decisions are the core's; the loops only carry them.
//
// Read engine.go (what callers see), loops.go (the decode loops and what ends a request), then messages.go (between peers).
package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trbench/trbench/engine/backend"
	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
)

var (
	// ErrClosed is what a request gets whose engine has stopped.
	ErrClosed = errors.New("engine is closed")
	// ErrOverloaded is what a request gets when Config.MaxActive others are active: back-pressure instead of a queue
	// without bound.
	ErrOverloaded = errors.New("engine is overloaded")
	// ErrCancelled is what a request gets whose client has gone.
	ErrCancelled = errors.New("request cancelled")
)

// DefaultMaxActive bounds the active requests of an engine that sets no bound.
const DefaultMaxActive = 1 << 16

// Model is one model of the deployment.
type Model struct {
	Name     string
	Backend  backend.Backend
	Policy   core.Policy
	KVTokens int // the pool's size; 0 is unlimited
	// BlockTokens is what KV is given out in; 0 is core.DefaultBlockTokens.
	BlockTokens int
}

// block is the tokens of a KV block.
func (m *Model) block() int {
	if m.BlockTokens > 0 {
		return m.BlockTokens
	}
	return core.DefaultBlockTokens
}

// Config describes an engine.
type Config struct {
	Models []Model
	Router route.Router // nil for a single model; engines may share it, each takes a fresh one
	// Admit, if not nil, hears of each request before its first step, and returns the external router's score of its
	// prompt.
	Admit func(h step.Handle, id step.RequestID, prompt int32) float64
	// Sequences holds the requests' tokens for backends that compute; nil where only time passes.
	Sequences *Sequences
	// StepSync lets one model run at a time, in turn.
	StepSync bool
	// MaxActive bounds the active requests; 0 is DefaultMaxActive.
	MaxActive int
	// Cores is how many cores the steps of one model keep busy; 0 is one.
	Cores int
	// Now is the engine's clock; nil is the time since New.
	Now func() clock.Instant
	// Log, if not nil, takes the event log.
	Log *core.EventLog
	// Switched, if not nil, is told what each handover cost before the peer's scheduler had it.
	Switched func(Handover)
	// Host, if not nil, is told, just before Stepped, how long the decode loop took from the end of its step before to the
	// start of this one, where it did not wait for work: what the host spends on a step.
	Host func(m step.ModelID, d time.Duration)
	// Stepped, if not nil, is told of each completed step; the batch must not be kept. Calls come one at a time.
	Stepped func(b *step.Batch, start, end clock.Instant)
	// Settle, if not nil, is called before a decode loop of model i decides, and returns when everything stamped with this
	// Instant has been taken in. Tests use it to make ties fall as they do in the simulator.
	Settle func(i int)
}

// Handover is what a change of model cost before the peer's scheduler had the request.
type Handover struct {
	ID        step.RequestID
	Enqueue   time.Duration // the sender's work, from the end of its step to the peers' inboxes, by the requests it hands over
	Transport time.Duration // from then, the sender's work on the others included, to the peer's scheduler
	To        step.ModelID
	Woke      bool // the peer slept, having no work, and this is the first request that it was woken for
	Beside    bool // another model than the peer had work meanwhile
}

// Request is what a client sends.
type Request struct {
	ID     step.RequestID
	Prompt int // tokens
	Max    int // tokens to write
	// Tokens are the prompt's ids, Prompt of them, for an engine with Sequences.
	Tokens []int32
}

// Engine serves requests until Close.
type Engine struct {
	cfg    Config
	ctx    context.Context
	cancel context.CancelCauseFunc
	loops  sync.WaitGroup
	now    func() clock.Instant
	cores  int           // as many decode loops at work leave no core to others
	kick   chan struct{} // something has changed: a decode loop that waits is to ask the core again; a place for each of them
	// stepping counts the models at work.
	stepping atomic.Int32

	mu     sync.Mutex // guards all below: decisions take microseconds, steps milliseconds
	subs   []*core.Subserver
	lanes  []*lane
	live   []*Stream // by handle
	refs   []int     // subservers that have not let go of a handle yet
	free   []step.Handle
	active int
	turn   int // StepSync: the model to ask first
	err    error
	router route.Router
	follow route.Follower // router, if it follows requests
	let    func()         // lets go of what the router holds
	host   *host          // nil unless the router follows requests
}

// New starts an engine.
func New(c Config) (*Engine, error) {
	if len(c.Models) == 0 || len(c.Models) > step.MaxModels {
		return nil, fmt.Errorf("engine: %d models, want 1 to %d", len(c.Models), step.MaxModels)
	}
	for _, m := range c.Models {
		if m.KVTokens > 0 && m.KVTokens < m.block() {
			return nil, fmt.Errorf("engine: model %s: KV pool of %d tokens, want at least a block of %d", m.Name, m.KVTokens, m.block())
		}
	}
	if c.MaxActive <= 0 {
		c.MaxActive = DefaultMaxActive
	}
	e := &Engine{cfg: c, now: c.Now, cores: runtime.GOMAXPROCS(0) / max(1, c.Cores), kick: make(chan struct{}, len(c.Models))}
	if e.now == nil {
		begin := time.Now()
		e.now = func() clock.Instant { return clock.Instant(time.Since(begin)) }
	}
	e.ctx, e.cancel = context.WithCancelCause(context.Background())
	e.router, e.let = route.Fresh(c.Router)
	if e.follow, _ = e.router.(route.Follower); e.follow != nil {
		e.host = newHost()
	}
	for i, m := range c.Models {
		e.subs = append(e.subs, core.New(core.Config{
			Model: step.ModelID(i), Policy: m.Policy, KVBlocks: int32(min(m.KVTokens/m.block(), math.MaxInt32)), BlockTokens: int32(m.block()),
			Router: e.router, Track: c.Sequences != nil,
		}))
		e.lanes = append(e.lanes, newLane())
	}
	for i := range e.lanes {
		e.loops.Add(2)
		go e.decodeLoop()
		go e.interModelLoop(i)
	}
	return e, nil
}

// Now is the engine's clock.
func (e *Engine) Now() clock.Instant { return e.now() }

// Close stops the loops and fails what is still active with ErrClosed, or with the error that stopped the engine.
func (e *Engine) Close() error {
	e.fail(ErrClosed)
	e.loops.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.host.do(e.let)
	e.host.close()
	e.let, e.follow, e.host = func() {}, nil, nil
	if errors.Is(e.err, ErrClosed) {
		return nil
	}
	return e.err
}

// fail ends the engine and everything active.
func (e *Engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return
	}
	e.err = err
	e.cancel(err)
	for _, s := range e.live {
		if s != nil {
			s.end(e.now(), err)
		}
	}
}

// Submit admits a request and returns its stream. When ctx ends, the request is cancelled.
func (e *Engine) Submit(ctx context.Context, r Request) (*Stream, error) {
	if e.cfg.Sequences != nil && len(r.Tokens) != r.Prompt {
		return nil, fmt.Errorf("engine: request %d: %d token ids for a prompt of %d", r.ID, len(r.Tokens), r.Prompt)
	}
	s := &Stream{request: r, notify: make(chan struct{}, 1)}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return nil, e.err
	}
	if e.active >= e.cfg.MaxActive {
		return nil, fmt.Errorf("%w: %d requests are active", ErrOverloaded, e.active)
	}
	now := e.now()
	h := step.Handle(len(e.live))
	if n := len(e.free); n > 0 {
		h = e.free[n-1]
		e.free = e.free[:n-1]
	} else {
		e.live = append(e.live, nil)
		e.refs = append(e.refs, 0)
	}
	if e.cfg.Sequences != nil {
		e.cfg.Sequences.begin(h, r.Tokens)
	}
	var first step.ModelID
	var err error
	e.host.do(func() { first, err = e.begin(now, h, r) })
	if err == nil {
		err = e.subs[first].Submit(now, core.Request{Handle: h, ID: r.ID, Prompt: int32(r.Prompt), Max: int32(r.Max)})
	}
	if err != nil {
		e.host.do(func() { e.letGo(h) })
		e.free = append(e.free, h)
		return nil, err
	}
	s.handle, s.Arrival = h, now
	e.live[h], e.refs[h] = s, 1
	e.active++
	e.setActive(now)
	poke(e.kick)
	if ctx.Done() != nil {
		s.stop = context.AfterFunc(ctx, func() { e.cancelRequest(s) })
	}
	return s, nil
}

// Active is the number of active requests.
func (e *Engine) Active() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.active
}

// Idle reports an error unless every request has ended and all KV is free: what tests ask at the end.
func (e *Engine) Idle() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.active != 0 {
		return fmt.Errorf("engine: %d requests are active", e.active)
	}
	for _, s := range e.subs {
		if err := s.Idle(); err != nil {
			return err
		}
	}
	return nil
}

// Stats is what each subserver did.
func (e *Engine) Stats() []core.Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	var stats []core.Stats
	for _, s := range e.subs {
		stats = append(stats, s.Stats())
	}
	return stats
}
