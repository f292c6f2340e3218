// Package route says what happens to a request after a step: which model runs it next, what is kept of what was
// sampled, and what a peer must do when it arrives. It decides; it never schedules, prices or executes.
//
// An algorithm has one of two forms. A Router is the batch form, vectorised over the rows of a step: what the scheduler
// calls. A Program is straight-line code for one request; a Runner makes a Router of it by running it as a coroutine.
//
// Read route.go (the primitive), program.go (what a program can do), runner.go (how one is run), then algorithms.go
// (the published algorithms; each has a file of its own).
package route

import (
	"errors"

	"github.com/trbench/trbench/engine/clock"
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
	// Drop is how many tokens are taken back from the end of the sequence as the request stays where it is; where it
	// leaves, Send says so. nil unless the router drafts.
	Drop []int32
	// End ends the row's request here and now. ErrEnd completes it with what is committed by this step; any other error
	// fails it, and what is uncommitted is lost. nil entries go on. nil unless the router drafts.
	End []error
}

// ErrEnd is the Moves.End of a request that is complete before its limit: a token that ends it was kept.
var ErrEnd = errors.New("the request is complete")

// Resize makes the columns n rows long and clears those of a router that drafts.
func (m *Moves) Resize(n int, drafts bool) {
	if cap(m.To) < n {
		m.To = make([]step.ModelID, n, 2*n)
		if drafts {
			m.Draft, m.Accept = make([]bool, n, 2*n), make([]int32, n, 2*n)
			m.Drop, m.End = make([]int32, n, 2*n), make([]error, n, 2*n)
		}
	}
	m.To = m.To[:n]
	if drafts {
		m.Draft, m.Accept, m.Drop, m.End = m.Draft[:n], m.Accept[:n], m.Drop[:n], m.End[:n]
		clear(m.Draft)
		clear(m.Accept)
		clear(m.Drop)
		clear(m.End)
	}
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

// Reader is a router that reads more than Result.Signal.
type Reader interface {
	// Reads are the optional columns that it reads, and the number of candidates a row where step.Top is one of them.
	Reads() (want step.Columns, topK int)
}

// Reads are the optional columns that r reads.
func Reads(r Router) (want step.Columns, topK int) {
	if reader, ok := r.(Reader); ok {
		return reader.Reads()
	}
	return 0, 0
}

// Chained is a router whose hops form a Markov chain over the models under iid signals: the form that the exact
// throughput model reads.
type Chained interface {
	// Chain returns P and C, both M x M: the probability that a step on model i is followed by one on model j, and the
	// tokens that this transition commits, when the rule of model m fires with probability rates[m].
	Chain(rates []float64) (p, c [][]float64)
}

// Follower is a router that follows each request from its first step to its end: it keeps state, so every run needs one
// of its own. A driver calls Fresh before the run and Close after it, Begin before a request's first step and End as it
// ends; all calls come from one goroutine, or from goroutines that are all locked to their thread or all not.
type Follower interface {
	Router
	// Fresh returns the same algorithm without any request.
	Fresh() Router
	// Begin takes a new request and returns the model that runs its first step. An error fails the request.
	Begin(a Arrival) (first step.ModelID, err error)
	// End lets go of a request, whether it completed, failed or was cancelled. Unknown handles are ignored.
	End(h step.Handle)
	// Close lets go of every request.
	Close()
}

// Arrival is what a router hears of a new request.
type Arrival struct {
	At     clock.Instant
	Handle step.Handle
	ID     step.RequestID
	Prompt int32   // tokens
	Output int32   // tokens to write, at most
	Score  float64 // what the external router says of the prompt, in the unit that the algorithm names
}

// Fresh is a router for one run: r itself if it keeps no state. done lets go of what it holds.
func Fresh(r Router) (fresh Router, done func()) {
	f, ok := r.(Follower)
	if !ok {
		return r, func() {}
	}
	fresh = f.Fresh()
	return fresh, fresh.(Follower).Close
}

// CommitAll is the default Receive: every transferred token is already committed, so there is nothing to do.
type CommitAll struct{}

// Receive does nothing.
func (CommitAll) Receive(step.ModelID, *step.PeerReq) {}
