package experiment

import (
	"math"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results"
	"github.com/trbench/trbench/sim"
)

// quality adds up what requests say of their own: a point's agreement and NLL are those of all tokens of its measured
// requests.
type quality struct {
	tokens int64
	agreed float64 // NaN where a request doesn't know
	nats   float64
}

func (s *quality) add(q *results.Request) {
	if q.Warmup || q.OutputTokens == 0 {
		return
	}
	n := float64(q.OutputTokens)
	s.tokens += int64(q.OutputTokens)
	s.agreed += math.Round(n * q.Agreement.Or(math.NaN()))
	s.nats += n * q.NLL.Or(math.NaN())
}

// point sets the point's figures; null without tokens, or where a request doesn't know its own.
func (s *quality) point(p *results.Point) {
	tokens := results.F(float64(s.tokens))
	p.Agreement = results.Ratio(results.F(s.agreed), tokens)
	p.NLL = results.Ratio(results.F(s.nats), tokens)
}

// alone is told of requests that one model wrote by itself, and says what the replayed pair says of them: the
// simulator, which runs that model without routing, doesn't know. nil where nothing is replayed.
func (p *Plan) alone(s System) func(*results.Request) {
	t := p.recorded
	if t == nil || s.Topology != sim.Single {
		return nil
	}
	return func(q *results.Request) { alone(t, q, s.AllLarge()) }
}

func alone(t *signal.Trace, q *results.Request, large bool) {
	agreed, nats := t.Alone(step.RequestID(q.ID), q.OutputTokens, large)
	tokens := results.F(float64(q.OutputTokens))
	q.Agreement, q.NLL = results.Ratio(results.F(float64(agreed)), tokens), results.Ratio(results.F(nats), tokens)
}
