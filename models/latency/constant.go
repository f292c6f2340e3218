package latency

import (
	"time"

	"github.com/trbench/trbench/engine/step"
)

// Constant is a whole step whatever its shape, prefill included: the law under which the article and the paper's
// Markov chain state their step times.
type Constant time.Duration

// StepTime returns the constant, at least 1 ns.
func (c Constant) StepTime(step.Shape) time.Duration { return min(max(time.Duration(c), 1), longest) }
