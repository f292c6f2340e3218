package latency

import (
	"time"

	"github.com/trbench/trbench/engine/step"
)

// Host overhead a step, fitted: the paper's step times of 6.0 and 27.9 ms at batch 1, less the A100 kernel tables of
// Qwen3-0.6B on TP 1 and Qwen3-32B on TP 2 at a context of 1,124 tokens (half its low-effort request). Scheduling,
// sampling, routing and launches of the paper's SGLang are in it; an engine that hides them behind the step has less.
const (
	SmallHost = 3940 * time.Microsecond
	LargeHost = 2530 * time.Microsecond
)

// DefaultHost is the fitted overhead for model i of a pair: SmallHost for the smallest, else LargeHost.
func DefaultHost(i int) time.Duration {
	if i == 0 {
		return SmallHost
	}
	return LargeHost
}

// WithHost adds an overhead of d to every step of m: what the host does between two steps and the kernels' times leave
// out. It returns m itself where d is not positive.
func WithHost(m Model, d time.Duration) Model {
	if d <= 0 {
		return m
	}
	return &hosted{m, d}
}

type hosted struct {
	Model
	overhead time.Duration
}

func (h *hosted) StepTime(s step.Shape) time.Duration {
	return min(h.Model.StepTime(s)+min(h.overhead, longest), longest)
}

func (h *hosted) Extrapolated() []string { return Extrapolated(h.Model) }
