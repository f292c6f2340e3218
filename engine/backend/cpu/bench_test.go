package cpu

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/trbench/trbench/engine/backend/cpu/kernel"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/weights"
)

// benchVariable names the environment variable with the folder of a model to take in place of the benchmarks' own.
const benchVariable = "TRBENCH_BENCH_MODEL"

type benchmark struct {
	name string
	open func() *weights.Model
}

// benchModel runs f on the models of the benchmarks, on one and on two cores: the demo pair, and random weights in the
// shape of a small Llama. Set SIMDVariable for another level than the machine's best.
func benchModel(b *testing.B, f func(b *testing.B, w *weights.Model, pool *Pool)) {
	models := []benchmark{
		{"gsm-s", func() *weights.Model { return openWeights(b, "models/gsm-pair/gsm-s") }},
		{"gsm-l", func() *weights.Model { return openWeights(b, "models/gsm-pair/gsm-l") }},
		{"15M-f32", func() *weights.Model { return randomModel(llama15M, weights.F32, 1) }},
		{"15M-bf16", func() *weights.Model { return randomModel(llama15M, weights.BF16, 1) }},
	}
	if dir := os.Getenv(benchVariable); dir != "" {
		models = []benchmark{{filepath.Base(dir), func() *weights.Model {
			w, err := weights.Open(dir)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { w.Close() })
			return w
		}}}
	}
	for _, m := range models {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("model=%s/workers=%d", m.name, workers), func(b *testing.B) {
				pool := NewPool(workers)
				defer pool.Close()
				f(b, m.open(), pool)
			})
		}
	}
}

// BenchmarkDecode is one step of a batch whose contexts are 128 to 383 tokens. read is the speed at which weights are
// read, as a share of Bandwidth where a whole machine is used.
func BenchmarkDecode(b *testing.B) {
	bandwidth := Bandwidth()
	for _, batch := range []int{1, 16} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			benchModel(b, func(b *testing.B, w *weights.Model, pool *Pool) {
				const least, most = 128, 384
				m := newRig(b, w, Options{Pool: pool}, batch)
				rows := make([]feed, batch)
				for h := range rows {
					m.tokens[h] = randomTokens(uint64(h), most, w.Config.Vocab)
					rows[h] = feed{handle: step.Handle(h), upto: least}
				}
				m.run(rows...)
				steps := make([]*step.Batch, most-least)
				for n := range steps {
					for h := range rows {
						rows[h] = feed{handle: step.Handle(h), from: least + n, upto: least + n + 1, sample: true}
					}
					steps[n] = m.batch(rows...)
				}
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					m.forward(steps[n])
					n = (n + 1) % len(steps)
				}
				seconds := b.Elapsed().Seconds() / float64(b.N)
				b.ReportMetric(float64(batch)/seconds, "tok/s")
				b.ReportMetric(float64(m.WeightBytes())/seconds/1e9, "GB/s")
				b.ReportMetric(100*float64(m.WeightBytes())/seconds/bandwidth, "%bandwidth")
			})
		})
	}
}

// BenchmarkPrefill is one prompt of 512 tokens.
func BenchmarkPrefill(b *testing.B) {
	benchModel(b, func(b *testing.B, w *weights.Model, pool *Pool) {
		const n = 512
		m := newRig(b, w, Options{Pool: pool}, 1)
		m.tokens[0] = randomTokens(1, n, w.Config.Vocab)
		step := m.batch(feed{handle: 0, upto: n, sample: true})
		for b.Loop() {
			m.forward(step)
		}
		seconds := b.Elapsed().Seconds() / float64(b.N)
		matrices := 0
		for i := range m.layers {
			l := &m.layers[i]
			for _, w := range []*kernel.Matrix{l.qkv, l.out, l.gateUp, l.down} {
				matrices += w.Outputs() * w.Inputs()
			}
		}
		b.ReportMetric(n/seconds, "tok/s")
		b.ReportMetric(2*n*float64(matrices)/seconds/1e9, "GFLOP/s")
	})
}
