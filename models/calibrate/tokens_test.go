package calibrate

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trbench/trbench/engine/step"
)

func mustTokens(t testing.TB, text string, o Options) *TokensReport {
	t.Helper()
	log, err := ReadTokens("tokens.csv", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := FitTokens(log, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// nearly is equal to the digits that a source prints.
func nearly(t *testing.T, what string, got, want, half float64) {
	t.Helper()
	if !(math.Abs(got-want) <= half) {
		t.Errorf("%s: %.6g, want %g within %g", what, got, want, half)
	}
}

// A recorded R2R trace: what reference figures say of it.
func TestRecordedR2RTrace(t *testing.T) {
	f := reference(t, "traces", "r2r_token_trace.json")
	log, err := ReadTokens("r2r.json", f)
	if err != nil {
		t.Fatal(err)
	}
	if log.Form != R2R || log.Tokens != 2571 || len(log.Sequences) != 1 {
		t.Fatalf("form %s, %d tokens, %d sequences", log.Form, log.Tokens, len(log.Sequences))
	}
	r, err := FitTokens(log, Options{})
	if err != nil {
		t.Fatal(err)
	}
	q := r.Routing
	nearly(t, "large fraction", q.LargeFraction.Value, .025, .0005)
	nearly(t, "P(0->1)", q.ToLarge.Value, .0232, .00005)
	nearly(t, "P(1->1)", q.StayLarge.Value, .108, .0005)
	nearly(t, "correlation", q.Correlation.Value, .0848, .0005)
	nearly(t, "the first 256 tokens", r.Phases[0].Rate.Value, .086, .0005)
	for _, w := range r.Phases[1:10] {
		if w.Tokens != 256 || w.Rate.Value < .0035 || w.Rate.Value > .0355 {
			t.Errorf("tokens from %d: %.4f of %d, want .4 to 3.5 %%", w.From, w.Rate.Value, w.Tokens)
		}
	}
	warned(t, r.Warnings, "drifts over the output", "1 request: intervals hold")
}

// The demo pair's trace: acceptance and agreement as its description states them.
func TestRecordedPairTrace(t *testing.T) {
	f := reference(t, "traces", "gsm8k_test_token_trace.csv")
	log, err := ReadTokens("pair.csv", f)
	if err != nil {
		t.Fatal(err)
	}
	r, err := FitTokens(log, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if log.Form != PairTrace || r.Tokens != 43106 || r.Requests != 300 {
		t.Errorf("form %s, %d tokens of %d requests", log.Form, r.Tokens, r.Requests)
	}
	nearly(t, "acceptance", r.Acceptance.Value, .732, .0005)
	nearly(t, "top-1 agreement", r.Agreement.Value, .750, .0005)
	nearly(t, "share of disagreement", r.Share[1].Value, 1-r.Agreement.Value, 1e-12)
	if !r.Acceptance.Contains(.732) || !r.Agreement.Contains(.75) {
		t.Errorf("intervals %+v, %+v", r.Acceptance, r.Agreement)
	}
	warned(t, r.Warnings, "runs of small are not geometric")
}

// warned wants a warning with each of the texts, and no other warning.
func warned(t *testing.T, warnings []string, want ...string) {
	t.Helper()
	left := append([]string(nil), warnings...)
	for _, text := range want {
		found := false
		for i, w := range left {
			if found = strings.Contains(w, text); found {
				left = append(left[:i], left[i+1:]...)
				break
			}
		}
		if !found {
			t.Errorf("no warning of %q in %q", text, warnings)
		}
	}
	for _, w := range left {
		t.Errorf("warns: %s", w)
	}
}

// Counted by hand: two requests, one with a gap.
func TestFitTokensByHand(t *testing.T) {
	r := mustTokens(t, "request,position,model\n"+
		"a,7,s\na,8,s\nb,0,s\na,9,l\na,10,l\nb,1,l\na,11,s\nb,5,l\nb,6,s\nb,7,s\n", Options{Window: 2})
	if d := cmp.Diff([][]int{{2, 2}, {2, 1}}, r.Moves); d != "" {
		t.Error(d)
	}
	nearly(t, "share", r.Share[1].Value, .4, 1e-15)
	nearly(t, "P(0->1)", r.Routing.ToLarge.Value, .5, 1e-15)
	nearly(t, "P(1->1)", r.Routing.StayLarge.Value, 1/3., 1e-15)
	nearly(t, "correlation", r.Routing.Correlation.Value, 1/3.-.5, 1e-15)
	// Runs of s: 2, 1 ended, 1 and 2 cut; of l: 2 and, behind the gap, 1 ended, 1 cut by it.
	if got := *r.Runs[0]; got.Runs != 2 || got.Cut != 2 || got.Mean != 1.5 || got.Variance != .5 ||
		got.Geometric != .75 {
		t.Errorf("runs of s: %+v", got)
	}
	if got := *r.Runs[1]; got.Runs != 2 || got.Cut != 1 || got.Mean != 1.5 {
		t.Errorf("runs of l: %+v", got)
	}
	var windows [][3]float64
	for _, w := range r.Phases {
		windows = append(windows, [3]float64{float64(w.From), float64(w.Tokens), w.Rate.Value})
	}
	if d := cmp.Diff([][3]float64{{0, 4, .25}, {2, 2, 1}, {4, 2, .5}, {6, 2, 0}}, windows); d != "" {
		t.Error(d)
	}
}

func TestModelsAreSortedBySize(t *testing.T) {
	for text, want := range map[string][]string{
		"qwen3-32b,qwen3-0.6b,qwen3-8b": {"qwen3-0.6b", "qwen3-8b", "qwen3-32b"},
		"2,0,1":                         {"0", "1", "2"},
		"mine,other,qwen3-0.6b":         {"mine", "other", "qwen3-0.6b"}, // as they come
	} {
		var b strings.Builder
		b.WriteString("request,position,model\n")
		names := strings.Split(text, ",")
		for i, n := range names {
			b.WriteString("r," + string(rune('0'+i)) + "," + n + "\n")
		}
		log, err := ReadTokens("f", strings.NewReader(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, log.Models); d != "" {
			t.Error(d)
		}
		for i, n := range names {
			if got := log.Models[log.Sequences[0].Tokens[i].Model]; got != n {
				t.Errorf("%s: token %d is %s's", text, i, got)
			}
		}
	}
}

func TestReadTokensSaysWhereAndWhat(t *testing.T) {
	const h = "request,position,model\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "f: empty, wanted a table"},
		{"a header alone", h, "f: holds no token, wanted at least one line below the header"},
		{"no writer", "request,position\na,1\n",
			"f:1: doesn't say who wrote a token, wanted a column model, usage_type, or s_top1 and l_top1"},
		{"half a pair", "problem,pos,s_top1\na,1,2\n", "f:1: has one of the columns s_top1 and l_top1 without the " +
			"other"},
		{"no request", "position,model\n1,a\n",
			`f:1: column "request": missing, wanted request or request_id or problem or data_id; ` +
				`found "position", "model"`},
		{"two requests", "request,problem,position,model\n",
			`f:1: column "problem": says the same as column "request", wanted one of them`},
		{"back", h + "a,1,s\nb,1,s\na,1,s\n",
			`f:4: column "position": found 1 behind 1 of request "a", wanted positions that ascend`},
		{"a negative position", h + "a,-1,s\n",
			`f:2: column "position": found "-1", wanted a whole number from 0 to 1073741824`},
		{"no model", h + "a,1,\n", `f:2: column "model": found nothing, wanted a name`},
		{"acceptance of more than 1", "request,position,model,accept_prob\na,1,s,1.01\n",
			`f:2: column "accept_prob": found "1.01", wanted a number from 0 to 1`},
		{"no acceptance", "request,position,model,accept_prob\na,1,s,nan\n",
			`f:2: column "accept_prob": found "nan", wanted a number from 0 to 1`},
		{"a usage that is none", `[{"data_id":"x","position":0,"usage_type":3}]`,
			`f:1: column "usage_type": found "3", wanted a whole number from 0 to 2`},
		{"usage as text", `[{"data_id":"x","position":0,"usage_type":"2"}]`,
			`f:1: column "usage_type": found the string "2", wanted a whole number from 0 to 2`},
		{"a request of no name", `[{"data_id":["x"],"position":0,"usage_type":0}]`,
			`f:1: column "data_id": found an array, wanted a name`},
	} {
		_, err := ReadTokens("f", strings.NewReader(c.text))
		var data *DataError
		if !errors.As(err, &data) || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestTokenWarnings(t *testing.T) {
	warned(t, mustTokens(t, "request,position,model\na,0,s\na,1,s\n", Options{}).Warnings, "nothing was routed")
	var b strings.Builder
	b.WriteString("request,position,model\n")
	for r := range 12 { // strict turns: negatively correlated, and runs of one token always
		for p := range 50 {
			b.WriteString(strings.Join([]string{string(rune('a' + r)), string(appendInt(nil, int64(p))),
				string(rune('0' + p%2))}, ",") + "\n")
		}
	}
	r := mustTokens(t, b.String(), Options{})
	warned(t, r.Warnings, "correlated by -1.000")
	if r.Routing.Stay.ReturnRate != 1 || r.Routing.Stay.SwitchRate != 1 {
		t.Errorf("%+v", r.Routing)
	}
}

// A writer keeps the last model that sampled at a position: what a model drafted before it was left is void.
func TestTokenWriter(t *testing.T) {
	w := NewTokenWriter([]string{"s", "l"})
	at := func(m step.ModelID, id step.RequestID, pos int32, sample bool) {
		w.Step(&step.Batch{Model: m, ID: []step.RequestID{id}, Pos: []int32{pos}, Sample: []bool{sample}}, 0, 0)
	}
	at(0, 1, 10, false) // a chunk of the prompt
	at(0, 1, 20, true)
	at(0, 1, 21, true) // a draft that the large model replaces
	at(1, 1, 21, true)
	at(0, 1, 22, true)
	at(0, 0, 5, true)
	at(0, 1, 23, true)
	at(1, 1, 21, true) // rolled back by three
	var out strings.Builder
	if err := w.Write(&out); err != nil {
		t.Fatal(err)
	}
	if want := TokenHeader + "\n0,0,s\n1,0,s\n1,1,l\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	at(7, 0, 6, true)
	if err := w.Write(&strings.Builder{}); err == nil || err.Error() != "token log: a token of model 7, of 2 named" {
		t.Error(err)
	}
	if err := w.Write(&broken{0}); err == nil {
		t.Error("no error of a full disk")
	}
}

// Whatever the log: counts add up, estimates lie within their intervals, and intervals within [0, 1].
func TestFitTokensProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		models := rapid.IntRange(1, 4).Draw(t, "models")
		log := &TokenLog{File: "f", Form: Writers, Models: []string{"a", "b", "c", "d"}[:models]}
		moves := 0
		for range rapid.IntRange(1, 4).Draw(t, "requests") {
			var s Sequence
			pos := int32(rapid.IntRange(0, 100).Draw(t, "prompt"))
			for range rapid.IntRange(1, 60).Draw(t, "tokens") {
				s.Tokens = append(s.Tokens, Token{Position: pos,
					Model: uint8(rapid.IntRange(0, models-1).Draw(t, "model"))})
				log.Tokens++
				if rapid.IntRange(0, 9).Draw(t, "gap") == 0 {
					pos++
				} else {
					moves++
				}
				pos++
			}
			if n := len(s.Tokens); s.Tokens[n-1].Position == pos-1 {
				moves--
			}
			log.Sequences = append(log.Sequences, s)
		}
		r, err := FitTokens(log, Options{Window: rapid.IntRange(1, 50).Draw(t, "window")})
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, e Estimate) {
			low, ok := e.Low.Get()
			high, _ := e.High.Get()
			if ok && !(0 <= low && low <= e.Value+1e-12 && e.Value <= high+1e-12 && high <= 1) {
				t.Fatalf("%s: %+v", what, e)
			}
		}
		sum, share, windows := 0, 0.0, 0
		for i := range r.Moves {
			row := 0.0
			for k, n := range r.Moves[i] {
				sum += n
				row += r.Transition[i][k].Value
				check("transition", r.Transition[i][k])
			}
			if row != 0 && math.Abs(row-1) > 1e-12 {
				t.Fatalf("row %d sums to %g", i, row)
			}
			check("share", r.Share[i])
			share += r.Share[i].Value
		}
		for _, w := range r.Phases {
			windows += w.Tokens
			check("window", w.Rate)
		}
		if sum != moves || math.Abs(share-1) > 1e-12 || windows != log.Tokens {
			t.Fatalf("%d moves of %d, shares of %g, %d tokens in windows of %d", sum, moves, share, windows, log.Tokens)
		}
	})
}

func FuzzReadTokens(f *testing.F) {
	f.Add("request,position,model\na,0,s\na,1,l\n")
	f.Add(`[{"data_id":"x","position":0,"usage_type":2,"text":"\u0000"}]`)
	f.Add("problem,pos,s_top1,l_top1,accept_prob\n0,94,1,2,.5\n")
	f.Add(`{"request":1,"position":3,"model":"a"}{"request":1,"position":5,"model":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		log, err := ReadTokens("f", strings.NewReader(text))
		if err != nil {
			var data *DataError
			if !errors.As(err, &data) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		if _, err := FitTokens(log, Options{}); err != nil {
			t.Fatal(err)
		}
	})
}
