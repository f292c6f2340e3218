package cpu

import (
	"runtime"
	"sync/atomic"

	"github.com/trbench/trbench/engine/backend/cpu/kernel"
)

const (
	// maxClaims bounds the claims of a task: where there are more parts, one claim is for several.
	maxClaims = 1 << 10
	// partBits is the bits of a task's parts in one word with its number, which the rest of them count for years.
	partBits = 20
	// spins is how often a worker looks for the next task before it sleeps: some 50 us, which covers the gaps between
	// the tasks of a step but not those between the steps of a quiet server.
	spins = 500
	// patience is how often a caller looks for the end of its task before it lets other goroutines run.
	patience = 200
)

// Pool is helpers that share the work of a forward pass with the goroutine that runs it. Several models may have one
// pool: the first to ask has the helpers until its task ends, and another does its task alone meanwhile. A task is cut
// into parts, claimed one by one by whoever is free, so that a helper that is late costs nothing. Each worker begins with
// its own share of them: tasks whose parts stand for the same tokens find these in the same core's cache.
//
// Cut a task only where a part takes a good part of a microsecond: handing parts out and waiting for the last one costs
// a few hundred nanoseconds.
type Pool struct {
	helpers int
	taken   atomic.Bool   // by a model, for one task
	current atomic.Uint64 // task number << partBits | parts
	done    atomic.Int32  // parts done
	task    func(worker, part int)
	claims  []claim
	parked  atomic.Int32 // helpers asleep, or about to be
	wake    chan struct{}
	closed  atomic.Bool
}

// claim is the number of the last task of which it has been taken; it has a cache line of its own.
type claim struct {
	atomic.Uint64
	_ [56]byte
}

// NewPool starts a pool that lets a forward pass run on workers cores, its own goroutine included; workers <= 0 is
// GOMAXPROCS. Close ends it.
func NewPool(workers int) *Pool {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	p := &Pool{helpers: workers - 1, claims: make([]claim, maxClaims), wake: make(chan struct{}, workers)}
	for i := range p.helpers {
		go p.help(i + 1)
	}
	return p
}

// Workers is the number of cores that a forward pass may use; 1 for a nil pool.
func (p *Pool) Workers() int {
	if p == nil {
		return 1
	}
	return p.helpers + 1
}

// Close ends the helpers. A pass in flight or a later one goes on without them.
func (p *Pool) Close() {
	p.closed.Store(true)
	for range p.helpers {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// run calls task for all parts and returns when the last one has ended. worker tells calls apart that may run at the
// same time: 0 is the caller, the others are below Workers.
func (p *Pool) run(parts int, task func(worker, part int)) {
	if p == nil || p.helpers == 0 || parts < 2 || parts >= 1<<partBits || !p.taken.CompareAndSwap(false, true) {
		for i := range parts {
			task(0, i)
		}
		return
	}
	p.task = task
	p.done.Store(0)
	now := (p.current.Load()>>partBits+1)<<partBits | uint64(parts)
	p.current.Store(now)
	for range min(int(p.parked.Load()), parts-1) {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	p.work(0, now)
	for i := 0; int(p.done.Load()) < parts; i++ {
		if i >= patience {
			runtime.Gosched()
		}
		kernel.Pause()
	}
	p.taken.Store(false)
}

// work does the parts of a task that nobody has claimed, the worker's own share first. A claim that succeeds keeps the
// task from ending, and so from being replaced, until the part is done; once a task has ended, none can succeed.
func (p *Pool) work(worker int, task uint64) {
	number, parts := task>>partBits, int(task&(1<<partBits-1))
	claims := min(parts, maxClaims)
	i := worker * claims / (p.helpers + 1)
	for range claims {
		c := &p.claims[i]
		if last := c.Load(); last < number && c.CompareAndSwap(last, number) {
			lo, hi := i*parts/claims, (i+1)*parts/claims
			for part := lo; part < hi; part++ {
				p.task(worker, part)
			}
			p.done.Add(int32(hi - lo))
		}
		if i++; i == claims {
			i = 0
		}
	}
}

// help is the loop of one helper.
func (p *Pool) help(worker int) {
	seen := uint64(0)
	work := func() bool {
		task := p.current.Load()
		if task == seen {
			return false
		}
		seen = task
		p.work(worker, task)
		return true
	}
	for !p.closed.Load() {
		for idle := 0; idle < spins; idle++ {
			if work() {
				idle = 0
				continue
			}
			kernel.Pause()
		}
		p.parked.Add(1)
		if !work() && !p.closed.Load() { // a task that came before parked was raised has not been announced
			<-p.wake
		}
		p.parked.Add(-1)
	}
}
