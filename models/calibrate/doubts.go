package calibrate

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/trbench/trbench/models/latency"
)

// Where a doubt becomes a warning.
const (
	driftWorth   = .01 // change over the log, as a fraction
	overlapWorth = .02 // more time of a step beside a peer's, as a fraction
	heldOutWorth = .05
	meanWorth    = .05
	rareEntries  = 10   // entries into a state below which its moves are hardly known
	reject       = 1e-3 // probability below which an assumption is taken as failed
)

// warn says where the assumptions of a model's fit fail.
func (r *ModelReport) warn(f *modelFit) {
	say := func(format string, args ...any) { r.Warnings = append(r.Warnings, fmt.Sprintf(format, args...)) }
	if r.Unknown > 0 {
		say("%d of %d steps mix extends with other rows, and the log doesn't tell them apart: they are left out "+
			"(columns decodes, decode_context_tokens, extend_work)", r.Unknown, r.Steps)
	}
	r.warnCover(say)
	if r.Table != nil {
		if n, all := r.Table.empty(); n > 0 {
			say("%d of the table's %d points have hardly a step near: they are the affine law's, extrapolated", n, all)
		}
	}
	if change, significant := drift(f.joint.x[0]); significant && math.Abs(change) > driftWorth {
		say("the residual drifts: at the end of the log a step of the same shape takes %+.1f %% more than at its "+
			"beginning; a chain has no trend", 100*change)
	}
	if n := r.Steps; n > chainSteps {
		say("the chain is fitted to the first %d of %d steps", chainSteps, n)
	}
	for _, s := range r.Chain.States[1:] {
		if s.Entries < rareEntries {
			say("the log enters state %s %.1f times: how often it comes and how long it stays is hardly known",
				s.Name, s.Entries)
		}
	}
	if run, was := r.Chain.mean(), r.Chain.logMean(); math.Abs(run/was-1) > meanWorth {
		say("in the long run the chain makes steps %+.1f %% longer than they were in the log, whose states come "+
			"too seldom to tell", 100*(run/was-1))
	}
	if state, p := f.memory(); state >= 0 {
		say("stays in state %s are not geometric (p = %.1g): a chain forgets how long it has stayed",
			r.Chain.States[state].Name, p)
	}
	if more, significant := f.beside(); significant && math.Abs(more) > overlapWorth {
		say("a step beside another model's takes %+.1f %% more than alone: contention on the same GPUs? "+
			"(--contention %.2g takes it out)", 100*more, max(0, more+f.options.Contention))
	}
	if bias := r.Error.HeldOutBias.Or(0); math.Abs(bias) > max(heldOutWorth, 4*f.chance) {
		say("fitted to the first four fifths of the log, the law is off by %+.1f %% on the last", 100*bias)
	}
	if cell, off, significant := f.byShape(); significant {
		more := "a table may (--law table)"
		if r.Law == latency.KindTable {
			more = "it is not what a table's points can tell"
		}
		say("the law doesn't hold for all shapes: %s take %+.1f %% beside the others; states may stand for "+
			"shapes. %s", cell, 100*off, more)
	}
}

// warnCover says what the log can't tell.
func (r *ModelReport) warnCover(say func(string, ...any)) {
	c := &r.Covers
	switch {
	case c.Extends+c.Mixed == 0:
		say("the log has no extends: a prefill is priced as a decode step's base, which is far too little")
		return
	case c.Decodes+c.Mixed == 0:
		say("the log has no decodes: only prefills and resumes are priced from it")
		return
	case c.whole == 0:
		say("no extend of the log starts from nothing: prefills are extrapolated from resumes")
	}
	for i, k := range r.Coefficients {
		if k.Told {
			continue
		}
		why := "the other terms say the same of every step in the log"
		switch i {
		case c1:
			why = "the batch never changes apart from the context"
		case c2:
			why = "the context never changes"
		case p0, p1, p2:
			why = "extends differ too little in length, or are as cheap as a decode"
			if i == p0 && c.Extends == 0 {
				why = "extends only run beside decodes here, whose base covers theirs"
			}
		}
		say("%s is not told: %s; it is 0, and other shapes are extrapolated", k.Name, why)
	}
}

// drift is the change of a residual over the log, as a fraction, and whether it is more than chance: a line through the
// means of 40 blocks.
func drift(x []float64) (change float64, significant bool) {
	var at, mean []float64
	for b := range blocks {
		var values []float64
		for _, v := range x[b*len(x)/blocks : (b+1)*len(x)/blocks] {
			if !math.IsNaN(v) {
				values = append(values, v)
			}
		}
		if len(values) > 0 {
			at, mean = append(at, (float64(b)+.5)/blocks), append(mean, average(values))
		}
	}
	n := float64(len(at))
	if n < 10 {
		return 0, false
	}
	middle, level := average(at), average(mean)
	xx, xy := 0.0, 0.0
	for i := range at {
		xx += (at[i] - middle) * (at[i] - middle)
		xy += (at[i] - middle) * (mean[i] - level)
	}
	slope := xy / xx
	left := 0.0
	for i := range at {
		d := mean[i] - level - slope*(at[i]-middle)
		left += d * d
	}
	se := math.Sqrt(left / (n - 2) / xx)
	t := math.Abs(slope) / math.Max(se, 1e-12)
	p := 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 2}.Survival(t)
	return math.Expm1(slope), p < reject
}

// memory tests the stays of each state against a geometric law. It returns the state that fails worst, -1 where none
// does, or where states lie too close to be told apart step by step.
func (f *modelFit) memory() (state int, p float64) {
	const apart = 4 // spreads between states
	c := f.joint.chain
	k := c.states()
	if k == 1 {
		return -1, 1
	}
	sorted := slices.Clone(c.mu)
	slices.Sort(sorted)
	for i := 1; i < k; i++ {
		if sorted[i]-sorted[i-1] < apart*c.sigma {
			return -1, 1
		}
	}
	stays := make([]hazard, k)
	gamma := f.joint.post[0].gamma
	length, now := 0, -1
	for t := range len(gamma) / k {
		best := 0
		for i, g := range gamma[t*k : t*k+k] {
			if g > gamma[t*k+best] {
				best = i
			}
		}
		if best == now {
			length++
			continue
		}
		if now >= 0 {
			stays[now].add(length, true)
		}
		now, length = best, 1
	}
	stays[now].add(length, false)
	state, p = -1, reject
	for i := range stays {
		if test, ok := stays[i].geometric(); ok && test.P < p && test.worth() {
			state, p = i, test.P
		}
	}
	return state, p
}

// beside compares steps that a peer ran beside with steps alone: how much longer they take, as a fraction, and whether
// that is more than chance.
func (f *modelFit) beside() (more float64, significant bool) {
	var with, without []float64
	for t, v := range f.joint.x[0] {
		switch share := f.overlap[t]; {
		case math.IsNaN(v):
		case share > .9:
			with = append(with, v)
		case share < .1:
			without = append(without, v)
		}
	}
	if len(with) < 30 || len(without) < 30 {
		return 0, false
	}
	d := average(with) - average(without)
	se := math.Sqrt(variance(with)/float64(len(with)) + variance(without)/float64(len(without)))
	return math.Expm1(d), math.Abs(d) > 5*se
}

// variance is the sample variance.
func variance(values []float64) float64 {
	mean, sum := average(values), 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return sum / float64(len(values)-1)
}

// byShape looks for kinds of steps whose residual is unlike the others': it returns the one that is furthest off, among
// those that are more than chance and a few per cent off.
func (f *modelFit) byShape() (cell string, off float64, significant bool) {
	const (
		worth  = .02 // of a step
		sure   = 5   // standard errors
		fewest = 30  // steps of a kind
	)
	x := f.joint.x[0]
	// The means of a chain's residuals wander more than independent ones.
	lag := correlation(x)
	inflate := math.Sqrt((1 + lag) / (1 - lag))
	groups := map[string][]float64{}
	var all []float64
	for t, v := range x {
		if math.IsNaN(v) {
			continue
		}
		s := &f.steps[t].shape
		kind := fmt.Sprintf("decodes of batch %d to %d", floor2(s.Decodes), 2*floor2(s.Decodes)-1)
		switch {
		case s.Extends > 0 && s.Decodes > 0:
			kind = "steps of decodes and extends"
		case s.Extends > 0 && s.ExtendContext > s.ExtendTokens:
			kind = "resumes alone"
		case s.Extends > 0:
			kind = "prefills alone"
		case s.Decodes == 1:
			kind = "decodes of batch 1"
		}
		groups[kind] = append(groups[kind], v)
		all = append(all, v)
	}
	kinds := make([]string, 0, len(groups))
	for k := range groups {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	mean, sd := average(all), math.Sqrt(variance(all))
	for _, k := range kinds {
		n := float64(len(groups[k]))
		rest := float64(len(all)) - n
		if n < fewest || rest < fewest {
			continue
		}
		d := (average(groups[k]) - mean) * float64(len(all)) / rest // from the mean of the others
		if se := sd * math.Sqrt(1/n+1/rest) * inflate; math.Abs(d) > max(worth, sure*se) &&
			math.Abs(d) > math.Abs(off) {
			cell, off, significant = k, d, true
		}
	}
	return cell, math.Expm1(off), significant
}

// floor2 is the greatest power of two up to n, 1 at least.
func floor2(n int) int {
	p := 1
	for 2*p <= n {
		p *= 2
	}
	return p
}

// correlation is that of neighbouring values, those that are known; within [0, .98].
func correlation(x []float64) float64 {
	var known []float64
	for _, v := range x {
		if !math.IsNaN(v) {
			known = append(known, v)
		}
	}
	mean := average(known)
	xx, xy := 0.0, 0.0
	for i, v := range known {
		xx += (v - mean) * (v - mean)
		if i > 0 {
			xy += (v - mean) * (known[i-1] - mean)
		}
	}
	if xx == 0 {
		return 0
	}
	return min(max(xy/xx, 0), .98)
}

// warn says where one chain for all models doesn't hold. apart says that the criterion prefers one for each.
func (r *StepsReport) warn(apart bool) {
	if len(r.Models) == 1 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("the log has one model, %s: a pair needs the other one's "+
			"latency too", r.Models[0].Model))
		return
	}
	if apart {
		r.Warnings = append(r.Warnings, "the models' residuals are not alike, and a run has one modulation for "+
			"all: modulation.yaml pools them, modulation-MODEL.yaml is each one's own")
	}
}
