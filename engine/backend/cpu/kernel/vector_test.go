package kernel

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// ulp is the relative size of the last bit of a float32.
const ulp = 0x1p-23

func near(got float32, want, relative float64) bool {
	return math.Abs(float64(got)-want) <= relative*math.Abs(want)
}

func TestExpAgreesWithFloat64(t *testing.T) {
	forLevels(t, func(t *testing.T, l Level) {
		var x []float32
		for v := float32(-100); v <= 0; v += 0.0137 {
			x = append(x, v)
		}
		for len(x)%Lanes != 0 {
			x = append(x, float32(math.Inf(-1)))
		}
		const top = 3.25
		for i := range x {
			x[i] += top
		}
		e := slices.Clone(x)
		sum := l.Exp(e, top)
		total := 0.
		for i, v := range x {
			want := math.Exp(float64(v - top))
			total += want
			if v-top < underflow {
				if e[i] != 0 {
					t.Fatalf("exp(%g) = %g, want 0", v-top, e[i])
				}
				continue
			}
			if !near(e[i], want, 2*ulp) {
				t.Fatalf("exp(%g) = %g, want %g", v-top, e[i], want)
			}
		}
		if !near(sum, total, 1e-6) {
			t.Errorf("sum is %g, want %g", sum, total)
		}
	})
}

func TestExpSumsAgreeWithFloat64(t *testing.T) {
	forLevels(t, func(t *testing.T, l Level) {
		x := random(8, 1024)
		x[7] = float32(math.Inf(-1))
		x[9] = -200
		top := l.Max(x)
		sum, weighted := l.ExpSums(x, top)
		var wantSum, wantWeighted float64
		for _, v := range x {
			if z := float64(v - top); !math.IsInf(z, -1) {
				wantSum += math.Exp(z)
				wantWeighted += z * math.Exp(z)
			}
		}
		if !near(sum, wantSum, 1e-6) || !near(weighted, wantWeighted, 1e-6) {
			t.Errorf("sums are %g and %g, want %g and %g", sum, weighted, wantSum, wantWeighted)
		}
	})
}

func TestSiLUAgreesWithFloat64(t *testing.T) {
	forLevels(t, func(t *testing.T, l Level) {
		var gate []float32
		for v := float32(-120); v < 120; v += .125 {
			gate = append(gate, v)
		}
		up := random(2, len(gate))
		got := slices.Clone(gate)
		l.SiLU(got, up)
		for i, g := range gate {
			want := float64(g) / (1 + math.Exp(-float64(g))) * float64(up[i])
			const tail = 1e-35 // beyond e^88 the divisor no longer grows
			if math.Abs(float64(got[i])-want) > 4*ulp*math.Abs(want)+tail {
				t.Fatalf("gate %g, up %g: %g, want %g", g, up[i], got[i], want)
			}
		}
	})
}

func TestElementWise(t *testing.T) {
	forLevels(t, func(t *testing.T, l Level) {
		for _, n := range []int{16, 48, 1040} {
			x, w := random(1, n), random(2, n)
			var squares float64
			for _, v := range x {
				squares += float64(v) * float64(v)
			}
			if got := l.SumSquares(x); !near(got, squares, 1e-6) {
				t.Errorf("%d: sum of squares %g, want %g", n, got, squares)
			}
			if got := l.Max(x); got != slices.Max(x) {
				t.Errorf("%d: max %g, want %g", n, got, slices.Max(x))
			}
			y := make([]float32, n)
			l.Mul(y, x, w, 1.5)
			for i := range y {
				if want := float32(x[i]*1.5) * w[i]; y[i] != want {
					t.Fatalf("%d: product %d is %g, want %g", n, i, y[i], want)
				}
			}
			before := slices.Clone(y)
			l.Add(y, x)
			for i := range y {
				if want := before[i] + x[i]; y[i] != want {
					t.Fatalf("%d: sum %d is %g, want %g", n, i, y[i], want)
				}
			}
		}
	})
}

// The largest value and the sums are found wherever they are.
func TestMaxLooksAtEveryLane(t *testing.T) {
	forLevels(t, func(t *testing.T, l Level) {
		for i := range 64 {
			x := slices.Repeat([]float32{-2}, 64)
			x[i] = -1
			if got := l.Max(x); got != -1 {
				t.Errorf("largest at %d: got %g", i, got)
			}
			if got := l.SumSquares(x); got != 63*4+1 {
				t.Errorf("sum of squares is %g, want %d", got, 63*4+1)
			}
		}
	})
}

func TestLengthsAreChecked(t *testing.T) {
	for name, f := range map[string]func(){
		"not whole vectors": func() { Best().Max(make([]float32, 20)) },
		"empty":             func() { Best().SumSquares(nil) },
		"other too short":   func() { Best().Add(make([]float32, 32), make([]float32, 16)) },
		"short result": func() {
			m := NewMatrix(64, 4, F32)
			Best().Product(make([]float32, 32), 64, m, make([]float32, 4), 4, 1, 0, 64)
		},
		"short input": func() {
			m := NewMatrix(64, 4, F32)
			Best().Product(make([]float32, 64), 64, m, make([]float32, 3), 4, 1, 0, 64)
		},
		"weights of the other type": func() { NewMatrix(64, 4, F32).SetBF16(0, make([]uint16, 8)) },
		"too many rows":             func() { NewMatrix(64, 4, F32).SetF32(62, make([]float32, 12)) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("want a panic")
				}
			}()
			f()
		})
	}
}

func TestRowIsWhatWasSet(t *testing.T) {
	for _, d := range []DType{F32, BF16} {
		const outputs, inputs = 100, 7
		w, m := weights(5, outputs, inputs, d)
		if m.Outputs() != 128 || m.Inputs() != inputs || m.DType() != d || m.Bytes() != 128*inputs*d.Size() {
			t.Errorf("%s: [%d, %d], %d bytes", dtypeName(d), m.Outputs(), m.Inputs(), m.Bytes())
		}
		got := make([]float32, inputs)
		for o := range outputs {
			if m.Row(got, o); !slices.Equal(got, w[o*inputs:][:inputs]) {
				t.Fatalf("%s: output %d has weights %g, want %g", dtypeName(d), o, got, w[o*inputs:][:inputs])
			}
		}
	}
}

func TestParse(t *testing.T) {
	for _, l := range Levels() {
		if got, err := Parse(strings.ToUpper(l.String())); err != nil || got != l {
			t.Errorf("%s: got %s, %v", l, got, err)
		}
	}
	if got, err := Parse(""); err != nil || got != Best() {
		t.Errorf("no name: got %s, %v; want %s", got, err, Best())
	}
	if _, err := Parse("sse9"); err == nil || err.Error() != `SIMD level "sse9": want one of generic, avx2, avx512` {
		t.Errorf("unknown name: %v", err)
	}
}

func TestReadReadsAll(t *testing.T) {
	b := Bytes(1 << 20)
	forLevels(t, func(t *testing.T, l Level) {
		before := l.Read(b)
		for _, at := range []int{0, 224, 256, len(b) - 32} { // in lanes that the result has
			b[at] ^= 1
			if l.Read(b) == before {
				t.Errorf("%s: byte %d is not read", l, at)
			}
			b[at] ^= 1
		}
	})
}
