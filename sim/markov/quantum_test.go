package markov

import (
	"math"
	"testing"
	"time"

	"github.com/trbench/trbench/engine/step"
	"pgregory.net/rapid"
)

func TestChosenQuantum(t *testing.T) {
	us := time.Microsecond
	for _, c := range []struct {
		name     string
		times    []time.Duration
		want     time.Duration
		rounding float64 // at most
	}{
		{"paper", []time.Duration{paperSmall, paperLarge}, 300 * us, 0},
		{"article", []time.Duration{12000 * us, 55000 * us}, 1000 * us, 0},
		{"equal", []time.Duration{7 * us, 7 * us}, 7 * us, 0},
		{"just affordable", []time.Duration{1 * us, 1000 * us}, us, 0},
		{"measured", []time.Duration{5937 * us, 27913 * us}, 0, autoRounding},
		{"prime", []time.Duration{5999993, 27900007}, 0, autoRounding},
		{"far apart", []time.Duration{3 * us, 10007 * us}, 0, .05},
	} {
		m := Model{Step: Fixed(c.times...), Routing: Routing{P: make([][]float64, len(c.times))}}
		g, err := m.grid(4, 0)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if c.want != 0 && g.quantum != c.want {
			t.Errorf("%s: quantum %v, want %v", c.name, g.quantum, c.want)
		}
		if g.rounding > c.rounding {
			t.Errorf("%s: %v rounds by %v, want at most %v", c.name, g.quantum, g.rounding, c.rounding)
		}
		for i := range c.times {
			if most := max(maxAutoQuanta, c.times[1]/c.times[0]+1); g.longest(i) > int32(most) {
				t.Errorf("%s: model %d takes %d quanta, want at most %d", c.name, i, g.longest(i), most)
			}
		}
	}
}

// The reported rounding is the largest there is, and multiples add up to the times within it.
func TestRoundingIsReported(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "N")
		m := Model{Routing: R2R(.5), Step: [][]time.Duration{nil, nil}}
		for i := range m.Step {
			for range n {
				m.Step[i] = append(m.Step[i], time.Duration(rapid.Int64Range(1e5, 1e8).Draw(t, "ns")))
			}
		}
		quantum := time.Duration(rapid.SampledFrom([]int64{0, 1e3, 1e4, 1e5}).Draw(t, "quantum"))
		g, err := m.grid(n, quantum)
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for i := range m.Step {
			for b := 1; b <= n; b++ {
				got := time.Duration(g.steps[i][b]) * g.quantum
				worst = math.Max(worst, relative(float64(got), float64(m.StepTime(i, b))))
			}
		}
		if math.Abs(worst-g.rounding) > 1e-12 {
			t.Errorf("reported %v, is %v", g.rounding, worst)
		}
		if quantum > 0 && worst > .5*float64(quantum)/1e5+1e-12 {
			t.Errorf("quantum %v rounds by %v", quantum, worst)
		}
	})
}

// A finer quantum converges to the truth that an exact one gives.
func TestRoundingIsHarmless(t *testing.T) {
	exact := mustSolve(t, paper(.35), 4, []int{1, 3}, Options{})
	for _, c := range []struct {
		quantum time.Duration
		off     float64
	}{{time.Millisecond, .01}, {400 * time.Microsecond, .005}, {70 * time.Microsecond, .004}} {
		r := mustSolve(t, paper(.35), 4, []int{1, 3}, Options{Quantum: c.quantum})
		if relative(r.Throughput, exact.Throughput) > c.off || r.Rounding == 0 {
			t.Errorf("quantum %v: %v tok/s, rounding %v; exact %v", c.quantum, r.Throughput, r.Rounding, exact.Throughput)
		}
	}
}

type linear struct{ base, perSeq, perContext time.Duration }

func (l linear) StepTime(s step.Shape) time.Duration {
	return l.base + time.Duration(s.Seqs())*l.perSeq + time.Duration(s.DecodeContext)*l.perContext
}

func TestSampled(t *testing.T) {
	s := Sampled(3, 100, linear{10, 1, 0}, linear{20, 0, 2})
	want := [][]time.Duration{{11, 12, 13}, {220, 420, 620}}
	for i := range want {
		for b := range want[i] {
			if s[i][b] != want[i][b] {
				t.Errorf("model %d, batch %d: %v, want %v", i, b+1, s[i][b], want[i][b])
			}
		}
	}
}
