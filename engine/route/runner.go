package route

import (
	"errors"
	"fmt"
	"iter"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// Spec describes a program that a Runner runs.
type Spec struct {
	Name    string
	Program Program
	Models  int // of the deployment, >= 1
	// Rules are what the program acts on, by model; models beyond have none. A simulation draws the scores so that the
	// rules fire as wanted, and Token.Score is set where a rule is on the external score.
	Rules []signal.Rule
	// Reads are optional columns that the program reads beside those of its rules, TopK the candidates of step.Top.
	Reads step.Columns
	TopK  int
	// Seed keys the draws of Request.Rand.
	Seed uint64
	// Observe, where not nil, hears of each step that a request asks for: what the program's suspension points are. It
	// costs microseconds a step.
	Observe func(Suspension)
	// Chain, where not nil, is the Markov chain of the program's hops, as Chained returns it.
	Chain func(rates []float64) (p, c [][]float64)
}

// Suspension is a place where a program waits for a step.
type Suspension struct {
	Place string // "cascade.go:12"
	Call  string // "Decode"
	Model step.ModelID
}

// Observed is the router of the same program with an observer; a router that is no program is returned as it is.
func Observed(r Router, observe func(Suspension)) Router {
	switch r := r.(type) {
	case *Runner:
		s := r.spec
		s.Observe = observe
		return NewRunner(s)
	case chainedRunner:
		return Observed(r.Runner, observe)
	}
	return r
}

// Runner makes a Router of a Program: one coroutine a request, resumed as each of the request's steps ends. It is a
// Follower, for one run and one goroutine at a time.
//
// A step costs two switches between coroutines and allocates nothing; a live request costs its coroutine's stack and
// about half a kilobyte.
type Runner struct {
	CommitAll
	spec     Spec
	reads    step.Columns
	external [step.MaxModels]bool // the model's rule is on the external score
	live     []*Request           // by handle
	row      int                  // of the batch being routed
	judging  bool                 // a predicate of that row runs
}

var (
	_ Follower = (*Runner)(nil)
	_ Drafter  = (*Runner)(nil)
	_ Reader   = (*Runner)(nil)
	_ Ruled    = (*Runner)(nil)
	_ Chained  = chainedRunner{}
)

// NewRunner returns the router of a program.
func NewRunner(s Spec) *Runner {
	r := &Runner{spec: s, reads: s.Reads}
	for m, rule := range s.Rules {
		if rule.Used() {
			r.reads |= rule.Score.Columns()
			r.external[m] = rule.Score == signal.External
		}
	}
	return r
}

// Chained is the router with its Markov chain, where the program has one.
func (r *Runner) chained() Router {
	if r.spec.Chain == nil {
		return r
	}
	return chainedRunner{r}
}

// chainedRunner is a Runner of a program whose hops form a Markov chain.
type chainedRunner struct{ *Runner }

// Chain implements Chained.
func (c chainedRunner) Chain(rates []float64) (p, commits [][]float64) { return c.spec.Chain(rates) }

// Fresh implements Follower.
func (c chainedRunner) Fresh() Router { return chainedRunner{NewRunner(c.spec)} }

// Name is the program's name.
func (r *Runner) Name() string { return r.spec.Name }

// Fresh implements Follower.
func (r *Runner) Fresh() Router { return NewRunner(r.spec) }

// Drafts implements Drafter: any program may.
func (r *Runner) Drafts() bool { return true }

// Reads implements Reader.
func (r *Runner) Reads() (step.Columns, int) { return r.reads, r.spec.TopK }

// Rule implements Ruled.
func (r *Runner) Rule(m step.ModelID) signal.Rule {
	if int(m) < len(r.spec.Rules) {
		return r.spec.Rules[m]
	}
	return signal.Rule{}
}

// Begin implements Follower: the program runs to its first step.
func (r *Runner) Begin(a Arrival) (step.ModelID, error) {
	for int(a.Handle) >= len(r.live) {
		r.live = append(r.live, nil)
	}
	q := &Request{
		runner: r, id: a.ID, prompt: a.Prompt, n: a.Prompt, committed: a.Prompt, base: a.Prompt,
		end: a.Prompt + a.Output, now: a.At, query: a.Score, at: noModel,
	}
	r.live[a.Handle] = q
	q.next, q.stop = iter.Pull(q.run)
	q.next()
	if q.ended {
		r.live[a.Handle] = nil
		return 0, q.early()
	}
	return q.model, nil
}

const noModel step.ModelID = 255

// End implements Follower.
func (r *Runner) End(h step.Handle) {
	if int(h) >= len(r.live) || r.live[h] == nil {
		return
	}
	q := r.live[h]
	r.live[h] = nil
	q.stop()
}

// Close implements Follower.
func (r *Runner) Close() {
	for h := range r.live {
		r.End(step.Handle(h))
	}
}

// Live is the number of requests whose programs have not been let go.
func (r *Runner) Live() int {
	n := 0
	for _, q := range r.live {
		if q != nil {
			n++
		}
	}
	return n
}

// Route implements Router.
func (r *Runner) Route(m step.ModelID, b *step.Batch, res *step.Result, mv *Moves) {
	if res == nil {
		res = &step.Result{}
	}
	scored := 0 // drafts of the rows before
	for r.row = 0; r.row < b.Len(); r.row++ {
		r.rows(m, b, res, mv, &scored)
	}
}

// rows routes rows from r.row on. A predicate that panics fails its request and stops the loop; Route goes on after it.
func (r *Runner) rows(m step.ModelID, b *step.Batch, res *step.Result, mv *Moves, scored *int) {
	defer func() {
		if !r.judging {
			return
		}
		r.judging = false
		q := r.live[b.Handle[r.row]]
		q.blame(recover())
		mv.To[r.row], mv.End[r.row] = m, q.failure
	}()
	for ; r.row < len(b.Handle); r.row++ {
		i := r.row
		if !b.Sample[i] {
			continue
		}
		q := r.live[b.Handle[i]]
		q.accept = q.n - q.committed
		if drafted := b.Verify[i]; drafted > 0 || q.op == verify {
			q.score(res, i, *scored, int(drafted))
			*scored += int(drafted)
		}
		q.take(r, m, b, res, i)
		if q.stay != nil && q.n < q.end && !q.verdict.Stop {
			r.judging = true
			stays := q.stay(q.verdict.Token)
			if r.judging = false; stays {
				mv.To[i], mv.Accept[i] = m, q.accept
				q.committed = q.n
				continue
			}
		}
		q.next()
		q.decide(m, mv, i)
	}
}

// score takes what row i says of the drafts that it verified, the first of which is number first in the result.
func (q *Request) score(res *step.Result, i, first, drafted int) {
	v := &q.verdict
	v.Drafted, v.Accepted, v.Drafts = drafted, drafted, nil
	if drafted == 0 {
		return
	}
	if res.Drafts != nil {
		v.Drafts = res.Drafts[first : first+drafted]
	}
	if i < len(res.Accept) {
		v.Accepted = int(max(0, min(res.Accept[i], int32(drafted))))
	}
	if q.op == verify {
		q.accept = int32(v.Accepted)
	}
}

// take takes the token that row i has sampled.
func (q *Request) take(r *Runner, m step.ModelID, b *step.Batch, res *step.Result, i int) {
	q.base = q.committed
	q.n = q.base + q.accept + 1
	q.at, q.now = m, b.End
	t := &q.verdict.Token
	t.Model, t.Pos = m, b.Pos[i]
	if r.external[m] {
		t.Score = res.Signal[i]
	} else {
		t.Score = 0
	}
	if r.reads != 0 {
		q.columns(res, b, i)
	}
	if res.Token != nil {
		t.ID = res.Token[i]
	}
	if res.Stop != nil {
		t.Stop = res.Stop[i]
	}
	if q.op == verify && res.Token != nil {
		q.verdict.Bonus, q.bonusStop = t.ID, t.Stop
		q.writes(int(q.accept))
	}
}

// writes sets the token that a verifying step writes after accept drafts.
func (q *Request) writes(accept int) {
	v := &q.verdict
	v.ID, v.Stop = v.Bonus, q.bonusStop
	if v.Drafts != nil && accept < v.Drafted {
		v.ID, v.Stop = v.Drafts[accept].Instead, v.Drafts[accept].Ends
	}
}

// columns takes the scores of row i that the program asked for.
func (q *Request) columns(res *step.Result, b *step.Batch, i int) {
	t := &q.verdict.Token
	if res.Entropy != nil {
		t.Entropy = res.Entropy[i]
	}
	if res.Normalised != nil {
		t.Normalised = res.Normalised[i]
	}
	if res.Confidence != nil {
		t.Confidence = res.Confidence[i]
	}
	if res.Margin != nil {
		t.Margin = res.Margin[i]
	}
	if res.Top != nil {
		q.top = res.Top[i*b.TopK : (i+1)*b.TopK]
	}
}

// decide writes what the program wants into row i.
func (q *Request) decide(m step.ModelID, mv *Moves, i int) {
	mv.To[i], mv.Accept[i], mv.Drop[i] = m, q.accept, q.drop
	if q.ended || q.failure != nil {
		mv.End[i] = q.outcome()
		if last := min(q.n, q.base+q.accept); q.stopAt > 0 && q.stopAt <= last { // what follows a draft that ends is no output
			mv.Drop[i] = q.base + q.accept + 1 - q.stopAt
			if q.failure == nil {
				mv.End[i] = ErrEnd // core may not see it: what is dropped may have reached the limit
			}
		}
		return
	}
	mv.To[i] = q.model
	switch mv.Draft[i] = q.hold; {
	case !q.hold:
		q.committed, q.stopAt = q.n, 0
	case q.verdict.Stop && q.drop == 0:
		q.stopAt = q.n
	case q.stopAt > min(q.n, q.base+q.accept):
		q.stopAt = 0
	}
}

// outcome is the Moves.End of a program that has returned or failed: nil where core sees the end by itself.
func (q *Request) outcome() error {
	switch {
	case q.failure != nil:
		return q.failure
	case q.n >= q.end:
		return nil
	case q.stopped():
		return ErrEnd
	}
	return q.early()
}

// early is the failure of a program that returned before the end.
func (q *Request) early() error {
	if q.failure == nil {
		q.failure = &Failure{
			Program: q.runner.spec.Name, Err: fmt.Errorf("%w: %d of %d tokens", ErrEarly, q.n-q.prompt, q.end-q.prompt),
		}
	}
	return q.failure
}

// Send implements Router: the program has said what it drops.
func (r *Runner) Send(b *step.Batch, row int, to step.ModelID) int32 {
	return r.live[b.Handle[row]].drop
}

// run is the coroutine.
func (q *Request) run(yield func(struct{}) bool) {
	q.yield = yield
	q.inside = true
	defer func() {
		if p := recover(); p != nil {
			q.blame(p)
		}
		q.inside, q.ended = false, true
	}()
	err := q.runner.spec.Program(q)
	if err == nil || q.letGo {
		return
	}
	var f *Failure
	switch {
	case errors.As(err, &f): // it knows better where
		q.failure = f
	case q.failure == nil:
		q.failure = &Failure{Program: q.runner.spec.Name, Err: err}
	}
}

// blame makes a failure of a panic.
func (q *Request) blame(p any) {
	if f, ok := p.(*Failure); ok {
		if q.failure == nil {
			q.failure = f
		}
		return
	}
	if q.failure == nil {
		q.failure = &Failure{Program: q.runner.spec.Name, Place: panicked(), Err: fmt.Errorf("panic: %v", p)}
	}
}
