package dispatch

import (
	"fmt"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// Observation counts what a router did with requests that ran one at a time: its three functions as tables.
type Observation struct {
	Models int
	// Steps[i] counts the steps on model i. To[i][j] are those followed by a step on model j; the last step of a request
	// is followed by none.
	Steps []int64
	To    [][]int64
	// Committed[i][j] are the tokens committed by the steps that To[i][j] counts, Dropped[i][j] those they took back:
	// what Send drops where i != j, and drafts that were not kept.
	Committed, Dropped [][]int64
	// Verified[i][j] are the drafts that came with those hops for j to verify: what Receive does not commit.
	Verified [][]int64
	Requests int
	Failed   int   // of which the router failed
	Err      error // the first failure
}

// Run is how much an observation watches.
type Run struct {
	Requests       int
	Prompt, Output int32 // tokens of each
}

// Observe runs requests through a router, one after another and without any cost, on what a source says.
func Observe(r route.Router, s signal.Source, models int, run Run) (*Observation, error) {
	if want, _ := route.Reads(r); want != 0 {
		if _, ok := s.(signal.Reporter); !ok {
			return nil, fmt.Errorf("dispatch: the router reads scores that the signal doesn't report")
		}
	}
	o := &Observation{Models: models, Steps: make([]int64, models), Requests: run.Requests}
	for _, m := range []*[][]int64{&o.To, &o.Committed, &o.Dropped, &o.Verified} {
		for range models {
			*m = append(*m, make([]int64, models))
		}
	}
	fresh, done := route.Fresh(r)
	defer done()
	brain := New(fresh, PerToken)
	results := signal.NewResults(s, 1)
	admitter, _ := s.(signal.Admitter)
	for id := range run.Requests {
		a := route.Arrival{ID: step.RequestID(id), Prompt: run.Prompt, Output: run.Output}
		if admitter != nil {
			a.Score = admitter.Admit(0, a.ID, a.Prompt)
		}
		if err := o.request(brain, results, a); err != nil {
			o.Failed++
			if o.Err == nil {
				o.Err = err
			}
		}
		brain.Forget(0)
	}
	return o, nil
}

// request runs one request.
func (o *Observation) request(brain *Orchestrator, results *signal.Results, a route.Arrival) error {
	b := &step.Batch{
		Handle: []step.Handle{0}, ID: []step.RequestID{a.ID}, Pos: make([]int32, 1), Feed: []int32{1}, Verify: make([]int32, 1),
		Sample: []bool{true},
	}
	b.Want, b.TopK = brain.Reads()
	var reply Reply
	call, err := brain.Admit(a)
	if err != nil {
		return err
	}
	for now := clock.Instant(0); ; now++ {
		b.Model, b.Pos[0], b.Verify[0] = call.Model, call.Prompt, call.Verify
		reply.Take(b, results.Of(b), 0, 0)
		o.Steps[call.Model]++
		v := brain.Reply(now, 0, &reply)
		if v.Done {
			return v.Err
		}
		i, j := call.Model, v.Next.Model
		o.To[i][j]++
		o.Committed[i][j] += int64(v.Commit)
		o.Dropped[i][j] += int64(call.Prompt + 1 - v.Next.Prompt)
		o.Verified[i][j] += int64(v.Next.Verify)
		call = v.Next
	}
}

// P is the probability that a step on model i is followed by one on model j; a row of zeros where there was none.
func (o *Observation) P() [][]float64 { return o.ratio(o.To, nil) }

// C is the mean number of tokens that such a transition commits; 0 where there was none.
func (o *Observation) C() [][]float64 { return o.ratio(o.Committed, o.To) }

// ratio is x / y; a nil y is the sum of x's row.
func (o *Observation) ratio(x, y [][]int64) [][]float64 {
	out := make([][]float64, o.Models)
	for i := range out {
		out[i] = make([]float64, o.Models)
		sum := int64(0)
		for _, n := range x[i] {
			sum += n
		}
		for j := range out[i] {
			of := sum
			if y != nil {
				of = y[i][j]
			}
			if of > 0 {
				out[i][j] = float64(x[i][j]) / float64(of)
			}
		}
	}
	return out
}
