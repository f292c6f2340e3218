// Package route says what happens to a request after a step: which model runs it next, what is kept of what was
// sampled, and what a peer must do when it arrives. It decides; it never schedules, prices or executes.
//
// Read route.go (the primitive that the scheduler calls), then algorithms.go (the published algorithms).
package route

import (
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// Moves is what routing decides for the rows of one batch, as columns. Only rows with Sample set are read.
type Moves struct {
	// To is the model that runs the request next; the batch's own model means stay.
	To []step.ModelID
	// Draft keeps the row's new tokens uncommitted, to be verified by the model that receives them.
	// nil unless the router drafts.
	Draft []bool
	// Accept is how many of the drafted tokens a verifying row keeps. nil unless the router drafts.
	Accept []int32
}

// Router is a routing algorithm over a batch: the paper's three functions. Core calls Route once a step, Send for each
// row that leaves, Receive for each that arrives.
type Router interface {
	// Route fills mv for the batch that model m has run. len(mv.To) == b.Len().
	Route(m step.ModelID, b *step.Batch, res *step.Result, mv *Moves)
	// Send says how many tokens are taken back from the end of the sequence as row leaves for peer to: 0 keeps the token
	// just sampled, 1 drops it and the peer regenerates it.
	Send(b *step.Batch, row int, to step.ModelID) (drop int32)
	// Receive sees what arrives at model m, before it is scheduled there.
	Receive(m step.ModelID, req *step.PeerReq)
}

// Ruled is a router that acts on one score a model. A simulation draws the scores so that the rules fire as wanted.
type Ruled interface {
	// Rule is what the router acts on at model m.
	Rule(m step.ModelID) signal.Rule
}

// Drafter is a router that leaves tokens uncommitted for a peer to verify; core then gives it the columns for it.
type Drafter interface{ Drafts() bool }

// Chained is a router whose hops form a Markov chain over the models under iid signals: the form that the exact
// throughput model reads.
type Chained interface {
	// Chain returns P and C, both M x M: the probability that a step on model i is followed by one on model j, and the
	// tokens that this transition commits, when the rule of model m fires with probability rates[m].
	Chain(rates []float64) (p, c [][]float64)
}

// CommitAll is the default Receive: every transferred token is already committed, so there is nothing to do.
type CommitAll struct{}

// Receive does nothing.
func (CommitAll) Receive(step.ModelID, *step.PeerReq) {}
