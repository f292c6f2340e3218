package cpu

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/trbench/trbench/engine/backend/cpu/kernel"
)

const (
	// maxParts bounds the parts of a task: claim has 16 bits for them.
	maxParts = 1<<16 - 1
	// spins is how often a worker looks for the next task before it sleeps: some 50 us, which covers the gaps between
	// the tasks of a step but not those between the steps of a quiet server.
	spins = 500
	// patience is how often a caller looks for the end of its task before it lets other goroutines run.
	patience = 200
)

// Pool is helpers that share the work of a forward pass with the goroutine that runs it. Several models may have one
// pool: the first to ask has the helpers until its task ends, and another does its task alone meanwhile. A task is cut
// into parts, claimed one by one by whoever is free, so that a helper that is late costs nothing.
//
// Cut a task only where a part takes a good part of a microsecond: handing parts out and waiting for the last one costs
// a few hundred nanoseconds.
type Pool struct {
	helpers int
	taken   atomic.Bool   // by a model, for one task
	claim   atomic.Uint64 // task number << 32 | parts << 16 | parts claimed
	done    atomic.Int32  // parts done
	task    func(worker, part int)
	parked  atomic.Int32 // helpers asleep, or about to be
	wake    chan struct{}
	closed  atomic.Bool
}

// NewPool starts a pool that lets a forward pass run on workers cores, its own goroutine included; workers <= 0 is
// GOMAXPROCS. Close ends it.
func NewPool(workers int) *Pool {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	p := &Pool{helpers: workers - 1, wake: make(chan struct{}, workers)}
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
	if parts > maxParts {
		panic(fmt.Sprintf("cpu: task of %d parts", parts))
	}
	if p == nil || p.helpers == 0 || parts < 2 || !p.taken.CompareAndSwap(false, true) {
		for i := range parts {
			task(0, i)
		}
		return
	}
	p.task = task
	p.done.Store(0)
	number := p.claim.Load()>>32 + 1
	p.claim.Store(number<<32 | uint64(parts)<<16)
	for range min(int(p.parked.Load()), parts-1) {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	for p.part(0) {
	}
	for i := 0; int(p.done.Load()) < parts; i++ {
		if i >= patience {
			runtime.Gosched()
		}
		kernel.Pause()
	}
	p.taken.Store(false)
}

// part claims a part of the task at hand and does it. A claim that succeeds keeps the task from ending, and so from
// being replaced, until the part is done.
func (p *Pool) part(worker int) bool {
	for {
		c := p.claim.Load()
		next, parts := c&0xffff, c>>16&0xffff
		if next >= parts {
			return false
		}
		if p.claim.CompareAndSwap(c, c+1) {
			p.task(worker, int(next))
			p.done.Add(1)
			return true
		}
	}
}

// help is the loop of one helper.
func (p *Pool) help(worker int) {
	for !p.closed.Load() {
		idle := 0
		for ; idle < spins; idle++ {
			if p.part(worker) {
				idle = 0
				continue
			}
			kernel.Pause()
		}
		p.parked.Add(1)
		if !p.part(worker) && !p.closed.Load() { // a task that came before parked was raised has not been announced
			<-p.wake
		}
		p.parked.Add(-1)
	}
}
