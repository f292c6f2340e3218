package weights

import (
	"fmt"
	"math"
)

// RopeKind says how rotary frequencies are stretched beyond the positions that a model was first trained on.
type RopeKind string

// The kinds of rotary scaling.
const (
	RopePlain  RopeKind = "default" // not at all
	RopeLinear RopeKind = "linear"  // all frequencies by one factor
	RopeLlama3 RopeKind = "llama3"  // Llama 3.1 and later: low frequencies by the factor, high ones not, a ramp between
)

// RopeScaling is config.json's rope_scaling.
type RopeScaling struct {
	Kind   RopeKind
	Factor float64 // >= 1; 1 where Kind is RopePlain

	// Of RopeLlama3 only: a frequency that turns more than HighFreq times within Original positions keeps its value, one
	// that turns less than LowFreq times is divided by Factor.
	LowFreq, HighFreq float64
	Original          int // positions
}

func (r RopeScaling) check() error {
	switch r.Kind {
	case RopePlain:
		return nil
	case RopeLinear, RopeLlama3:
	default:
		return fmt.Errorf("rope_scaling: type is %q, wanted one of %s, %s, %s",
			r.Kind, RopePlain, RopeLinear, RopeLlama3)
	}
	if !(r.Factor >= 1) || math.IsInf(r.Factor, 0) {
		return fmt.Errorf("rope_scaling: factor is %v, wanted a number >= 1", r.Factor)
	}
	if r.Kind == RopeLinear {
		return nil
	}
	if !(r.LowFreq > 0 && r.LowFreq < r.HighFreq) || math.IsInf(r.HighFreq, 0) {
		return fmt.Errorf("rope_scaling: low_freq_factor %v, high_freq_factor %v: wanted 0 < low < high",
			r.LowFreq, r.HighFreq)
	}
	if r.Original < 1 || r.Original > maxPositions {
		return fmt.Errorf("rope_scaling: original_max_position_embeddings is %d, wanted 1 to %d",
			r.Original, maxPositions)
	}
	return nil
}

// InvFreq is the rotary frequency of each pair of a head, radians a position, with scaling: HeadDim/2 values, highest
// first. Value i turns the pair (i, i + HeadDim/2) of a head, the "rotate half" layout of Hugging Face files. The base
// is theta^(-2i/HeadDim) (RoFormer, section 3.2.2); Llama 3's ramp is that of Meta's reference code (llama-models,
// apply_scaling).
func (c Config) InvFreq() []float64 {
	freqs := make([]float64, c.HeadDim/2)
	for i := range freqs {
		freqs[i] = c.RopeScaling.scale(math.Pow(c.RopeTheta, -2*float64(i)/float64(c.HeadDim)))
	}
	return freqs
}

func (r RopeScaling) scale(freq float64) float64 {
	switch r.Kind {
	case RopeLinear:
		return freq / r.Factor
	case RopeLlama3:
		turns := float64(r.Original) * freq / (2 * math.Pi) // within the original positions
		kept := min(1, max(0, (turns-r.LowFreq)/(r.HighFreq-r.LowFreq)))
		return (1-kept)*freq/r.Factor + kept*freq
	}
	return freq
}
