package route_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// rows is a batch of n rows on model 0, as core makes it.
func rows(n int) *step.Batch {
	b := &step.Batch{}
	for i := range n {
		b.Handle = append(b.Handle, step.Handle(i))
		b.ID = append(b.ID, step.RequestID(i))
		b.Pos = append(b.Pos, 100)
		b.Feed = append(b.Feed, 1)
		b.Verify = append(b.Verify, 0)
		b.Sample = append(b.Sample, true)
	}
	return b
}

// A step of a program: two switches between coroutines, and no allocation.
func BenchmarkStep(b *testing.B) {
	plain := func(r *route.Request) error {
		for !r.Done() {
			t, err := r.Decode(0)
			if err != nil {
				return err
			}
			if t.Score > .5 {
				r.Drop(1)
			}
		}
		return nil
	}
	while := func(r *route.Request) error {
		_, err := r.DecodeWhile(0, func(t route.Token) bool { return t.Score <= .5 })
		return err
	}
	for _, c := range []struct {
		name    string
		program route.Program
	}{{"Decode", plain}, {"DecodeWhile", while}} {
		for _, n := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/rows=%d", c.name, n), func(b *testing.B) {
				r := route.NewRunner(route.Spec{Name: "bench", Program: c.program, Models: 2, Rules: []signal.Rule{{Name: "score", Hi: 1, Threshold: .5}}})
				defer r.Close()
				for i := range n {
					if _, err := r.Begin(route.Arrival{Handle: step.Handle(i), Prompt: 1, Output: 1 << 30}); err != nil {
						b.Fatal(err)
					}
				}
				batch, res, mv := rows(n), &step.Result{Signal: make([]float64, n)}, &route.Moves{}
				b.ReportAllocs()
				for b.Loop() {
					mv.Resize(n, true)
					r.Route(0, batch, res, mv)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
			})
		}
	}
}

// A live program: its coroutine's stack and its request.
func BenchmarkLive(b *testing.B) {
	const n = 100000
	for b.Loop() {
		before := memory()
		r := route.NewRunner(route.Spec{Name: "bench", Models: 2, Program: route.Cascade(.5)})
		for i := range n {
			if _, err := r.Begin(route.Arrival{Handle: step.Handle(i), Prompt: 1, Output: 100}); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(memory()-before)/n, "B/program")
		r.Close()
	}
}

func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.StackInuse + m.HeapInuse
}
