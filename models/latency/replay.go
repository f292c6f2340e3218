package latency

import (
	"errors"
	"math"
	"sort"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
)

// Timed is a step of a log: when it began in its run, what it held and how long it took.
type Timed struct {
	At    clock.Instant
	Shape step.Shape
	Time  time.Duration
}

// Log is one model's measured steps in one run, for steps to be drawn from. It is immutable.
type Log struct {
	steps []Timed
	span  time.Duration // from the run's start to the end of the last step
	law   Affine
	cost  []float64 // of each step by the law, ns
}

// NewLog prepares a log of steps in the order in which they began. law says how much work steps are worth beside each
// other: the distance between two shapes is what the law asks for their difference. It must be of the log's own steps.
func NewLog(law Affine, steps []Timed) (*Log, error) {
	if len(steps) == 0 {
		return nil, errors.New("latency log: no steps")
	}
	l := &Log{steps: steps, law: law}
	for i, s := range steps {
		if i > 0 && s.At < steps[i-1].At {
			return nil, errors.New("latency log: steps out of order")
		}
		l.cost = append(l.cost, float64(law.StepTime(s.Shape)))
		l.span = max(l.span, time.Duration(s.At)+s.Time)
	}
	return l, nil
}

// Replay is a Model that goes along a measured log by the clock: a step takes what the step of its kind took that began
// nearest to its own start, scaled by the law where the two differ, and no step is taken twice before all others like
// it. So whatever the log holds beyond shapes stays as it was: spread, stalls, how long a slow spell lasts, and that one
// hits all models that replay logs of the same run. After the log's end it is at its beginning.
type Replay struct {
	log  *Log
	used []bool
}

// New returns an instance for one run.
func (l *Log) New() *Replay { return &Replay{log: l, used: make([]bool, len(l.steps))} }

// likeness are the distances, as shares of a step, within which another one is of its kind: the narrowest at which the
// log has any counts.
var likeness = [...]float64{.02, .05, .1, .25}

// spell is how far away from its time a step is looked for before one that is less like it will do.
const spell = 10 * time.Millisecond

// StepTime implements Model, for a step at the run's start.
func (r *Replay) StepTime(s step.Shape) time.Duration { return r.StepTimeAt(0, s) }

// StepTimeAt implements Clocked.
func (r *Replay) StepTimeAt(now clock.Instant, s step.Shape) time.Duration {
	l := r.log
	cost := float64(l.law.StepTime(s))
	at := clock.Instant(time.Duration(now) % l.span)
	i, like := r.nearest(at, &s, cost, r.used)
	if !like { // all of its kind have been taken
		i, _ = r.nearest(at, &s, cost, nil)
	}
	r.used[i] = true
	return duration(float64(l.steps[i].Time) * cost / l.cost[i])
}

// nearest is the step, of those not used, that one of shape s which begins at an Instant is taken to be like. like is
// false where none is of its kind: i is then the one that is least unlike it, or -1.
func (r *Replay) nearest(at clock.Instant, s *step.Shape, cost float64, used []bool) (i int, like bool) {
	steps := r.log.steps
	found := [len(likeness)]int{}
	for k := range found {
		found[k] = -1
	}
	likest, least := -1, math.Inf(1)
	after := sort.Search(len(steps), func(i int) bool { return steps[i].At >= at })
	before := after - 1
	for found[0] < 0 && (before >= 0 || after < len(steps)) {
		i := after
		if after == len(steps) || before >= 0 && at.Sub(steps[before].At) < steps[after].At.Sub(at) {
			i = before
			before--
		} else {
			after++
		}
		if used != nil && used[i] {
			continue
		}
		if found[len(found)-1] >= 0 && steps[i].At.Sub(at).Abs() > spell {
			break
		}
		d := r.log.law.apart(s, &steps[i].Shape) / cost
		if d < least {
			likest, least = i, d
		}
		for k, within := range likeness {
			if d <= within && found[k] < 0 {
				found[k] = i
			}
		}
	}
	for _, i := range found {
		if i >= 0 {
			return i, true
		}
	}
	return likest, false
}

// apart is what the law asks for the difference of two shapes, each kind of work by itself, ns. A row is worth a
// decode, an extended one a fed token.
func (a *Affine) apart(s, t *step.Shape) float64 {
	off := func(x, y int64) float64 { return math.Abs(float64(x - y)) }
	ms := (a.C1+a.P1)/2*off(int64(s.Decodes), int64(t.Decodes)) + a.C2*off(s.DecodeContext, t.DecodeContext) +
		a.P1*(off(int64(s.Extends), int64(t.Extends))+off(s.ExtendTokens, t.ExtendTokens)) +
		max(0, a.P2)*off(s.ExtendWork, t.ExtendWork)
	if (s.Extends == 0) != (t.Extends == 0) || (s.Decodes == 0) != (t.Decodes == 0) {
		ms += max(a.C0, a.P0) // steps of another kind are no likeness
	}
	return nsPerMS * ms
}
