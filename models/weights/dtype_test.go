package weights

import (
	"math"
	"testing"
)

// TestF16 compares all halves with IEEE 754's definition.
func TestF16(t *testing.T) {
	for h := range 1 << 16 {
		got, want := float64(F16ToFloat32(uint16(h))), halfValue(uint16(h))
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) || math.Signbit(got) != (h>>15 == 1) {
			t.Fatalf("%#04x: %v, want %v", h, got, want)
		}
	}
}

// TestBF16: a bfloat16 is the float32 with its bits above and zeros below.
func TestBF16(t *testing.T) {
	for h := range 1 << 16 {
		if got := math.Float32bits(BF16ToFloat32(uint16(h))); got != uint32(h)<<16 {
			t.Fatalf("%#04x: %#08x", h, got)
		}
	}
}
