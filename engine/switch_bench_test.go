package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
)

// hopper is a backend whose steps take no time; every score sends the request to the large model.
type hopper struct{ res step.Result }

func (h *hopper) Forward(_ context.Context, b *step.Batch) (*step.Result, error) {
	h.res.Reset(b.Want, b.Len(), b.TopK, b.Drafted())
	for i := range h.res.Entropy {
		h.res.Entropy[i] = 10
	}
	return &h.res, nil
}

// BenchmarkSwitch is a handover in process, with n requests at a time and nothing else to do: what the scheduler, the
// loops and the operating system take of it. enqueue is the sender's part, whose bar is 1 us at the median and 10 us at
// P99; transport ends when the peer's scheduler has the request, and holds a thread's wake-up.
func BenchmarkSwitch(b *testing.B) {
	for _, n := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			r, err := route.New("entropy", route.Options{Models: 2})
			if err != nil {
				b.Fatal(err)
			}
			var mu sync.Mutex
			var enqueue, transport []time.Duration
			e, err := engine.New(engine.Config{
				Models: []engine.Model{{Name: "small", Backend: &hopper{}}, {Name: "large", Backend: &hopper{}}}, Router: r,
				Switched: func(h engine.Handover) {
					mu.Lock()
					defer mu.Unlock()
					enqueue, transport = append(enqueue, h.Enqueue), append(transport, h.Transport)
				},
			})
			if err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			var clients sync.WaitGroup
			for w := range n {
				clients.Go(func() {
					s, err := e.Submit(context.Background(), engine.Request{ID: step.RequestID(w), Prompt: 1, Max: 1 + b.N/n})
					if err != nil {
						b.Error(err)
						return
					}
					for ok := true; ok; {
						_, ok = s.Next(context.Background())
					}
				})
			}
			clients.Wait()
			b.StopTimer()
			if err := e.Close(); err != nil {
				b.Fatal(err)
			}
			report := func(name string, d []time.Duration) {
				slices.Sort(d)
				if len(d) > 0 {
					b.ReportMetric(float64(d[len(d)/2])/1e3, name+"-p50-us")
					b.ReportMetric(float64(d[len(d)*99/100])/1e3, name+"-p99-us")
				}
			}
			report("enqueue", enqueue)
			report("transport", transport)
		})
	}
}
