package markov

import (
	"fmt"
	"testing"
	"time"
)

// affine returns the step times base + slope b.
func affine(n int, base, slope time.Duration) []time.Duration {
	row := make([]time.Duration, n)
	for b := range row {
		row[b] = base + time.Duration(b+1)*slope
	}
	return row
}

// paperSteps are the step times of the paper's appendix D.
func paperSteps() [][]time.Duration { return Fixed(6*time.Millisecond, 27900*time.Microsecond) }

// growing is a pair whose steps lengthen with the batch: 6.0 + .1 b and 27.9 + .4 b ms.
func growing(p float64, n int) Model {
	return Model{R2R(p), [][]time.Duration{
		affine(n, 6*time.Millisecond, 100*time.Microsecond),
		affine(n, 27900*time.Microsecond, 400*time.Microsecond),
	}}
}

// three is the paper's ensemble of three models.
func three() Model {
	return Model{ME(.5, .3, .2), Fixed(6*time.Millisecond, 11300*time.Microsecond, 27900*time.Microsecond)}
}

func BenchmarkSolve(b *testing.B) {
	paper := Model{R2R(.35), paperSteps()}
	for _, c := range []struct {
		name    string
		model   Model
		n       int
		b       []int
		options Options
	}{
		{"any-model/n=16", paper, 16, []int{1, 1}, Options{}},
		{"any-model/n=64", paper, 64, []int{1, 1}, Options{}},
		{"any-model/n=64/p=.9", Model{R2R(.9), paperSteps()}, 64, []int{1, 1}, Options{}},
		{"two-model/n=64", paper, 64, []int{1, 1}, Options{Method: TwoModel}},
		{"two-model/n=64/p=.9", Model{R2R(.9), paperSteps()}, 64, []int{1, 1}, Options{Method: TwoModel}},
		{"three/n=4/quantum=.1ms", three(), 4, []int{1, 1, 1}, Options{Quantum: 100 * time.Microsecond}},
		{"three/n=8/quantum=1ms", three(), 8, []int{1, 1, 1}, Options{Quantum: time.Millisecond}},
		{"growing/n=64", growing(.35, 64), 64, []int{1, 1}, Options{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			start := cpuSeconds()
			for b.Loop() {
				r, err := Solve(b.Context(), c.model, c.n, c.b, c.options)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(r.States), "states")
				b.ReportMetric(float64(r.Sweeps), "sweeps")
			}
			b.ReportMetric((cpuSeconds()-start)/float64(b.N), "cpu-s/op")
		})
	}
}

func BenchmarkBuildTable(b *testing.B) {
	for _, c := range []struct {
		name  string
		model Model
		most  int
	}{
		{"r2r", Model{R2R(.35), paperSteps()}, 64},
		{"growing", growing(.35, 16), 16},
	} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/n=%d/workers=%d", c.name, c.most, workers), func(b *testing.B) {
				start := cpuSeconds()
				for b.Loop() {
					o := Options{Workers: workers}
					if _, err := BuildTable(b.Context(), c.model, []string{"small", "large"}, c.most, SmallEager, o); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric((cpuSeconds()-start)/float64(b.N), "cpu-s/op")
			})
		}
	}
}
