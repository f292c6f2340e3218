package kernel

import (
	"encoding/binary"
	"math"
)

// Plain Go. Every product is rounded before it is added, by conversion, so that no compiler fuses some of them.

func panelF32Generic(a *args, w []float32, wStep, width int) {
	for t := range a.rows {
		x, y := a.x[t*a.xStep:][:a.k], a.y[t*a.yStep:][:width]
		for j := 0; j < width; j += 8 {
			var s0, s1, s2, s3, s4, s5, s6, s7 float32
			to := (*[8]float32)(y[j:])
			if a.from {
				s0, s1, s2, s3, s4, s5, s6, s7 = to[0], to[1], to[2], to[3], to[4], to[5], to[6], to[7]
			}
			at := j
			for _, v := range x {
				r := (*[8]float32)(w[at:])
				at += wStep
				s0 += float32(v * r[0])
				s1 += float32(v * r[1])
				s2 += float32(v * r[2])
				s3 += float32(v * r[3])
				s4 += float32(v * r[4])
				s5 += float32(v * r[5])
				s6 += float32(v * r[6])
				s7 += float32(v * r[7])
			}
			if a.add {
				s0, s1, s2, s3 = to[0]+s0, to[1]+s1, to[2]+s2, to[3]+s3
				s4, s5, s6, s7 = to[4]+s4, to[5]+s5, to[6]+s6, to[7]+s7
			}
			*to = [8]float32{s0, s1, s2, s3, s4, s5, s6, s7}
		}
	}
}

func panelBF16Generic(a *args, w []uint16, wStep, width int) {
	for t := range a.rows {
		x, y := a.x[t*a.xStep:][:a.k], a.y[t*a.yStep:][:width]
		for j := 0; j < width; j += 8 {
			// Words j to j+7 of a line hold outputs j/2 to j/2+3, and 16 above them.
			var s0, s1, s2, s3, s4, s5, s6, s7 float32
			line, word := j/Unit*Unit, j%Unit
			lower, upper := (*[4]float32)(y[line+word/2:]), (*[4]float32)(y[line+16+word/2:])
			at := j
			for _, v := range x {
				r := (*[8]uint16)(w[at:])
				at += wStep
				s0 += float32(v * widen(r[0]))
				s4 += float32(v * widen(r[1]))
				s1 += float32(v * widen(r[2]))
				s5 += float32(v * widen(r[3]))
				s2 += float32(v * widen(r[4]))
				s6 += float32(v * widen(r[5]))
				s3 += float32(v * widen(r[6]))
				s7 += float32(v * widen(r[7]))
			}
			if a.add {
				s0, s1, s2, s3 = lower[0]+s0, lower[1]+s1, lower[2]+s2, lower[3]+s3
				s4, s5, s6, s7 = upper[0]+s4, upper[1]+s5, upper[2]+s6, upper[3]+s7
			}
			*lower, *upper = [4]float32{s0, s1, s2, s3}, [4]float32{s4, s5, s6, s7}
		}
	}
}

func widen(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

func sumSquaresGeneric(x []float32) float32 {
	var sum float64
	for _, v := range x {
		sum += float64(float64(v) * float64(v))
	}
	return float32(sum)
}

func maxGeneric(x []float32) float32 {
	m := x[0]
	for _, v := range x[1:] {
		m = max(m, v)
	}
	return m
}

// underflow is the argument below which exp is taken as 0: the result would be under the smallest normal number.
const underflow = -87.33

func exp(v float32) float32 {
	if v < underflow {
		return 0
	}
	return float32(math.Exp(float64(v)))
}

func expGeneric(x []float32, top float32) float32 {
	var sum float64
	for i, v := range x {
		e := exp(v - top)
		x[i] = e
		sum += float64(e)
	}
	return float32(sum)
}

func expSumsGeneric(x []float32, top float32) (sum, weighted float32) {
	var s, w float64
	for _, v := range x {
		z := max(v-top, underflow)
		e := float64(exp(z))
		s += e
		w += float64(e * float64(z))
	}
	return float32(s), float32(w)
}

func siluGeneric(gate, up []float32) {
	for i, g := range gate {
		gate[i] = float32(g*up[i]) / (1 + exp(min(-g, 88)))
	}
}

func mulGeneric(y, x, w []float32, scale float32) {
	for i, v := range x {
		y[i] = float32(v*scale) * w[i]
	}
}

func addGeneric(y, x []float32) {
	for i, v := range x {
		y[i] += v
	}
}

func readGeneric(b []byte) uint64 {
	var s0, s1, s2, s3 uint64
	for len(b) >= 32 {
		s0 ^= binary.NativeEndian.Uint64(b)
		s1 ^= binary.NativeEndian.Uint64(b[8:])
		s2 ^= binary.NativeEndian.Uint64(b[16:])
		s3 ^= binary.NativeEndian.Uint64(b[24:])
		b = b[32:]
	}
	return s0 ^ s1 ^ s2 ^ s3
}
