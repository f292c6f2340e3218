package cpu

import (
	"math"

	"github.com/trbench/trbench/models/weights"
)

// rope is the rotary embedding: the sine and cosine of each pair's angle at each position, computed in float64 once.
// The table grows with the longest context.
type rope struct {
	freq      []float64 // radians a position, by pair
	positions int
	table     []float32 // by position: cosines, then sines
}

func newRope(c weights.Config) rope { return rope{freq: c.InvFreq()} }

// reach makes the table cover positions below n.
func (r *rope) reach(n int) {
	if n <= r.positions {
		return
	}
	n = max(n, 2*r.positions, 256)
	pairs := len(r.freq)
	table := make([]float32, n*2*pairs)
	copy(table, r.table)
	for p := r.positions; p < n; p++ {
		cos, sin := table[p*2*pairs:][:pairs], table[(p*2+1)*pairs:][:pairs]
		for i, f := range r.freq {
			s, c := math.Sincos(f * float64(p))
			cos[i], sin[i] = float32(c), float32(s)
		}
	}
	r.table, r.positions = table, n
}

// turn rotates the pairs (i, i + len/2) of a head at position p, and scales it.
func (r *rope) turn(head []float32, p int, scale float32) {
	pairs := len(r.freq)
	cos, sin := r.table[p*2*pairs:][:pairs], r.table[(p*2+1)*pairs:][:pairs]
	lower, upper := head[:pairs], head[pairs:][:pairs]
	for i, c := range cos {
		s, a, b := sin[i], lower[i], upper[i]
		lower[i] = float32(float32(a*c)-float32(b*s)) * scale
		upper[i] = float32(float32(b*c)+float32(a*s)) * scale
	}
}
