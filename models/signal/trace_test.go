package signal

import (
	"math"
	"strings"
	"testing"

	"github.com/trbench/trbench/engine/step"
)

const small3 = `problem,pos,token,s_top1,l_top1,s_entropy,s_maxprob,s_margin,l_entropy,kl_l_s,accept_prob,s_nll,l_nll
0,10,5,5,5,0.5,0.9,0.8,0.2,0.01,0.95,0.1,0.05
0,11,6,7,6,2.5,0.3,0.1,1.5,0.4,0.4,2,0.7
9,4,1,1,3,1.5,0.6,0.3,1,0.2,0.7,0.5,1.25
`

func read(t *testing.T, text string) *Trace {
	t.Helper()
	tr, err := ReadTrace("t.csv", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestReadTrace(t *testing.T) {
	tr := read(t, small3)
	if tr.Tokens() != 3 || tr.Problems() != 2 {
		t.Fatalf("%d tokens of %d problems", tr.Tokens(), tr.Problems())
	}
	if p, o := tr.Problem(0); p != 10 || o != 2 {
		t.Errorf("problem 0: %d, %d", p, o)
	}
	about(t, "acceptance", tr.Acceptance(), (.95+.4+.7)/3, 1e-12)
	about(t, "agreement", tr.Agreement(), 1./3, 1e-12)
	for i, want := range []float64{.05, .4, 1.25} { // l_nll, kl_l_s (the draft is not the text's), l_nll
		about(t, "loss", tr.tokens[i].loss, want, 0)
	}
	at, err := tr.Threshold(Rule{Name: "entropy", Score: Entropy, Threshold: 1, Hi: 9, Above: true}, .34)
	if err != nil || at != 2 {
		t.Errorf("threshold %v, %v; want 2", at, err)
	}
	at, err = tr.Threshold(Rule{Name: "confidence", Score: Confidence, Threshold: .5, Hi: 1}, .67)
	if err != nil || at != .75 {
		t.Errorf("threshold %v, %v; want .75", at, err)
	}
}

func TestReadTraceErrors(t *testing.T) {
	line := func(l string) string { return strings.Join(append(strings.Split(small3, "\n")[:2], l), "\n") + "\n" }
	for name, c := range map[string]struct{ text, want string }{
		"empty":    {"", "t.csv: empty"},
		"header":   {"problem,pos\n1,2\n", `t.csv: line 1: no column "s_top1" among 2`},
		"none":     {strings.SplitAfter(small3, "\n")[0], "t.csv: no tokens"},
		"gap":      {line("0,13,5,5,5,0.5,0.9,0.8,0.2,0.01,0.95,0.1,0.05"), "line 3: pos: found 13 after 10, want 11"},
		"prompt":   {line("1,0,5,5,5,0.5,0.9,0.8,0.2,0.01,0.95,0.1,0.05"), "line 3: pos: found 0 at the beginning"},
		"number":   {line("0,11,5,5,5,x,0.9,0.8,0.2,0.01,0.95,0.1,0.05"), `line 3: s_entropy: found "x"`},
		"NaN":      {line("0,11,5,5,5,NaN,0.9,0.8,0.2,0.01,0.95,0.1,0.05"), `line 3: s_entropy: found "NaN"`},
		"range":    {line("0,11,5,5,5,1,0.9,0.8,0.2,0.01,1.95,0.1,0.05"), `line 3: accept_prob: found "1.95", want a number in [0, 1]`},
		"fraction": {line("0,11,5,5.5,5,1,0.9,0.8,0.2,0.01,.95,0.1,0.05"), `line 3: s_top1: found "5.5", want a whole number`},
		"short":    {line("0,11,5"), "line 3: wrong number of fields"},
	} {
		if _, err := ReadTrace("t.csv", strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error with %q, got %v", name, c.want, err)
		}
	}
}

// A replay shows the recorded token of the request's problem at its output position, and again from the first one.
func TestReplay(t *testing.T) {
	tr := read(t, small3)
	s, err := tr.Source(Replay{Rules: []Rule{
		{Name: "entropy", Score: Entropy, Threshold: 1, Hi: 9, Above: true}, {Name: "normalised", Score: Normalised, Threshold: .1, Hi: 1, Above: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.(Admitter).Admit(0, 0, 10)
	s.(Admitter).Admit(1, 1, 4)
	res := NewResults(s, 2)
	b := &step.Batch{Handle: []step.Handle{0, 1}, ID: []step.RequestID{0, 1}, Pos: []int32{11, 6}, Want: step.Entropy | step.Margin | step.Normalised}
	x := res.Of(b)
	if x.Entropy[0] != 2.5 || x.Entropy[1] != 1.5 || x.Margin[1] != .3 {
		t.Errorf("%v %v", x.Entropy, x.Margin)
	}
	b.Model = 1
	if x = res.Of(b); x.Entropy[0] != 1.5 || x.Normalised[1] != 1/math.Log(8) || !math.IsNaN(x.Margin[0]) {
		t.Errorf("large: %v %v %v", x.Entropy, x.Normalised, x.Margin)
	}
	if j := s.(Judge); !j.Agrees(0, 0) || j.Agrees(0, 1) || j.Agrees(1, 5) || !j.Agrees(2, 2) {
		t.Error("agreement")
	}
	if g := s.(Grader); g.NLL(0, 1, false) != 2 || g.NLL(0, 1, true) != .7 || g.NLL(1, 5, true) != 1.25 {
		t.Error("NLL")
	}
	if agreed, nats := tr.Alone(0, 3, false); agreed != 2 || math.Abs(nats-2.2) > 1e-12 { // tokens 0, 1, 0
		t.Errorf("alone: %d, %v", agreed, nats)
	}
	if agreed, nats := tr.Alone(2, 2, true); agreed != 2 || math.Abs(nats-.75) > 1e-12 {
		t.Errorf("large alone: %d, %v", agreed, nats)
	}
	bare := read(t, strings.NewReplacer(",s_nll,l_nll", "", ",0.1,0.05\n", "\n", ",2,0.7\n", "\n", ",0.5,1.25\n", "\n").Replace(small3))
	if agreed, nats := bare.Alone(0, 2, true); agreed != 2 || !math.IsNaN(nats) {
		t.Errorf("without NLLs: %d, %v", agreed, nats)
	}
	b.Pos, b.Verify, b.Want = []int32{12, 5}, []int32{2, 1}, step.Drafts
	if x = res.Of(b); len(x.Drafts) != 3 || x.Drafts[0].Ratio != .95 || x.Drafts[1].Ratio != .4 || x.Drafts[2].Loss != 1.25 || !x.Drafts[0].Agrees {
		t.Errorf("drafts %+v", x.Drafts)
	}
}

func TestReplayNeedsItsColumns(t *testing.T) {
	tr := read(t, small3)
	gain := Rule{Name: "gain", Score: DraftGain, Threshold: .1, Lo: -1, Hi: 1, Above: true}
	if _, err := tr.Source(Replay{Rules: []Rule{{}, gain}}); err == nil || !strings.Contains(err.Error(), "gain of model 1 needs column l_maxprob") {
		t.Error(err)
	}
	if _, err := tr.Source(Replay{Rules: make([]Rule, 3)}); err == nil || !strings.Contains(err.Error(), "of two models, the deployment has 3") {
		t.Error(err)
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add(small3)
	f.Add("problem,pos\n")
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := ReadTrace("t", strings.NewReader(text))
		if err != nil {
			return
		}
		n := 0
		for i := range tr.Problems() {
			p, o := tr.Problem(i)
			if p < 1 || o < 1 {
				t.Fatalf("problem %d: %d, %d", i, p, o)
			}
			n += int(o)
		}
		if n != tr.Tokens() || !(tr.Acceptance() >= 0 && tr.Acceptance() <= 1) {
			t.Fatalf("%d of %d tokens, acceptance %v", n, tr.Tokens(), tr.Acceptance())
		}
	})
}
