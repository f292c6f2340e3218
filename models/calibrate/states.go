package calibrate

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/trbench/trbench/models/latency"
)

// ChainReport is the fitted chain of a residual: what a modulation file says, with intervals.
type ChainReport struct {
	States     []StateReport `json:"states"`     // the one with the most steps first
	Transition [][]Estimate  `json:"transition"` // from row to column, a step
	// Spread is what the states leave over: the standard deviation of the logarithm, about the relative one. The
	// simulator's chain has none, so a run lacks it. It is credited with .5 % at least.
	Spread     Estimate    `json:"spread"`
	Candidates []Candidate `json:"candidates"` // numbers of states tried, until one more didn't pay
	Steps      int         `json:"steps"`      // that it was fitted on
	Conditions string      `json:"intervals"`  // what the intervals take for granted
}

// StateReport is one state.
type StateReport struct {
	Name       string   `json:"name"`
	Multiplier Estimate `json:"multiplier"`
	Share      float64  `json:"share"`      // of steps, in the long run
	LogShare   float64  `json:"log_share"`  // of the log's steps
	StaySteps  Estimate `json:"stay_steps"` // mean length of a stay
	Entries    float64  `json:"entries"`    // expected number of times that the log enters it
}

// report states a normalised fit.
func (j *joint) report(ctx context.Context, all []Candidate) (*ChainReport, error) {
	c, err := j.covariance(ctx)
	if err != nil {
		return nil, err
	}
	return j.reportWith(c, all), nil
}

func (j *joint) reportWith(c *covariance, all []Candidate) *ChainReport {
	k := j.chain.states()
	r := &ChainReport{
		Transition: j.transition(c), Spread: between(j.chain.left, 0, j.chain.sigma),
		Candidates: all, Steps: j.observed,
		Conditions: "observed information, hidden states included, or blocks of the log where those vary more",
	}
	if !c.exact {
		r.Conditions = "as if the states were known: the likelihood has no proper maximum here"
	}
	if se, ok := c.error(ofSpread, 0); ok {
		r.Spread = between(j.chain.sigma, j.chain.sigma*math.Exp(-z95*se), j.chain.sigma*math.Exp(z95*se))
	}
	share, ofLog := j.chain.stationary(), j.occupancy()
	multipliers := j.multipliers(c)
	names := stateNames(multipliers)
	for i := range k {
		stay := r.Transition[i][i]
		s := StateReport{Name: names[i], Multiplier: multipliers[i], Share: share[i], LogShare: ofLog[i],
			StaySteps: stayOf(stay)}
		for p := range j.post {
			for _, m := range j.post[p].moves {
				for from := range k {
					if from != i {
						s.Entries += m[from*k+i]
					}
				}
			}
		}
		r.States = append(r.States, s)
	}
	return r
}

// stayOf is the mean length of a stay that goes on with probability p: 1 / (1-p).
func stayOf(p Estimate) Estimate {
	length := func(p float64) float64 { return 1 / (1 - p) } // of 1 it is +Inf, which is null
	if p.Value == 1 {
		return Estimate{} // never seen to end
	}
	return between(length(p.Value), length(p.Low.Or(math.NaN())), length(p.High.Or(math.NaN())))
}

// stateNames names states by their multipliers against the first one's.
func stateNames(multipliers []Estimate) []string {
	names := []string{"usual"}
	order := make([]int, 0, len(multipliers))
	for i := 1; i < len(multipliers); i++ {
		order = append(order, i)
		names = append(names, "")
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(multipliers[a].Value, multipliers[b].Value) })
	var slow, fast []int
	for _, i := range order {
		if multipliers[i].Value < multipliers[0].Value {
			fast = append(fast, i)
		} else {
			slow = append(slow, i)
		}
	}
	slices.Reverse(fast)
	for _, side := range []struct {
		name   string
		states []int
	}{{"slow", slow}, {"fast", fast}} {
		for n, i := range side.states {
			names[i] = side.name
			if n > 0 {
				names[i] += strconv.Itoa(n + 1)
			}
		}
	}
	return names
}

// config is the chain as a modulation file.
func (r *ChainReport) config(source string) latency.ModulationConfig {
	c := latency.ModulationConfig{Schema: latency.ModulationSchema, Source: source, Origin: latency.Fitted}
	for i, s := range r.States {
		c.States = append(c.States, latency.ModulationState{Name: s.Name, Multiplier: s.Multiplier.Value})
		row, sum := make([]float64, 0, len(r.States)), 0.0
		for _, e := range r.Transition[i] {
			row = append(row, e.Value)
			sum += e.Value
		}
		for k := range row { // to the last digit
			row[k] /= sum
		}
		c.Transition = append(c.Transition, row)
	}
	return c
}

// mean is the mean multiplier in the long run.
func (r *ChainReport) mean() float64 {
	m := 0.0
	for _, s := range r.States {
		m += s.Share * s.Multiplier.Value
	}
	return m
}

// logMean is the mean multiplier of the log.
func (r *ChainReport) logMean() float64 {
	m := 0.0
	for _, s := range r.States {
		m += s.LogShare * s.Multiplier.Value
	}
	return m
}
