package latency

import (
	"errors"
	"math"
	"time"

	"github.com/trbench/trbench/engine/step"
)

// Timed is a step of a log: what it held and how long it took.
type Timed struct {
	Shape step.Shape
	Time  time.Duration
}

// Log is measured steps in the order in which they ran, for steps to be drawn from. It is immutable.
type Log struct {
	steps []Timed
	law   Affine
	cost  []float64 // of each step by the law, ns
}

// NewLog prepares a log. law says how much work steps are worth beside each other: the distance between two shapes is
// what the law asks for their difference. It must be of the log's own steps.
func NewLog(law Affine, steps []Timed) (*Log, error) {
	if len(steps) == 0 {
		return nil, errors.New("latency log: no steps")
	}
	l := &Log{steps: steps, law: law}
	for _, s := range steps {
		l.cost = append(l.cost, float64(law.StepTime(s.Shape)))
	}
	return l, nil
}

// Replay is a Model that goes along a measured log: a step takes what the next one of its kind took there, scaled by
// the law where the two differ. So whatever the log holds beyond shapes stays as it was: spread, stalls, spells, and
// how a step goes that follows on a handover. It begins somewhere in the log, by seed and subserver, and after its end
// again at its beginning.
type Replay struct {
	log *Log
	at  int
}

// New returns an instance for one run.
func (l *Log) New(seed uint64, subserver step.ModelID) *Replay {
	return &Replay{log: l, at: int(mix(mix(seed)+uint64(subserver)+1) % uint64(len(l.steps)))}
}

// likeness are the distances, as shares of a step, within which another one is of its kind: the narrowest at which the
// log has any counts.
var likeness = [...]float64{.02, .05, .1, .25}

// StepTime implements Model.
func (r *Replay) StepTime(s step.Shape) time.Duration {
	l := r.log
	cost := float64(l.law.StepTime(s))
	nearest, least := r.at, math.Inf(1)
	found := [len(likeness)]int{}
	for k := range found {
		found[k] = -1
	}
	for i, n := r.at, 0; n < len(l.steps); n++ {
		if d := l.law.apart(&s, &l.steps[i].Shape) / cost; d < least || d <= likeness[len(likeness)-1] {
			if d < least {
				nearest, least = i, d
			}
			for k, within := range likeness {
				if d <= within && found[k] < 0 {
					found[k] = i
				}
			}
			if found[0] >= 0 {
				break
			}
		}
		if i++; i == len(l.steps) {
			i = 0
		}
	}
	for _, i := range found {
		if i >= 0 {
			nearest = i
			break
		}
	}
	if r.at = nearest + 1; r.at == len(l.steps) {
		r.at = 0
	}
	return duration(float64(l.steps[nearest].Time) * cost / l.cost[nearest])
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
