// Package step is the vocabulary that the scheduler, the backends and the latency models share: what a step holds, what
// it reports, and what one subserver tells another. It is a leaf: types and no behaviour beyond their arithmetic.
package step

import "github.com/trbench/trbench/engine/clock"

// RequestID is a request's position in the workload's list: the same in every system that runs the list, and the key
// of its random draws.
type RequestID int32

// Handle is a small dense index of a live request, given out by the client loop. Subservers index their tables by it;
// it is reused once every subserver has let go of the request.
type Handle int32

// ModelID numbers the models of a deployment, smallest first. 0 receives new requests.
type ModelID uint8

// MaxModels bounds the models of one deployment.
const MaxModels = 8

// Shape is all that a latency model needs to price one step. A row that feeds one token over existing KV is a decode;
// a row that feeds more (a prefill, a chunk of one, the unseen suffix of a resume), or that has no KV yet, is an extend.
type Shape struct {
	Decodes       int   // rows that feed one token over existing KV
	DecodeContext int64 // tokens in KV after the step, summed over those rows
	Extends       int   // the other rows
	ExtendTokens  int64 // sum of n_i, the tokens they feed
	ExtendWork    int64 // sum of n_i (n_i + 2 k_i), k_i tokens in KV before: twice the attended pairs
	ExtendContext int64 // tokens in KV after the step, summed over the extends
	Longest       int   // longest context after the step, tokens
}

// Seqs is the batch size.
func (s Shape) Seqs() int { return s.Decodes + s.Extends }

// Tokens is the number of tokens fed.
func (s Shape) Tokens() int64 { return int64(s.Decodes) + s.ExtendTokens }

// Batch is one step's work, one row a request, as columns of equal length. Row i feeds the Feed[i] known tokens that end
// at Pos[i], over the KV of those before (KV beyond Pos[i]-Feed[i] is stale and is dropped); the last Verify[i] of them
// are drafts that the step scores; Sample[i] says that the step reaches the end of what is known, so that it samples one
// more token.
//
// The subserver that returned a Batch owns it and reuses it; a driver that keeps one copies it.
type Batch struct {
	Model  ModelID
	Handle []Handle
	ID     []RequestID
	Pos    []int32 // tokens in KV after the step
	Feed   []int32 // >= 1
	Verify []int32 // nil unless the router drafts
	Sample []bool
	Since  []clock.Instant // when a resumed row became available here; Fresh if it did not come from a peer
	Shape  Shape
	Step   int64         // steps this subserver has started before
	End    clock.Instant // when the step ended; set before it is routed
	// Want are the optional columns that the router reads, TopK the candidates a row where Top is one of them.
	Want Columns
	TopK int
}

// Fresh marks a row that was not handed over since its last step.
const Fresh clock.Instant = -1

// Len is the number of rows.
func (b *Batch) Len() int { return len(b.Handle) }

// Result is what a backend reports for a step, as columns over the batch's rows; only rows with Sample set are read.
// The columns after Stop are nil unless Batch.Want asks for them. All of them describe the sampling model's distribution
// at the sampled token's position.
type Result struct {
	// Signal is the router's score for the sampled token, in the unit that the routing algorithm names.
	Signal []float64
	// Accept is how many of the drafted tokens a verifying row keeps by the rule of speculative sampling: the leading
	// ones that are kept; read where Batch.Verify > 0.
	Accept []int32
	// Token is the sampled token's id; nil where only time is simulated. In a verifying row it follows the drafts that
	// Accept keeps, or, if Drafts is wanted, all drafts: DraftScore.Instead then has the others.
	Token []int32
	// Stop says that Token ends the request before its limit; nil where lengths are forced.
	Stop []bool

	Entropy    []float64 // nats
	Normalised []float64 // entropy over its maximum, ln V for a vocabulary of V; in [0, 1]
	Confidence []float64 // largest probability
	Margin     []float64 // largest less second largest probability
	// Top holds Batch.TopK candidates a row, likeliest first.
	Top []Candidate
	// Drafts holds a score for each drafted token of each verifying row, in the order of the rows: Batch.Verify[i] of
	// them for row i.
	Drafts []DraftScore
}

// PeerKind says what a peer message means.
type PeerKind uint8

const (
	// Resume hands a request over.
	Resume PeerKind = iota
	// Finished lets go of a request: it ended elsewhere.
	Finished
	// Active carries the number of active requests, and nothing else.
	Active
)

// PeerReq is what one subserver tells another about a request.
type PeerReq struct {
	Handle    Handle
	ID        RequestID
	Loc       int32 // tokens of the sequence, drafts included
	Committed int32 // of which committed; the rest are drafts to verify
	Shared    int32 // where Via is the receiver: tokens that its copy still agrees with; its KV beyond is dropped
	End       int32 // committed tokens at which the request is complete
	ActiveN   int32 // requests in the whole system when this was sent
	ActiveSeq int32 // counts the changes of ActiveN: of two messages that cross, the one with the larger holds
	From, To  ModelID
	Via       ModelID // where From had it from
	Kind      PeerKind
	Holders   uint8   // bit j: subserver j holds state of this request
	Suffix    []int32 // the tokens the receiver has not seen; nil where only time is simulated
}
