// Package core decides what one subserver runs next. It has no goroutine, clock or I/O: callers pass now, and act on
// what it returns. The simulator and the engine drive the same code.
//
// Read subserver.go (lifecycle), then batching.go (delayed batching and admission), handoff.go (completion, pending and
// resume) and pressure.go (what happens when KV runs out).
package core

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/kv"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
)

var (
	// ErrTooLong is the kind of a request that could never fit the KV pool.
	ErrTooLong = errors.New("request exceeds the KV pool")
	// ErrOrder is the kind of a call that the protocol does not allow: a driver's mistake.
	ErrOrder = errors.New("call out of order")
)

// Request is what the client loop submits.
type Request struct {
	Handle step.Handle
	ID     step.RequestID
	Prompt int32 // known tokens, >= 1
	Max    int32 // tokens to commit, >= 1
	// Shared is how many of the known tokens this server has seen under the same handle before and may still hold in its
	// prefix cache; only a server that retains KV reads it.
	Shared int32
	// Verify is how many of the known tokens, at their end, are drafts to score in one pass; Max then counts from before
	// them. 0 unless Config.Verifies or the router drafts.
	Verify int32
}

// Retain says what a subserver keeps of a request that is not running here.
type Retain uint8

const (
	// Resident keeps a handed-over request's KV in place until it returns or ends: handoff-resume.
	Resident Retain = iota
	// RetainNone frees the KV when a request leaves: a server without prefix cache.
	RetainNone
	// RetainBlocks keeps the full blocks in a least-recently-used cache: vLLM's prefix cache.
	RetainBlocks
	// RetainAll keeps every computed token in such a cache: a radix cache.
	RetainAll
)

// Config sets up a Subserver.
type Config struct {
	Model  step.ModelID
	Policy Policy
	// KVBlocks is the pool's size; <= 0 is unlimited. BlockTokens is the block's; <= 0 is DefaultBlockTokens.
	KVBlocks, BlockTokens int32
	Retain                Retain
	// Router decides after each step; nil keeps every token here (a single-model server).
	Router route.Router
	// Track fills in Effects.Rows: for a driver that keeps the tokens.
	Track bool
	// DraftTokens bounds the uncommitted tokens a request carries; room for them is part of its KV need.
	DraftTokens int32
	// Want are the optional columns of a result that the caller reads, TopK the candidates of step.Top, where no Router
	// says so.
	Want step.Columns
	TopK int
	// Verifies says that requests may come with drafts to score, though the router drafts none or there is none: the
	// server keeps them all, and its caller decides.
	Verifies bool
}

// DefaultBlockTokens is vLLM's and SGLang's usual page size.
const DefaultBlockTokens = 16

// Policy is how batches form. The zero Policy takes everything that is available, at once.
type Policy struct {
	// Threshold is the fewest available requests that start a batch, by active requests: Threshold[n-1] holds for n of
	// them, the last one for more. Larger amortises a step over more requests and lengthens each one's wait; sim/markov
	// computes the best table. nil is eager.
	Threshold []int32
	// Gate lets arrivals into a running batch only when at least Gate of them wait; <= 1 is off.
	Gate int
	// Timer starts a batch below the threshold once its oldest request has waited this long; 0 is off.
	Timer time.Duration
	// MaxBatch bounds the rows of a batch; <= 0 is DefaultMaxBatch. Pending requests don't count.
	MaxBatch int
	// TokenBudget bounds the tokens fed by a batch, so long prefills run in chunks; <= 0 is DefaultTokenBudget.
	TokenBudget int
}

const (
	// DefaultMaxBatch is vLLM's max_num_seqs on 80 GB GPUs.
	DefaultMaxBatch = 256
	// DefaultTokenBudget is vLLM's max_num_batched_tokens for serving on 80 GB GPUs.
	DefaultTokenBudget = 8192
)

type state uint8

const (
	absent  state = iota // unknown here, or a cached prefix only
	waiting              // needs admission: no KV held, or KV in the prefix cache
	running              // in run: available, or in the batch in flight
	pending              // routed away, KV kept
)

// seq is one request as this subserver knows it. 40 bytes: the hot tables stay in cache.
//
// Invariant: kv <= n, committed <= n, kv <= blocks * block size.
type seq struct {
	n         int32 // tokens known
	kv        int32 // of which in KV
	committed int32 // of which committed; the others are drafts
	end       int32 // committed tokens at which the request is complete
	blocks    int32
	shared    int32         // shortest n since it came: what the peer it came from still agrees with
	since     clock.Instant // when it became available here, or pending; step.Fresh after its first step here
	id        step.RequestID
	holders   uint8        // bit j: peer j holds state of this request
	from      step.ModelID // the peer it came from; this model if it was submitted here
	state     state
	flags     uint8
}

const (
	verify uint8 = 1 << iota // the tokens beyond committed are a peer's drafts, to be scored
	peer                     // handed over by a peer since its last step
	cancel                   // cancelled while its step was in flight
)

const unshared = math.MaxInt32

// Status is how a request ended.
type Status uint8

const (
	// Completed reached its last token.
	Completed Status = iota
	// Cancelled was given up by its client.
	Cancelled
	// Failed was ended by an error of its routing program.
	Failed
)

// Commit is tokens committed to one request by one step.
type Commit struct {
	Handle step.Handle
	Tokens int32
	Own    int32 // of which sampled by this model; the others are a peer's accepted drafts
}

// Done is a request that ended here.
type Done struct {
	Handle step.Handle
	Status Status
	Err    error // what failed it; nil unless Status is Failed
}

// Row is what became of the tokens of one row of a step, for a driver that keeps them. Of the drafts that the row
// verified, Accept stay, before the row's own token; Known is how many tokens the sequence has then, so that a dropped
// token is not among them. The zero Row stands for the usual case: the sampled token follows what was fed.
type Row struct{ Accept, Known int32 }

// Effects is what a completed step asks of the driver. The Subserver owns it and reuses it at its next Complete or
// Cancel.
type Effects struct {
	Commit []Commit
	Send   []step.PeerReq
	Done   []Done
	// Rows is by row of the batch; nil unless Config.Track.
	Rows []Row
}

// track makes Rows n zero rows long.
func (e *Effects) track(wanted bool, n int) {
	if !wanted {
		return
	}
	if cap(e.Rows) < n {
		e.Rows = make([]Row, n, 2*n)
	}
	e.Rows = e.Rows[:n]
	clear(e.Rows)
}

func (e *Effects) reset() { e.Commit, e.Send, e.Done = e.Commit[:0], e.Send[:0], e.Done[:0] }

// Stats counts what a Subserver has done.
type Stats struct {
	Steps     int64 // steps started
	Rows      int64 // rows of those steps
	Preempted int64 // running requests that lost their KV
	Dropped   int64 // pending requests, or cached prefixes, that lost KV
	Recompute int64 // tokens fed again after that
}

// Subserver runs one model's queue: a deterministic state machine.
//
// Invariant: a batch in flight is a prefix of run; run[:cont] are its rows (in flight) or those that stayed after it.
type Subserver struct {
	cfg    Config
	seqs   []seq         // by handle
	run    []step.Handle // continuing rows first, then arrivals in (since, id) order
	cont   int
	wait   queue
	pool   kv.Pool
	kept   kv.Retained
	need   int32         // B(N) for the current N
	stayed clock.Instant // when run[:cont] became available
	busy   bool
	drafts bool    // the router drafts
	scores bool    // rows may bring drafts to score
	theirs []int32 // by handle: uncommitted tokens that peers sampled; they stand before this model's. nil unless drafts
	batch  step.Batch
	moves  route.Moves
	eff    Effects
	stats  Stats
}

// New returns an idle subserver.
func New(c Config) *Subserver {
	if c.BlockTokens <= 0 {
		c.BlockTokens = DefaultBlockTokens
	}
	if c.Policy.MaxBatch <= 0 {
		c.Policy.MaxBatch = DefaultMaxBatch
	}
	if c.Policy.TokenBudget <= 0 {
		c.Policy.TokenBudget = DefaultTokenBudget
	}
	s := &Subserver{cfg: c, pool: kv.NewPool(c.KVBlocks, c.BlockTokens), kept: kv.NewRetained()}
	s.batch.Model = c.Model
	if s.batch.Want, s.batch.TopK = c.Want, c.TopK; c.Router != nil {
		s.batch.Want, s.batch.TopK = route.Reads(c.Router)
	}
	if d, ok := c.Router.(route.Drafter); ok {
		s.drafts = d.Drafts()
	}
	s.scores = s.drafts || c.Verifies
	s.setActive(0)
	return s
}

// Active says how many requests are in the whole system now: admitted and unfinished. Every change must reach every
// subserver, or a batch that waits for more requests than there are could wait for ever.
func (s *Subserver) Active(now clock.Instant, n int) { s.setActive(int32(n)) }

func (s *Subserver) setActive(n int32) {
	t := s.cfg.Policy.Threshold
	if len(t) == 0 || n <= 0 {
		s.need = 1
		return
	}
	s.need = max(1, t[min(int(n), len(t))-1])
}

// Submit takes a new request, or, on a single-model server, one more call of a request. An error of kind ErrTooLong
// means that it can never run here.
func (s *Subserver) Submit(now clock.Instant, r Request) error {
	if r.Prompt < 1 || r.Max < 1 {
		return fmt.Errorf("subserver %d: request %d: want a prompt and an output of at least one token, got %d and %d",
			s.cfg.Model, r.ID, r.Prompt, r.Max)
	}
	if r.Verify < 0 || r.Verify >= r.Prompt || r.Verify > 0 && !s.scores {
		return fmt.Errorf("subserver %d: request %d: %w: %d drafts to verify among %d known tokens", s.cfg.Model, r.ID, ErrOrder,
			r.Verify, r.Prompt)
	}
	committed := r.Prompt - r.Verify
	need := int64(committed) + int64(r.Max) + int64(s.cfg.DraftTokens)
	if room := int64(s.pool.Total()) * int64(s.cfg.BlockTokens); need > room {
		return fmt.Errorf("subserver %d: request %d: %w: prompt %d + output %d = %d tokens, room for %d",
			s.cfg.Model, r.ID, ErrTooLong, r.Prompt, r.Max, need, room)
	}
	q := s.at(r.Handle)
	if q.state != absent {
		return fmt.Errorf("subserver %d: request %d: %w: submitted while it is here", s.cfg.Model, r.ID, ErrOrder)
	}
	*q = seq{
		n: r.Prompt, committed: committed, end: committed + r.Max, shared: unshared,
		kv: s.cacheHit(q, r), blocks: q.blocks, since: now, id: r.ID, from: s.cfg.Model, state: waiting,
	}
	if r.Verify > 0 {
		q.flags |= verify
		q.kv = min(q.kv, committed-1) // the first draft is scored at the token before it
	}
	if s.drafts {
		s.theirs[r.Handle] = r.Verify
	}
	s.wait.insert(s.seqs, r.Handle)
	return nil
}

// cacheHit is how many known tokens of r are still in KV here. At least one token is always computed.
func (s *Subserver) cacheHit(q *seq, r Request) int32 {
	if q.kv == 0 || q.id != r.ID {
		return 0
	}
	hit := min(q.kv, r.Shared, r.Prompt-1)
	if s.cfg.Retain == RetainBlocks {
		hit -= hit % s.cfg.BlockTokens
	}
	return hit
}

// Cancel ends a request that its client gave up, if it waits or runs here; if it is away, the subserver that holds it
// says so. The Effects hold what peers must hear; a request in the batch in flight ends with that batch.
func (s *Subserver) Cancel(now clock.Instant, h step.Handle) *Effects {
	s.eff.reset()
	q := s.at(h)
	switch q.state {
	case waiting:
		s.wait.remove(h)
		s.kept.Remove(h)
	case running:
		i := s.indexRun(h)
		if s.busy && i < s.cont {
			q.flags |= cancel
			return &s.eff
		}
		s.removeRun(i)
	default:
		return &s.eff
	}
	s.finish(h, q, Done{Handle: h, Status: Cancelled})
	return &s.eff
}

// Stats returns the counts so far.
func (s *Subserver) Stats() Stats { return s.stats }

// Available is the number of requests that a step could take now.
func (s *Subserver) Available() int {
	if s.busy {
		return 0
	}
	return s.available()
}

func (s *Subserver) available() int { return len(s.run) + s.wait.len() }

// at returns h's entry, growing the table.
func (s *Subserver) at(h step.Handle) *seq {
	for int(h) >= len(s.seqs) {
		s.seqs = append(s.seqs, seq{})
		if s.drafts {
			s.theirs = append(s.theirs, 0)
		}
	}
	return &s.seqs[h]
}

func (s *Subserver) indexRun(h step.Handle) int {
	for i, x := range s.run {
		if x == h {
			return i
		}
	}
	panic("core: a running request is not in run")
}

// removeRun takes row i out of run, keeping the order.
func (s *Subserver) removeRun(i int) {
	s.run = append(s.run[:i], s.run[i+1:]...)
	if i < s.cont {
		s.cont--
	}
}

// finish ends a request here, tells the peers that hold state of it, and lets go of its KV. It is in no queue any more.
func (s *Subserver) finish(h step.Handle, q *seq, d Done) {
	for p, j := q.holders, step.ModelID(0); p != 0; p, j = p>>1, j+1 {
		if p&1 != 0 && j != s.cfg.Model {
			s.eff.Send = append(s.eff.Send, step.PeerReq{Handle: h, ID: q.id, From: s.cfg.Model, To: j, Kind: step.Finished})
		}
	}
	s.eff.Done = append(s.eff.Done, d)
	s.leave(h, q)
}

// leave lets go of a request's KV as Retain says; what stays in a prefix cache stays under its handle.
func (s *Subserver) leave(h step.Handle, q *seq) {
	keep := int32(0)
	switch s.cfg.Retain {
	case RetainBlocks:
		keep = q.kv / s.cfg.BlockTokens
	case RetainAll:
		keep = s.pool.Blocks(q.kv)
	}
	s.pool.Give(q.blocks - keep)
	if keep == 0 {
		*q = seq{}
		return
	}
	*q = seq{id: q.id, kv: min(q.kv, keep*s.cfg.BlockTokens), blocks: keep}
	s.kept.Add(h, keep)
}

// Release lets go of whatever is kept for a request that has ended elsewhere. Cached blocks stay cached, for nobody.
func (s *Subserver) Release(now clock.Instant, h step.Handle) {
	q := s.at(h)
	switch q.state {
	case absent:
		s.kept.Orphan(h)
	case pending:
		s.pool.Give(s.kept.Remove(h))
	default:
		panic("core: released while it waits or runs here")
	}
	*q = seq{}
}
