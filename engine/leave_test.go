package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/backend/cpu"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/weights"
)

// tinyModel has random weights and takes microseconds a token.
func tinyModel(layers, hidden int, seed uint64) *weights.Model {
	c := weights.Config{
		Architecture: weights.Llama, Layers: layers, Hidden: hidden, Heads: 2, KVHeads: 1, HeadDim: 16, Intermediate: 2 * hidden,
		Vocab: 64, MaxPositions: 128, RopeTheta: 10_000, RopeScaling: weights.RopeScaling{Kind: weights.RopePlain, Factor: 1},
		NormEps: 1e-5, Tied: true, EOS: []int32{},
	}
	r := rand.New(rand.NewPCG(seed, 1))
	tensor := func(mean, deviation float64, shape ...int) weights.Tensor {
		n := 1
		for _, k := range shape {
			n *= k
		}
		var data []byte
		for range n {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(mean+deviation*r.NormFloat64())))
		}
		return weights.Tensor{Name: "random", DType: weights.F32, Shape: shape, Data: data}
	}
	matrix := func(out, in int) weights.Tensor { return tensor(0, 1/math.Sqrt(float64(in)), out, in) }
	m := &weights.Model{Config: c, Embedding: tensor(0, 1, c.Vocab, hidden), Norm: tensor(1, 0, hidden)}
	for range layers {
		m.Layers = append(m.Layers, weights.Layer{
			AttnNorm: tensor(1, 0, hidden), MLPNorm: tensor(1, 0, hidden), Wq: matrix(32, hidden), Wk: matrix(16, hidden), Wv: matrix(16, hidden),
			Wo: matrix(hidden, 32), Gate: matrix(2*hidden, hidden), Up: matrix(2*hidden, hidden), Down: matrix(hidden, 2*hidden),
		})
	}
	m.Head = m.Embedding
	return m
}

// openFiles is the number of open files, -1 where the system does not say.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(entries)
}

// Three in ten clients of real models leave at a random point, before the first step, in one, or between two: the
// others get all their tokens, and no KV block of the accounts or of the backends, no goroutine and no file is left.
func TestClientsThatLeaveRealModels(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 1500
	}
	goroutines, files := runtime.NumGoroutine(), openFiles()
	seqs, proposals := engine.NewSequences(), cpu.NewProposals(route.MaxDraft)
	r, err := route.New("specdec", route.Options{Models: 2, Draft: 2})
	if err != nil {
		t.Fatal(err)
	}
	c := engine.Config{Router: r, Sequences: seqs}
	var backends []*cpu.Model
	for i := range 2 {
		m, err := cpu.New(tinyModel(1+i, 16, uint64(i)), cpu.Options{Tokens: seqs.Tokens, Proposals: proposals, BlockTokens: 16})
		if err != nil {
			t.Fatal(err)
		}
		backends = append(backends, m)
		// Short of KV: the requests at once need about twice as much.
		c.Models = append(c.Models, engine.Model{Name: "tiny", Backend: m, KVTokens: 400, BlockTokens: m.BlockTokens(), Policy: core.Policy{TokenBudget: 64}})
	}
	e, err := engine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	var next, cancelled atomic.Int64
	var clients sync.WaitGroup
	for w := range 32 {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 5))
			for {
				id := next.Add(1) - 1
				if id >= int64(n) {
					return
				}
				leaves := rng.IntN(10) < 3
				q := engine.Request{ID: step.RequestID(id), Prompt: 1 + rng.IntN(12), Max: 1 + rng.IntN(12)}
				for range q.Prompt {
					q.Tokens = append(q.Tokens, int32(rng.IntN(64)))
				}
				ctx, cancel := context.WithCancel(context.Background())
				after := -1 // tokens read before the client leaves
				if leaves {
					if after = rng.IntN(q.Max); after == 0 && rng.IntN(2) == 0 { // now and then, on its own clock
						time.AfterFunc(time.Duration(rng.IntN(2000))*time.Microsecond, cancel)
						after = q.Max
					}
				}
				s, err := e.Submit(ctx, q)
				if err != nil {
					t.Errorf("request %d: %v", id, err)
					cancel()
					return
				}
				tokens := 0
				for {
					if tokens == after {
						cancel()
					}
					chunk, ok := s.Next(context.Background())
					if !ok {
						break
					}
					tokens += chunk.Tokens
					if after >= 0 && tokens > after {
						cancel()
					}
				}
				switch err := s.Err(); {
				case errors.Is(err, engine.ErrCancelled) && leaves && tokens < q.Max:
					cancelled.Add(1)
				case err != nil || tokens != q.Max:
					t.Errorf("request %d: %d of %d tokens, %v", id, tokens, q.Max, err)
				}
				cancel()
			}
		})
	}
	clients.Wait()
	var idle error
	for range 2000 { // the peers of the last requests may not have heard of their ends
		if idle = e.Idle(); idle == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if idle != nil {
		t.Error(idle)
	}
	stats := e.Stats()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	for i, m := range backends {
		if held := m.KVTokens(); held != 0 {
			t.Errorf("model %d holds KV for %d tokens", i, held)
		}
	}
	if got := cancelled.Load(); got < int64(n/20) { // the others had ended before their clients were heard
		t.Errorf("only %d of %d requests were cancelled in time", got, n)
	}
	if stats[0].Recompute+stats[1].Recompute == 0 {
		t.Error("KV was never short: the test shows nothing about pressure")
	}
	for range 1000 {
		if runtime.NumGoroutine() <= goroutines {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if after := runtime.NumGoroutine(); after > goroutines {
		t.Errorf("%d goroutines before, %d after", goroutines, after)
	}
	if after := openFiles(); after > files {
		t.Errorf("%d files open before, %d after", files, after)
	}
}
