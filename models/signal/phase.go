package signal

import "fmt"

// Phase is a stretch of the output at whose tokens rates are multiplied by Factor; a product above 1 is 1. It begins at
// output position From and ends where the next one begins.
type Phase struct {
	From   int32
	Factor float64
}

// RecordedPhases are the windows of a recorded R2R trace (2,571 tokens of one AIME problem, R2R project page), 256
// tokens each, relative to its mean rate .0253: the large model writes most at the beginning. measured: 8.59, 2.34,
// 1.95, .39, 1.95, 3.52, 3.52, 1.56, 1.17, .39 % of each window's tokens.
func RecordedPhases() []Phase {
	const mean = 2.5282
	var p []Phase
	for i, share := range []float64{8.59, 2.34, 1.95, .39, 1.95, 3.52, 3.52, 1.56, 1.17, .39} {
		p = append(p, Phase{From: int32(256 * i), Factor: share / mean})
	}
	return p
}

func validPhases(p []Phase) error {
	for i, x := range p {
		switch {
		case i == 0 && x.From != 0:
			return fmt.Errorf("phase 0 begins at position %d, want 0", x.From)
		case i > 0 && x.From <= p[i-1].From:
			return fmt.Errorf("phase %d begins at position %d, want more than %d", i, x.From, p[i-1].From)
		case !(x.Factor >= 0) || x.Factor > 1e300:
			return fmt.Errorf("phase %d: factor %g: want a finite number >= 0", i, x.Factor)
		}
	}
	return nil
}

// factors are the factors of the phases; one phase where there is none.
func factors(p []Phase) []float64 {
	if len(p) == 0 {
		return []float64{1}
	}
	var f []float64
	for _, x := range p {
		f = append(f, x.Factor)
	}
	return f
}

// phase is the index of the phase that holds output position out; there are few, so a scan is the fastest search.
func phase(p []Phase, out int32) int {
	i := len(p) - 1
	for i > 0 && p[i].From > out {
		i--
	}
	return i
}
