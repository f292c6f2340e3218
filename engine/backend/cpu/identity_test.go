package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/trbench/trbench/engine/backend/cpu/kernel"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/weights"
	"pgregory.net/rapid"
)

// randomTokens are n ids below vocab.
func randomTokens(seed uint64, n, vocab int) []int32 {
	r := rand.New(rand.NewPCG(seed, 2))
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = r.Int32N(int32(vocab))
	}
	return ids
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// Whatever the batch, the chunks, the block size and the workers: each position's logits are those of its text alone.
// The schedule also rolls requests back, and releases them and takes their handles for others.
func TestLogitsDependOnTheTextAlone(t *testing.T) {
	const requests = 17
	for _, model := range []string{"models/gsm-pair/gsm-s", "golden/rand-llama31"} {
		t.Run(model, func(t *testing.T) {
			w := openWeights(t, model)
			forLevels(t, func(t *testing.T, simd string) {
				texts := make([][]int32, requests)
				alone := make([][][]float32, requests)
				single := newRig(t, w, Options{SIMD: simd}, requests)
				for i := range texts {
					texts[i] = randomTokens(uint64(i), 3+11*i%60, w.Config.Vocab)
					single.tokens[i] = texts[i]
					alone[i] = single.all(step.Handle(i))
				}
				pool := NewPool(2)
				defer pool.Close()
				if simd == kernel.Generic.String() {
					texts = texts[:2] // plain Go is slow
				}
				rapid.Check(t, func(rt *rapid.T) { schedule(t, rt, w, Options{SIMD: simd, Pool: pool}, texts, alone) })
			})
		})
	}
}

// schedule feeds the texts in steps as rt draws them, and compares the logits with those of each text alone.
func schedule(t *testing.T, rt *rapid.T, w *weights.Model, o Options, texts [][]int32, alone [][][]float32) {
	o.BlockTokens = rapid.SampledFrom([]int{1, 3, 7, 16, 21, 64}).Draw(rt, "block")
	if rapid.Bool().Draw(rt, "one worker") {
		o.Pool = nil
	}
	b := newRig(t, w, o, len(texts))
	copy(b.tokens, texts)
	kv := make([]int, len(texts))
	for range 8 {
		var rows []feed
		for h := range texts {
			n := len(texts[h])
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0, 1:
				continue // it waits
			case 2:
				b.Release(step.Handle(h))
				kv[h] = 0
			case 3:
				kv[h] = rapid.IntRange(0, min(kv[h], n-1)).Draw(rt, "rolled back to")
			}
			if kv[h] == n {
				continue
			}
			most := n
			if rapid.Bool().Draw(rt, "decode") {
				most = kv[h] + 1
			}
			upto := rapid.IntRange(kv[h]+1, most).Draw(rt, "upto")
			verify := rapid.IntRange(0, upto-kv[h]-1).Draw(rt, "verify")
			sample := verify > 0 || rapid.Bool().Draw(rt, "sample")
			rows = append(rows, feed{step.Handle(h), kv[h], upto, verify, sample})
			kv[h] = upto
		}
		if len(rows) == 0 {
			continue
		}
		b.run(rows...)
		for i := range rows {
			r := &b.plan.rows[i]
			for k := range r.wanted {
				pos := len(r.known) - r.wanted + k
				if !sameBits(b.logits(r.outputs+k), alone[rows[i].handle][pos]) {
					rt.Fatalf("request %d: logits at position %d differ from those of its text alone", rows[i].handle, pos)
				}
			}
		}
	}
	for h := range texts {
		b.Release(step.Handle(h))
	}
	if n := b.KVTokens(); n != 0 {
		rt.Fatalf("KV has room for %d tokens in use after all requests have ended", n)
	}
}

// A long prompt takes several chunks, and work large enough to be shared; one batch mixes it with decodes.
func TestMixedBatchOnTwoWorkersIsTheSame(t *testing.T) {
	w := openWeights(t, "models/gsm-pair/gsm-l")
	for _, l := range kernel.Levels()[1:] {
		t.Run(l.String(), func(t *testing.T) {
			var want [][]float32
			for workers := 1; workers <= 3; workers++ {
				for _, block := range []int{64, 13}[:1+workers%2] {
					pool := NewPool(workers)
					b := newRig(t, w, Options{SIMD: l.String(), Pool: pool, BlockTokens: block}, 17)
					var rows []feed
					for h := range b.tokens {
						n := 20 + h
						if h == 9 {
							n = 2*chunkTokens + 5
						}
						b.tokens[h] = randomTokens(uint64(h), n, w.Config.Vocab)
						if h != 9 {
							b.run(feed{handle: step.Handle(h), upto: n - 1})
							rows = append(rows, feed{handle: step.Handle(h), from: n - 1, upto: n, sample: true})
							continue
						}
						rows = append(rows, feed{handle: step.Handle(h), upto: n, sample: true})
					}
					b.run(rows...)
					pool.Close()
					for i := range rows {
						got := b.Logits(i)
						if len(want) < len(rows) {
							want = append(want, slices.Clone(got))
						} else if !sameBits(got, want[i]) {
							t.Fatalf("%d workers, blocks of %d: row %d differs", workers, block, i)
						}
					}
				}
			}
		})
	}
}

// The AVX2 and AVX-512 kernels add in the same order, so the texts of a run don't depend on which machine of the two
// kinds it is on.
func TestSIMDLevelsAgree(t *testing.T) {
	if len(kernel.Levels()) < 3 {
		t.Skip("needs AVX2 and AVX-512")
	}
	w := openWeights(t, "models/gsm-pair/gsm-s")
	text := randomTokens(1, 100, w.Config.Vocab)
	var all [2][][]float32
	for i, simd := range []string{"avx2", "avx512"} {
		b := newRig(t, w, Options{SIMD: simd}, 1)
		b.tokens[0] = text
		all[i] = b.all(0)
	}
	for pos := range text {
		if !sameBits(all[0][pos], all[1][pos]) {
			t.Fatalf("logits at position %d differ", pos)
		}
	}
}

// Two models of an engine step at the same time, on one pool, while a third goroutine releases requests that have ended.
func TestModelsStepAtTheSameTime(t *testing.T) {
	pool := NewPool(3)
	defer pool.Close()
	p := NewProposals(4)
	w := openWeights(t, "models/gsm-pair/gsm-s")
	const requests, steps = 4, 30
	var models [2]*rig
	for i := range models {
		models[i] = newRig(t, w, Options{Pool: pool, Proposals: p}, 2*requests)
		for h := range models[i].tokens {
			models[i].tokens[h] = randomTokens(uint64(h), 70, w.Config.Vocab)
		}
	}
	var logits [2][][]float32
	var running, releasing sync.WaitGroup
	ended := make(chan struct{})
	for i, m := range models {
		for h := range requests {
			m.run(feed{handle: step.Handle(requests + h), upto: 20, sample: true})
		}
		running.Go(func() {
			from := 0
			for n := range steps {
				var rows []feed
				for h := range requests {
					rows = append(rows, feed{handle: step.Handle(h), from: from, upto: 40 + n, sample: true})
				}
				from = 40 + n
				b := m.batch(rows...)
				b.Model = step.ModelID(i)
				if _, err := m.Forward(t.Context(), b); err != nil {
					t.Error(err)
					return
				}
				logits[i] = append(logits[i], slices.Clone(m.Logits(requests-1)))
			}
		})
		releasing.Go(func() {
			for h := 0; ; h++ {
				select {
				case <-ended:
					return
				default:
					m.Release(step.Handle(requests + h%requests))
				}
			}
		})
	}
	running.Wait()
	close(ended)
	releasing.Wait()
	for n := range steps {
		if !sameBits(logits[0][n], logits[1][n]) {
			t.Fatalf("step %d: two models of the same weights differ", n)
		}
	}
}
