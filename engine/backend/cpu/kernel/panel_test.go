package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// random returns n values of about unit size from a seed.
func random(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// bf16 cuts v to the upper half of its bits.
func bf16(v []float32) []uint16 {
	h := make([]uint16, len(v))
	for i, f := range v {
		h[i] = uint16(math.Float32bits(f) >> 16)
	}
	return h
}

// weights returns a random matrix, as stored and packed.
func weights(seed uint64, outputs, inputs int, d DType) ([]float32, *Matrix) {
	w := random(seed, outputs*inputs)
	m := NewMatrix(outputs, inputs, d)
	if d == F32 {
		m.SetF32(0, w)
		return w, m
	}
	h := bf16(w)
	for i := range w {
		w[i] = widen(h[i])
	}
	m.SetBF16(0, h)
	return w, m
}

func forLevels(t *testing.T, f func(t *testing.T, l Level)) {
	for _, l := range Levels() {
		t.Run(l.String(), func(t *testing.T) { f(t, l) })
	}
}

func dtypeName(d DType) string { return [...]string{F32: "f32", BF16: "bf16"}[d] }

// The oracle is the sum in float64; the bound is that of sums in sequence, in runs (Higham, Accuracy and Stability,
// section 4.2): (Run + number of runs) units in the last place of the sum of absolute products.
func TestProductAgreesWithFloat64(t *testing.T) {
	forLevels(t, func(t *testing.T, l Level) {
		for _, d := range []DType{F32, BF16} {
			for _, size := range [][2]int{{32, 1}, {64, 64}, {96, 172}, {100, 300}, {192, 515}} {
				outputs, inputs := size[0], size[1]
				w, m := weights(7, outputs, inputs, d)
				for _, rows := range []int{1, 2, 3, 4, 5, 6, 7, 13} {
					x := random(uint64(rows), rows*inputs)
					y := slices.Repeat([]float32{float32(math.NaN())}, rows*m.Outputs())
					l.Product(y, m.Outputs(), m, x, inputs, rows, 0, m.Outputs())
					for r := range rows {
						for o := range m.Outputs() {
							var sum, size float64
							if o < outputs {
								for i := range inputs {
									p := float64(x[r*inputs+i]) * float64(w[o*inputs+i])
									sum += p
									size += math.Abs(p)
								}
							}
							bound := size * float64(Run+inputs/Run+2) * 0x1p-24
							if got := float64(y[r*m.Outputs()+o]); !(math.Abs(got-sum) <= bound) {
								t.Fatalf("%s [%d, %d], %d rows: y[%d][%d] = %g, want %g within %g",
									dtypeName(d), outputs, inputs, rows, r, o, got, sum, bound)
							}
						}
					}
				}
			}
		}
	})
}

// A product may be cut into any rows and outputs: not a bit changes, and nothing outside is written.
func TestProductIsTheSameInParts(t *testing.T) {
	forLevels(t, func(t *testing.T, l Level) {
		rapid.Check(t, func(t *rapid.T) {
			d := rapid.SampledFrom([]DType{F32, BF16}).Draw(t, "dtype")
			units := rapid.IntRange(1, 6).Draw(t, "units")
			inputs := rapid.IntRange(1, 600).Draw(t, "inputs")
			rows := rapid.IntRange(1, 20).Draw(t, "rows")
			_, m := weights(3, units*Unit, inputs, d)
			xStep, yStep := inputs+rapid.IntRange(0, 5).Draw(t, "x gap"), m.Outputs()+rapid.IntRange(0, 5).Draw(t, "y gap")
			x := random(5, rows*xStep)
			whole := make([]float32, rows*yStep)
			l.Product(whole, yStep, m, x, xStep, rows, 0, m.Outputs())

			parts := make([]float32, rows*yStep)
			for first := 0; first < rows; {
				n := rapid.IntRange(1, rows-first).Draw(t, "rows in part")
				for lo := 0; lo < units; {
					hi := rapid.IntRange(lo+1, units).Draw(t, "units in part")
					l.Product(parts[first*yStep:], yStep, m, x[first*xStep:], xStep, n, lo*Unit, hi*Unit)
					lo = hi
				}
				first += n
			}
			if i := differ(whole, parts); i >= 0 {
				t.Fatalf("value %d is %x in one product, %x in parts", i, whole[i], parts[i])
			}
		})
	})
}

// A sum over positions may be computed in any parts: what lets attention go block by block.
func TestOuterIsTheSameInParts(t *testing.T) {
	forLevels(t, func(t *testing.T, l Level) {
		rapid.Check(t, func(t *rapid.T) {
			width := 16 * rapid.IntRange(1, 9).Draw(t, "width/16")
			k := rapid.IntRange(1, 50).Draw(t, "k")
			rows := rapid.IntRange(1, 20).Draw(t, "rows")
			w, x := random(1, k*width), random(2, rows*k)
			whole, parts := make([]float32, rows*width), make([]float32, rows*width)
			l.Outer(whole, width, w, width, x, k, k, rows, false)
			for at := 0; at < k; {
				n := rapid.IntRange(1, k-at).Draw(t, "k in part")
				for r := 0; r < rows; {
					m := rapid.IntRange(1, rows-r).Draw(t, "rows in part")
					l.Outer(parts[r*width:], width, w[at*width:], width, x[r*k+at:], k, n, m, at > 0)
					r += m
				}
				at += n
			}
			if i := differ(whole, parts); i >= 0 {
				t.Fatalf("value %d is %x in one sum, %x in parts", i, whole[i], parts[i])
			}
			for i := range rows * width {
				want := 0.
				for j := range k {
					want += float64(x[i/width*k+j]) * float64(w[j*width+i%width])
				}
				if math.Abs(want-float64(whole[i])) > 1e-4 {
					t.Fatalf("value %d is %g, want %g", i, whole[i], want)
				}
			}
		})
	})
}

// AVX2 and AVX-512 add in the same order.
func TestSIMDLevelsAgree(t *testing.T) {
	levels := Levels()
	if len(levels) < 3 {
		t.Skip("needs AVX2 and AVX-512")
	}
	for _, d := range []DType{F32, BF16} {
		_, m := weights(9, 224, 700, d)
		for _, rows := range []int{1, 9} {
			x := random(4, rows*700)
			y := [2][]float32{make([]float32, rows*224), make([]float32, rows*224)}
			for i, l := range []Level{AVX2, AVX512} {
				l.Product(y[i], 224, m, x, 700, rows, 0, 224)
			}
			if i := differ(y[0], y[1]); i >= 0 {
				t.Fatalf("%s, %d rows: value %d is %x with AVX2, %x with AVX-512", dtypeName(d), rows, i, y[0][i], y[1][i])
			}
		}
	}
	for _, scale := range []float32{1, 60} { // 60: exponents beyond both ends
		x, up := random(5, 1040), random(6, 1040)
		for i := range x {
			x[i] *= scale
		}
		x[3] = float32(math.Inf(-1))
		var all [2][]float32
		for i, l := range []Level{AVX2, AVX512} {
			e, g := slices.Clone(x), slices.Clone(x)
			top := l.Max(x)
			sum, weighted := l.ExpSums(x, top)
			l.SiLU(g, up)
			all[i] = append(all[i], l.Exp(e, top), sum, weighted)
			all[i] = append(append(all[i], e...), g...)
		}
		if i := differ(all[0], all[1]); i >= 0 {
			t.Fatalf("exponentials, scale %g: value %d is %x with AVX2, %x with AVX-512", scale, i, all[0][i], all[1][i])
		}
	}
}

// differ is where two vectors differ in any bit; -1 if nowhere.
func differ(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}

func BenchmarkProduct(b *testing.B) {
	for _, l := range Levels() {
		for _, d := range []DType{F32, BF16} {
			for _, size := range [][3]int{{1, 192, 512}, {1, 4096, 4096}, {4, 4096, 4096}, {16, 4096, 4096}, {128, 4096, 4096}} {
				rows, outputs, inputs := size[0], size[1], size[2]
				if l == Generic && rows*outputs > 1<<14 {
					continue
				}
				name := fmt.Sprintf("level=%s/type=%s/rows=%d/outputs=%d/inputs=%d", l, dtypeName(d), rows, outputs, inputs)
				b.Run(name, func(b *testing.B) {
					m := NewMatrix(outputs, inputs, d)
					if d == F32 {
						m.SetF32(0, random(1, outputs*inputs))
					} else {
						m.SetBF16(0, bf16(random(1, outputs*inputs)))
					}
					x, y := random(2, rows*inputs), make([]float32, rows*outputs)
					for b.Loop() {
						l.Product(y, outputs, m, x, inputs, rows, 0, outputs)
					}
					seconds := b.Elapsed().Seconds() / float64(b.N)
					b.ReportMetric(float64(m.Bytes())/seconds/1e9, "GB/s")
					b.ReportMetric(2*float64(rows*outputs*inputs)/seconds/1e9, "GFLOP/s")
				})
			}
		}
	}
}
