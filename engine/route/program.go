package route

import (
	"errors"
	"fmt"
	"math"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// A Program is a routing algorithm as seen by one request: straight-line code, in which each call of Decode, Draft,
// Verify and their kin returns when the step has run. It returns when the request is done. An error that it returns
// fails the request, and so does a panic, a call that makes no sense, a return before the end or a step after it; other
// requests go on.
//
// A program is deterministic given what its steps report: no clock but Now, no randomness but Rand, no state that two
// requests share. It must not hand its Request to another goroutine, and its loops must run steps: a loop that calls
// only Done or its like fails after a while, but one that calls nothing at all cannot be stopped by anybody.
//
//	func(r *route.Request) error {
//		for !r.Done() {
//			t, err := r.Decode(r.Small())
//			if err != nil {
//				return err
//			}
//			if t.Confidence < .5 {
//				r.Drop(1)
//				if _, err := r.Decode(r.Large()); err != nil {
//					return err
//				}
//			}
//		}
//		return nil
//	}
type Program func(*Request) error

var (
	// ErrUnknownModel is the kind of a step on a model that the deployment doesn't have.
	ErrUnknownModel = errors.New("unknown model")
	// ErrPastEnd is the kind of a step after the request's last token.
	ErrPastEnd = errors.New("step past the end of the request")
	// ErrEarly is the kind of a program that returned before the request's last token.
	ErrEarly = errors.New("returned before the end of the request")
	// ErrStuck is the kind of a program that loops without running a step, or whose steps come to nothing.
	ErrStuck = errors.New("makes no progress")
	// ErrMisuse is the kind of a call that makes no sense where it stands.
	ErrMisuse = errors.New("misuse")
	// ErrLetGo is what a step returns once its request has been cancelled or the run is over: the program must return.
	ErrLetGo = errors.New("the request was let go")
)

// Token is one sampled token and what was reported about it. Scores are those that the program's options ask for; the
// others are 0.
type Token struct {
	Score      float64 // the external router's, in the unit that the program's rule names
	Entropy    float64 // nats
	Normalised float64 // entropy over ln V, V the vocabulary
	Confidence float64 // largest probability
	Margin     float64 // largest less second largest probability
	ID         int32   // in the vocabulary; 0 where only time is simulated
	Pos        int32   // index in the sequence, prompt included
	Model      step.ModelID
	Stop       bool // ends the request before its limit
}

// Verdict is what a verifying step found.
type Verdict struct {
	Token    // the verifying model's own, after the last draft that it keeps
	Drafted  int
	Accepted int // leading drafts that the rule of speculative sampling keeps
	// Drafts holds a score for each draft, if the options ask for step.Drafts. It is valid until the next step.
	Drafts []step.DraftScore
	// Bonus is the sampled token's id if all drafts are kept; Token.ID is the one after those that are.
	Bonus int32
}

// Request is one request as its program sees it. Its methods may be called by the program alone, while it runs.
//
// A token is in one of three states. It is new when the step that sampled it returns; Drop takes it back. The next step
// (or the program's return) commits what is new, for good: it is streamed to the client. Unless it is held: a held
// token, one that Draft sampled or that Hold keeps, stays uncommitted through the next step, to be verified or dropped
// later.
//
// Invariant: prompt <= committed <= n.
type Request struct {
	// What a step touches comes first, in three cache lines.
	next      func() (struct{}, bool) // resumes the program
	yield     func(struct{}) bool     // suspends it
	stay      func(Token) bool        // DecodeWhile's
	failure   *Failure                // the first one
	runner    *Runner
	now       clock.Instant
	n         int32 // tokens, uncommitted ones included
	committed int32
	end       int32  // tokens at which the request is complete
	base      int32  // committed tokens before the step
	accept    int32  // drafts that the step keeps; its own token follows them
	drop      int32  // tokens dropped since the step
	idle      int32  // calls since the step
	stopAt    int32  // n after a held token that ends the request; 0 is none
	draws     uint32 // since the step
	seen      int32  // committed tokens when the program last asked for a step
	stalled   int32  // steps since that changed
	op        op
	model     step.ModelID // of the step that is wanted
	at        step.ModelID // of the step before
	hold      bool
	inside    bool // the program runs
	letGo     bool
	ended     bool // it has returned
	bonusStop bool // the token after all drafts of a verifying step ends the request
	verdict   Verdict

	top    []step.Candidate
	query  float64
	id     step.RequestID
	prompt int32
	stop   func() // ends the coroutine
}

// op is the kind of step that a program waits for.
type op uint8

const (
	decode op = iota
	draft
	extend
	verify
)

// Decode runs one step on model m and returns the token that it samples. If tokens are held, m processes them with the
// others and they stay: with the new one, the next step commits them.
func (r *Request) Decode(m step.ModelID) (Token, error) {
	err := r.step(decode, m)
	return r.verdict.Token, err
}

// DecodeWhile decodes on model m as long as stay holds for the token: those tokens are committed, one a step, and the
// program isn't woken, which halves the cost. It returns the first token for which stay doesn't hold, still new, or the
// request's last one. stay must be a pure function of the token; it must not call the request's methods.
func (r *Request) DecodeWhile(m step.ModelID, stay func(Token) bool) (Token, error) {
	r.stay = stay
	err := r.step(decode, m)
	r.stay = nil
	return r.verdict.Token, err
}

// Draft is Decode and Hold: the token stays uncommitted until it is verified, committed or dropped. Drafts beyond the
// request's end are steps past it: a verification yields a token of its own, so Left() - 1 of them are of use.
func (r *Request) Draft(m step.ModelID) (Token, error) {
	err := r.step(draft, m)
	r.hold = err == nil
	return r.verdict.Token, err
}

// Extend runs one step on model m over the tokens that it hasn't seen, and returns what it says of the next token,
// which is dropped at once: the price of an opinion. Held tokens stay held.
func (r *Request) Extend(m step.ModelID) (Token, error) {
	hold := r.hold
	err := r.step(extend, m)
	if err == nil {
		r.hold = hold
		r.drop++
		r.n--
	}
	return r.verdict.Token, err
}

// Verify runs one step on model m that scores all held tokens in one pass and samples one more. Of the drafts it keeps
// Accepted, those that the rule min(1, p/q) accepts (see Accept for another rule); the sampled token follows them and
// is m's own: the correction of the first rejected draft, or a bonus. Without held tokens it is Decode.
func (r *Request) Verify(m step.ModelID) (Verdict, error) {
	if m == r.at && r.n > r.committed && r.hold {
		return Verdict{}, r.fail(fmt.Errorf("%w: model %d can't verify its own drafts", ErrMisuse, m))
	}
	err := r.step(verify, m)
	return r.verdict, err
}

// Accept makes the verifying step that has just returned keep the first n drafts, instead of those that the rule of
// speculative sampling keeps.
func (r *Request) Accept(n int) {
	r.tick()
	if r.op != verify || n < 0 || n > r.verdict.Drafted || r.drop > 0 || r.ended {
		r.quit(fmt.Errorf("%w: Accept(%d) after a step that verified %d drafts, %d tokens dropped since", ErrMisuse, n,
			r.verified(), r.drop))
	}
	r.accept = int32(n)
	r.n = r.base + r.accept + 1
	r.writes(n)
}

func (r *Request) verified() int {
	if r.op != verify {
		return 0
	}
	return r.verdict.Drafted
}

// Drop takes the last n uncommitted tokens back: every model forgets them, and KV that was computed for them is stale.
func (r *Request) Drop(n int) {
	r.tick()
	if n < 0 || n > int(r.n-r.committed) {
		r.quit(fmt.Errorf("%w: Drop(%d) of %d uncommitted tokens", ErrMisuse, n, r.n-r.committed))
	}
	r.n -= int32(n)
	r.drop += int32(n)
}

// Hold keeps all uncommitted tokens uncommitted through the next step.
func (r *Request) Hold() { r.hold = true }

// Commit makes the next step commit all tokens, held ones too.
func (r *Request) Commit() { r.hold = false }

// Done says that the request has all its tokens, held ones included, or a token that ends it.
func (r *Request) Done() bool {
	r.tick()
	return r.n >= r.end || r.stopped() || r.letGo || r.failure != nil
}

// Left is how many tokens the request still needs at most, held ones counted as there.
func (r *Request) Left() int {
	if r.Done() {
		return 0
	}
	return int(r.end - r.n)
}

// stopped says that a token that ends the request is among those that are kept.
func (r *Request) stopped() bool {
	return r.verdict.Stop && r.drop == 0 || r.stopAt > 0 && r.stopAt <= min(r.n, r.base+r.accept)
}

// Held is the number of uncommitted tokens.
func (r *Request) Held() int { return int(r.n - r.committed) }

// Len is the number of tokens, prompt and uncommitted ones included.
func (r *Request) Len() int { return int(r.n) }

// Prompt is the number of tokens of the prompt.
func (r *Request) Prompt() int { return int(r.prompt) }

// Models is the number of models of the deployment.
func (r *Request) Models() int { return r.runner.spec.Models }

// Small is the smallest model.
func (r *Request) Small() step.ModelID { return 0 }

// Large is the largest model.
func (r *Request) Large() step.ModelID { return step.ModelID(r.runner.spec.Models - 1) }

// ID is the request's position in the workload's list.
func (r *Request) ID() step.RequestID { return r.id }

// Query is what the external router says of the prompt.
func (r *Request) Query() float64 { return r.query }

// Top are the likeliest next tokens of the step that has just returned, likeliest first: as many as the options ask
// for. It is valid until the next step.
func (r *Request) Top() []step.Candidate { return r.top }

// Now is when the step that has just returned ended; before the first one, when the request arrived.
func (r *Request) Now() clock.Instant {
	r.tick()
	return r.now
}

// Rand is a uniform draw in [0, 1). It depends on the seed, the request, its number of tokens and the calls of Rand
// since the step, and on nothing else.
func (r *Request) Rand() float64 {
	r.tick()
	r.draws++
	key := signal.Key(r.runner.spec.Seed+uint64(r.draws)<<32, r.id)
	return signal.Float64(key, r.n, 0, signal.Programmed)
}

// maxIdle is how many calls a program may make between two steps: a bound on loops that run none.
const maxIdle = 1 << 20

// tick counts a call that runs no step.
func (r *Request) tick() {
	if r.idle++; r.idle > maxIdle {
		r.quit(fmt.Errorf("%w: %d calls since the last step", ErrStuck, maxIdle))
	}
}

// step suspends the program until the step that it wants has run.
func (r *Request) step(o op, m step.ModelID) error {
	if r.failure != nil || r.letGo || !r.inside {
		return r.refuse()
	}
	if int(m) >= r.runner.spec.Models {
		return r.fail(fmt.Errorf("%w %d: the deployment has %d, 0 to %d", ErrUnknownModel, m, r.Models(), r.Models()-1))
	}
	if r.committed != r.seen {
		r.seen, r.stalled = r.committed, 0
	} else if r.stalled++; r.stalled > r.patience() {
		return r.fail(fmt.Errorf("%w: %d steps and no token committed", ErrStuck, r.stalled-1))
	}
	if (r.n >= r.end || r.stopped()) && r.over(o) {
		return r.fail(fmt.Errorf("%w: it has its %d tokens", ErrPastEnd, r.n-r.prompt))
	}
	if observe := r.runner.spec.Observe; observe != nil {
		observe(Suspension{caller(), r.call(o), m})
	}
	r.op, r.model = o, m
	r.inside = false
	if !r.yield(struct{}{}) {
		r.inside, r.letGo = true, true
		return ErrLetGo
	}
	r.inside = true
	r.idle, r.draws, r.drop, r.hold = 0, 0, 0, false
	return nil
}

// patience is how many steps may commit nothing: enough for every model to write and verify the whole answer several
// times over.
func (r *Request) patience() int32 {
	const floor, times = 1000, 4
	return int32(min(int64(floor)+times*int64(r.runner.spec.Models)*int64(r.end-r.prompt), math.MaxInt32-1))
}

// call is the name of the call that asks for a step.
func (r *Request) call(o op) string {
	if r.stay != nil {
		return "DecodeWhile"
	}
	return [...]string{decode: "Decode", draft: "Draft", extend: "Extend", verify: "Verify"}[o]
}

// over says that a step comes after the end: all tokens are there, and it isn't one that judges held ones.
func (r *Request) over(o op) bool {
	return !r.hold || r.n == r.committed || o == decode || o == draft
}

// refuse is what a step returns that can't run any more. A program that goes on calling is stopped by a panic.
func (r *Request) refuse() error {
	r.idle += maxIdle / 1024
	r.tick()
	switch {
	case r.letGo:
		return ErrLetGo
	case r.failure != nil:
		return r.failure
	}
	r.quit(fmt.Errorf("%w: a step outside the program", ErrMisuse))
	return nil
}

// fail notes what fails the request, and where.
func (r *Request) fail(err error) error {
	if r.failure == nil {
		r.failure = &Failure{Program: r.runner.spec.Name, Place: caller(), Err: err}
	}
	return r.failure
}

// quit unwinds the program.
func (r *Request) quit(err error) {
	r.fail(err)
	panic(r.failure)
}
