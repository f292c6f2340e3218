package signal

import (
	"fmt"

	"github.com/trbench/trbench/engine/step"
)

// Score says which number a rule reads.
type Score uint8

const (
	// External is the score of a router beside the models, step.Result.Signal.
	External Score = iota
	// Entropy is the sampling model's, nats.
	Entropy
	// Normalised is that entropy over ln V, V the vocabulary.
	Normalised
	// Confidence is the sampling model's largest probability.
	Confidence
	// Margin is its largest less its second largest probability.
	Margin
	// DraftGain is, for each drafted token, how much surer the verifying model is than the drafting one: max p - max q.
	DraftGain
	// DraftGainRatio is DraftGain over the total variation distance between the two.
	DraftGainRatio
	// DraftLoss is, for each drafted token, -ln p of it under the verifying model, nats.
	DraftLoss
	// Prompt is the external router's score of the prompt, known before the first step.
	Prompt
)

// Columns are the optional columns of a result that hold the score.
func (s Score) Columns() step.Columns {
	switch s {
	case Entropy:
		return step.Entropy
	case Normalised:
		return step.Normalised
	case Confidence:
		return step.Confidence
	case Margin:
		return step.Margin
	case DraftGain, DraftGainRatio, DraftLoss:
		return step.Drafts
	}
	return 0
}

// Rule is when a router acts on a model's score: the score lies beyond Threshold, above it or below it.
//
// The zero Rule never fires and reads no score.
type Rule struct {
	Name      string  // what the score is, with its unit: "normalised entropy"
	Score     Score   // where it is found
	Threshold float64 // the score at which the rule starts to fire
	Lo, Hi    float64 // the score's range; Lo < Threshold < Hi
	Above     bool    // fires for scores > Threshold; otherwise for scores < Threshold
	Uniform   bool    // the score is a plain uniform draw in [0, 1) and the router does the rest
}

// Used says that the router reads this score.
func (r Rule) Used() bool { return r.Name != "" }

// Fires says whether the router acts on score x.
func (r Rule) Fires(x float64) bool {
	if r.Above {
		return x > r.Threshold
	}
	return x < r.Threshold
}

// valid reports a rule that no score could satisfy both ways.
func (r Rule) valid() error {
	if !r.Used() || r.Uniform {
		return nil
	}
	if !(r.Lo < r.Threshold && r.Threshold < r.Hi) {
		return fmt.Errorf("signal: %s: threshold %g must lie inside (%g, %g)", r.Name, r.Threshold, r.Lo, r.Hi)
	}
	return nil
}

// scale maps a uniform draw to a score so that the rule fires for exactly the draws below rate.
type scale struct {
	rate       float64
	near, fire float64 // score = near + fire*(distance from rate), on the firing side
	far, quiet float64 // likewise on the quiet side
}

// newScale spreads the firing draws [0, rate) evenly from the far end of the firing side to just beyond the threshold,
// and the others from the threshold to the far end of the quiet side.
func newScale(r Rule, rate float64) scale {
	if r.Uniform {
		return scale{rate: 2, near: 0, fire: 1}
	}
	firing, quiet := r.Lo, r.Hi
	if r.Above {
		firing, quiet = r.Hi, r.Lo
	}
	s := scale{rate: rate}
	if rate > 0 {
		s.near, s.fire = firing, (r.Threshold-firing)/rate
	}
	if rate < 1 {
		s.quiet = (quiet - r.Threshold) / (1 - rate)
		s.far = r.Threshold - s.quiet*rate
	}
	return s
}

// at is the score for draw u in [0, 1).
func (s *scale) at(u float64) float64 {
	if u < s.rate {
		return s.near + s.fire*u
	}
	return s.far + s.quiet*u
}
