package signal

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/trbench/trbench/engine/step"
)

var (
	above = Rule{Name: "divergence", Threshold: .3, Lo: 0, Hi: 1, Above: true}
	below = Rule{Name: "confidence", Score: Confidence, Threshold: .6, Lo: 0, Hi: 1}
)

// batch is one row a request on model m, at output position out of prompts of 100 tokens.
func batch(m step.ModelID, requests, out int) *step.Batch {
	b := &step.Batch{Model: m}
	for i := range requests {
		b.Handle, b.ID = append(b.Handle, step.Handle(i)), append(b.ID, step.RequestID(i))
		b.Pos, b.Sample = append(b.Pos, int32(100+out)), append(b.Sample, true)
	}
	return b
}

func source(t *testing.T, c Config) *drawn {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*drawn)
}

// rate is how often a rule fires over requests and output positions [from, to).
func rate(s Source, r Rule, m step.ModelID, requests, from, to int, want step.Columns) float64 {
	res := NewResults(s, requests)
	if a, ok := s.(Admitter); ok {
		for i := range requests {
			a.Admit(step.Handle(i), step.RequestID(i), 100)
		}
	}
	fires, n := 0, 0
	for out := from; out < to; out++ {
		b := batch(m, requests, out)
		b.Want = want
		x := res.Of(b)
		column := x.Signal
		if r.Score == Confidence {
			column = x.Confidence
		}
		for i := range requests {
			if n++; r.Fires(column[i]) {
				fires++
			}
		}
	}
	return float64(fires) / float64(n)
}

// Rules fire at their rates, whatever column they are on, iid and bursty.
func TestRates(t *testing.T) {
	for _, correlation := range []float64{0, .3} {
		s := source(t, Config{Seed: 5, Rules: []Rule{above, below}, Rates: []float64{.1, .4}, Correlation: correlation})
		about(t, fmt.Sprint("above, correlation ", correlation), rate(s, above, 0, 200, 0, 500, 0), .1, .005)
		about(t, fmt.Sprint("below, correlation ", correlation), rate(s, below, 1, 200, 0, 500, step.Confidence), .4, .008)
	}
}

// Phases multiply the rates over the output, not over the prompt.
func TestPhases(t *testing.T) {
	phases := []Phase{{0, 3}, {64, .5}, {128, 20}}
	for _, correlation := range []float64{0, .2} {
		s := source(t, Config{Seed: 5, Rules: []Rule{above}, Rates: []float64{.1}, Phases: phases, Correlation: correlation})
		about(t, "first", rate(s, above, 0, 500, 0, 64, 0), .3, .01)
		about(t, "second", rate(s, above, 0, 500, 70, 128, 0), .05, .005)
		about(t, "third", rate(s, above, 0, 500, 136, 180, 0), 1, .01)
	}
	sum := 0.
	for _, p := range RecordedPhases() {
		sum += p.Factor
	}
	about(t, "mean factor of the recorded phases", sum/10, 1, .02)
}

// A score that no rule is on has the recorded distribution, and agrees with the rule's on how sure the model is.
func TestColumnsAgree(t *testing.T) {
	s := source(t, Config{Seed: 5, Rules: []Rule{below}, Rates: []float64{.2}})
	res := NewResults(s, 1000)
	b := batch(0, 1000, 3)
	b.Want, b.TopK = step.Entropy|step.Confidence|step.Margin|step.Normalised|step.Top, 2
	x := res.Of(b)
	mean := 0.
	for i := range 1000 {
		mean += x.Entropy[i] / 1000
		about(t, "normalised", x.Normalised[i], x.Entropy[i]/recordedLogVocabulary, 1e-12)
		if fires := below.Fires(x.Confidence[i]); fires != (x.Entropy[i] > recordedEntropy.at(.8)) {
			t.Fatalf("row %d: confidence %v, entropy %v", i, x.Confidence[i], x.Entropy[i])
		}
		if top := x.Top[2*i : 2*i+2]; top[0].Probability < top[1].Probability {
			t.Fatalf("row %d: %v", i, top)
		}
	}
	about(t, "mean entropy", mean, 1.38, .12)
}

// Drafts are kept in order with their probabilities, and the scores tell the same story as the count.
func TestFates(t *testing.T) {
	s := source(t, Config{Seed: 5, Rules: make([]Rule, 2), Rates: make([]float64, 2), Acceptance: Acceptance{Alpha: []float64{.9, .5}, Agreement: .7}})
	res := NewResults(s, 4000)
	b := batch(1, 4000, 10)
	b.Want = step.Drafts
	for range b.ID {
		b.Verify = append(b.Verify, 3)
	}
	x := res.Of(b)
	var counts [4]int
	agrees := 0
	for i := range b.ID {
		d := x.Drafts[3*i : 3*i+3]
		kept := 0
		for kept < 3 && d[kept].Kept {
			kept++
		}
		if kept != int(x.Accept[i]) || d[0].Ratio != .9 || d[1].Ratio != .5 || d[2].Ratio != .5 {
			t.Fatalf("row %d: accept %d, drafts %+v", i, x.Accept[i], d)
		}
		counts[kept]++
		for _, d := range d {
			if d.Agrees {
				agrees++
			}
		}
	}
	for k, want := range []float64{.1, .9 * .5, .9 * .25, .9 * .25} {
		about(t, fmt.Sprint("share of passes that keep ", k), float64(counts[k])/4000, want, .025)
	}
	about(t, "agreement", float64(agrees)/12000, .7, .015)

	b.Want = 0
	accept := append([]int32(nil), x.Accept...)
	for i, a := range res.Of(b).Accept[:len(accept)] {
		if a != accept[i] {
			t.Fatalf("row %d: accepts %d with scores, %d without", i, accept[i], a)
		}
	}
}

func TestInvalid(t *testing.T) {
	for want, c := range map[string]Config{
		"1 rules and 0 rates":           {Rules: []Rule{above}},
		"rate 2 is not a probability":   {Rules: []Rule{above}, Rates: []float64{2}},
		"correlation 1 is not":          {Correlation: 1},
		"acceptance of draft 1: -1":     {Acceptance: Acceptance{Alpha: []float64{0, -1}}},
		"agreement NaN":                 {Acceptance: Acceptance{Agreement: math.NaN()}},
		"phase 0 begins at position 3":  {Phases: []Phase{{3, 1}}},
		"phase 1: factor -1":            {Phases: []Phase{{0, 1}, {2, -1}}},
		"acceptance: phase 1 begins at": {Acceptance: Acceptance{Phases: []Phase{{0, 1}, {0, 1}}}},
		"threshold 1 must lie inside":   {Rules: []Rule{{Name: "x", Threshold: 1, Hi: 1}}, Rates: []float64{0}},
	} {
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}
