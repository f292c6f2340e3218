package cpu

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Every part of a task is done once, by a worker that no other part has at that time, before run returns; also while
// others use the pool, after its helpers have gone to sleep, and after Close.
func TestPoolDoesEveryPartOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		p := NewPool(workers)
		if p.Workers() != workers {
			t.Errorf("pool of %d has %d workers", workers, p.Workers())
		}
		try := func() {
			var callers sync.WaitGroup
			for range 3 {
				callers.Go(func() {
					for parts := range 42 {
						if parts == 41 {
							parts = 3*maxClaims + 7
						}
						done := make([]atomic.Int32, parts)
						busy := make([]atomic.Bool, workers)
						p.run(parts, func(worker, part int) {
							if busy[worker].Swap(true) {
								t.Errorf("worker %d has two parts at a time", worker)
							}
							done[part].Add(1)
							busy[worker].Store(false)
						})
						for i := range done {
							if n := done[i].Load(); n != 1 {
								t.Errorf("%d workers: part %d of %d is done %d times", workers, i, parts, n)
							}
						}
					}
				})
			}
			callers.Wait()
		}
		try()
		time.Sleep(2 * time.Millisecond) // the helpers go to sleep
		try()
		p.Close()
		try()
	}
}

// Close ends every helper, asleep or not, whether or not there was a task: synctest fails a test that leaves a goroutine.
func TestCloseEndsTheHelpers(t *testing.T) {
	for _, tasks := range []int{0, 1, 7} {
		for _, asleep := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				p := NewPool(4)
				for range tasks {
					p.run(3, func(_, _ int) {})
				}
				if asleep {
					synctest.Wait()
				}
				p.Close()
			})
		}
	}
}

func TestNoPoolIsOneWorker(t *testing.T) {
	var p *Pool
	n := 0
	p.run(3, func(worker, part int) {
		if worker != 0 || part != n {
			t.Errorf("worker %d, part %d; want 0, %d", worker, part, n)
		}
		n++
	})
	if n != 3 || p.Workers() != 1 {
		t.Errorf("%d parts done by %d workers, want 3 by 1", n, p.Workers())
	}
}

// BenchmarkFork is what it costs to hand out two empty parts and to wait for them.
func BenchmarkFork(b *testing.B) {
	p := NewPool(2)
	defer p.Close()
	task := func(worker, part int) {}
	for b.Loop() {
		p.run(2, task)
	}
}
