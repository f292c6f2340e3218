package calibrate

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// hazard counts runs by length: how many reached each length and how many ended there. A run that the log cuts off has
// reached its length and not ended, and biases nothing.
type hazard struct {
	reached, ended []int // [l-1] for length l
}

// longestRun bounds the lengths that are kept apart.
const longestRun = 1 << 20

func (h *hazard) add(length int, ended bool) {
	length = min(length, longestRun)
	for len(h.reached) < length {
		h.reached, h.ended = append(h.reached, 0), append(h.ended, 0)
	}
	for l := range length {
		h.reached[l]++
	}
	if ended {
		h.ended[length-1]++
	}
}

// RunTest holds runs against a geometric law, under which a run ends with the same probability however long it is.
type RunTest struct {
	Runs      int     `json:"runs"` // those that ended within the log
	Mean      float64 `json:"mean"` // tokens
	Variance  float64 `json:"variance"`
	Geometric float64 `json:"geometric_variance"` // of a geometric law of the same mean: mean (mean - 1)
	Longest   int     `json:"longest"`
	ChiSquare float64 `json:"chi_square"`
	Degrees   int     `json:"degrees"`
	// P is the probability of so large a chi-square under a geometric law; 1 where there are too few runs to tell.
	P float64 `json:"p"`
}

// Index is the variance over a geometric law's; 1 is geometric, more is burstier. NaN where it is undefined: all runs
// of one token.
func (t RunTest) Index() float64 { return t.Variance / t.Geometric }

// worth says that the difference from a geometric law is large enough to speak of.
func (t RunTest) worth() bool {
	i := t.Index()
	return !math.IsNaN(i) && !math.IsInf(i, 0) && (i > 1.25 || i < .8)
}

// geometric tests for one probability of ending at all lengths: a chi-square over lengths, pooled so that each cell
// expects at least five ends and five that go on. false where no run ended.
func (h *hazard) geometric() (RunTest, bool) {
	t := RunTest{P: 1, Longest: len(h.reached)}
	sum, squares, steps := 0.0, 0.0, 0.0
	for l, n := range h.ended {
		length := float64(l + 1)
		t.Runs += n
		sum += float64(n) * length
		squares += float64(n) * length * length
		steps += float64(h.reached[l])
	}
	if t.Runs == 0 {
		return t, false
	}
	n := float64(t.Runs)
	t.Mean = sum / n
	if t.Runs > 1 {
		t.Variance = (squares - n*t.Mean*t.Mean) / (n - 1)
	}
	t.Geometric = t.Mean * (t.Mean - 1)
	p := n / steps // the maximum likelihood, cut runs included
	if p >= 1 {
		return t, true
	}
	cells, ends, reached := 0, 0.0, 0.0
	left := steps
	for l := range h.reached {
		ends += float64(h.ended[l])
		reached += float64(h.reached[l])
		left -= float64(h.reached[l])
		const fewest = 5
		enough := func(n float64) bool { return n*p >= fewest && n*(1-p) >= fewest }
		if !enough(reached) || !enough(left) && left > 0 {
			continue
		}
		d := ends - reached*p
		t.ChiSquare += d * d / (reached * p * (1 - p))
		cells++
		ends, reached = 0, 0
	}
	if t.Degrees = cells - 1; t.Degrees > 0 {
		t.P = distuv.ChiSquared{K: float64(t.Degrees)}.Survival(t.ChiSquare)
	}
	return t, true
}
