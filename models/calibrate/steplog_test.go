package calibrate

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
)

const plainHeader = "model,start_ns,duration_ns,batch,new_tokens,context_tokens\n"

func mustSteps(t testing.TB, text string) *StepLog {
	t.Helper()
	log, err := ReadSteps("steps.csv", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestReadSteps(t *testing.T) {
	got := mustSteps(t, plainHeader+
		"large,0,28000000,1,300,300\n"+
		"small,100,6000000,4,4,1200\n"+
		"large,28000000,27000000,2,40,700\n"+
		"large,56000000,27500000,1,7,307\n")
	want := &StepLog{File: "steps.csv", Models: []string{"large", "small"}, Resolution: 1, Steps: []Step{
		{Model: 0, Duration: 28e6, Batch: 1, NewTokens: 300, ContextTokens: 300, Split: true,
			Shape: step.Shape{Extends: 1, ExtendTokens: 300, ExtendWork: 90000, ExtendContext: 300}},
		{Model: 1, Start: 100, Duration: 6e6, Batch: 4, NewTokens: 4, ContextTokens: 1200, Split: true,
			Shape: step.Shape{Decodes: 4, DecodeContext: 1200}},
		{Model: 0, Start: 28e6, Duration: 27e6, Batch: 2, NewTokens: 40, ContextTokens: 700}, // who fed the 40?
		{Model: 0, Start: 56e6, Duration: 27500000, Batch: 1, NewTokens: 7, ContextTokens: 307, Split: true,
			Shape: step.Shape{Extends: 1, ExtendTokens: 7, ExtendWork: 7 * (7 + 600), ExtendContext: 307}},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The same log in every form and unit.
func TestStepLogForms(t *testing.T) {
	want := mustSteps(t, plainHeader+"a b,1500000000,6250000,2,2,80\n\"a b\",1506250000,6000000,1,9,50\n").Steps
	for name, text := range map[string]string{
		"columns in another order": "context_tokens,note,batch,model,duration_ns,new_tokens,start_ns\n" +
			"80,x,2,a b,6250000,2,1500000000\n50,,1,a b,6000000,9,1506250000\n",
		"other spellings": "Model,Start NS,Duration-ns,Batch_Size,New Tokens,context tokens\n" +
			"a b,1500000000,6250000,2,2,80\na b,1506250000,6000000,1,9,50\n",
		"milliseconds": "model,start_ms,duration_ms,batch,new_tokens,context_tokens\n" +
			"a b,1500,6.25,2,2,80\na b,1506.25,6,1,9,50\n",
		"seconds": "model,start_s,duration_s,batch,new_tokens,context_tokens\n" +
			"a b,1.5,.00625,2,2,80\na b,1.50625,6e-3,1,9,50\n",
		"microseconds": "model,start_us,duration_us,batch,new_tokens,context_tokens\n" +
			"a b,1500000,6250,2,2,80\na b,1506250,6000,1,9,50\n",
		"carriage returns, blank lines, a mark": "\ufeff" + strings.ReplaceAll(plainHeader+
			"a b,1500000000,6250000,2,2,80\n\na b,1506250000,6000000,1,9,50\n", "\n", "\r\n"),
		"JSON Lines": `
			{"model":"a b","start_ns":1500000000,"duration_ms":6.25,"batch":2,"new_tokens":2,"context_tokens":80,"x":[{}]}
			{"context_tokens":50,"new_tokens":9,"batch":1,"duration_ms":6.0,"start_ns":1506250000,"model":"a b",
			 "decodes":null}`,
		"a JSON array": `[
			{"model":"a b","start_s":1.5,"duration_ns":6250000,"batch":2,"new_tokens":2,"context_tokens":80},
			{"model":"a b","start_s":1.50625,"duration_ns":6000000,"batch":1,"new_tokens":9,"context_tokens":50}]`,
		"empty optional columns": StepHeader + "\na b,1500000000,6250000,2,2,80,,,\n" +
			"a b,1506250000,6000000,1,9,50,0,0,819\n",
	} {
		log, err := ReadSteps("f", strings.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(want, log.Steps); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if kind, err := Sniff("f", strings.NewReader(text)); err != nil || kind != Steps {
			t.Errorf("%s: looks like %q, %v", name, kind, err)
		}
	}
}

func TestEpochsKeepTheirNanoseconds(t *testing.T) {
	log := mustSteps(t, "model,start_s,duration_s,batch,new_tokens,context_tokens\n"+
		"a,1787267980.082740301,0.006000001,1,1,9\n")
	if got := log.Steps[0]; got.Start != 1787267980082740301 || got.Duration != 6000001 {
		t.Errorf("start %d, duration %d", int64(got.Start), int64(got.Duration))
	}
	log = mustSteps(t, "model,start_ms,duration_ms,batch,new_tokens,context_tokens\na,1,6.25,1,1,9\na,8,6.2,1,1,9\n")
	if log.Resolution != 10*time.Microsecond {
		t.Errorf("the last digit of 6.25 ms is worth %v", log.Resolution)
	}
}

func TestDecimal(t *testing.T) {
	for _, c := range []struct {
		text       string
		places     int
		value, res int64
		ok         bool
	}{
		{"12", 0, 12, 1, true}, {"-1.5", 3, -1500, 100, true}, {"+.5", 1, 5, 1, true}, {"5.", 2, 500, 100, true},
		{"1.25", 1, 13, 1, true}, {"1.24", 1, 12, 1, true}, {"-1.25", 1, -13, 1, true},
		{"1e3", 0, 1000, 1, true}, {"1.5e-3", 6, 1500, 1, true},
		{"9223372036854775800", 0, 0, 0, false}, {"1e999", 3, 0, 0, false},
		{"", 3, 0, 0, false}, {".", 3, 0, 0, false}, {"-", 0, 0, 0, false}, {"x", 0, 0, 0, false},
		{"1.2.3", 3, 0, 0, false}, {"1.2x", 0, 0, 0, false}, {"0x10", 3, 0, 0, false}, {"1_0", 3, 0, 0, false},
		{"NaN", 3, 0, 0, false}, {"Infinity", 3, 0, 0, false},
	} {
		value, res, ok := decimal(c.text, c.places)
		if ok != c.ok || ok && (value != c.value || res != c.res) {
			t.Errorf("%q to %d places: %d, %d, %v", c.text, c.places, value, res, ok)
		}
	}
}

func TestReadStepsSaysWhereAndWhat(t *testing.T) {
	full := strings.TrimSuffix(StepHeader, "\n") + "\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "f: empty, wanted a table"},
		{"blanks", " \n\n", "f: empty, wanted a table"},
		{"a header alone", plainHeader, "f: holds no step, wanted at least one line below the header"},
		{"an empty array", "[]", "f:1: empty, wanted a table"},
		{"the clock goes back", plainHeader + "a,5,10,1,1,9\nb,1,10,1,1,9\na,4,10,1,1,9\n",
			`f:4: column "start_ns": found 4: the clock of "a" goes back 1ns, line 2 is later`},
		{"a missing column", "model,start_ns,batch,new_tokens,context_tokens\na,5,1,1,9\n",
			`f:1: column "duration_ns": missing, wanted duration_ns or duration_us or duration_ms or duration_s; ` +
				`found "model", "start_ns", "batch", "new_tokens", "context_tokens"`},
		{"a column twice", "model,start_ns,duration_ns,Start-NS,batch,new_tokens,context_tokens\n",
			`f:1: column "Start-NS": found it twice, as columns 2 and 4, wanted it once`},
		{"two starts", "model,start_ns,start_s,duration_ns,batch,new_tokens,context_tokens\n",
			`f:1: column "start_s": says the same as column "start_ns", wanted one of them`},
		{"text for a number", plainHeader + "a,5,10,1,1,9\na,6,10,two,2,9\n",
			`f:3: column "batch": found "two", wanted a whole number from 1 to 1048576`},
		{"a fraction for a count", plainHeader + "a,5,10,1,1.0,9\n",
			`f:2: column "new_tokens": found "1.0", wanted a whole number from 1 to 1073741824`},
		{"no number", plainHeader + "a,5,NaN,1,1,9\n",
			`f:2: column "duration_ns": found "NaN", wanted a number of at most 73 years`},
		{"infinity", plainHeader + "a,+Inf,5,1,1,9\n",
			`f:2: column "start_ns": found "+Inf", wanted a number of at most 73 years`},
		{"an empty cell", plainHeader + "a,5,,1,1,9\n", `f:2: column "duration_ns": found nothing, wanted a number`},
		{"no time", plainHeader + "a,5,0,1,1,9\n", `f:2: column "duration_ns": found "0", wanted more than 0`},
		{"negative time", plainHeader + "a,5,-3,1,1,9\n", `f:2: column "duration_ns": found "-3", wanted more than 0`},
		{"fewer tokens than rows", plainHeader + "a,5,3,4,3,9\n",
			`f:2: column "new_tokens": found "3", wanted a whole number from 4 to 1073741824`},
		{"less context than tokens", plainHeader + "a,5,3,4,8,7\n",
			`f:2: column "context_tokens": found "7", wanted a whole number from 8 to 1073741824`},
		{"no model", plainHeader + " ,5,3,4,8,9\n", `f:2: column "model": found nothing, wanted a name`},
		{"a row too long", plainHeader + "a,5,3,1,1,9,9\n", "f:2: not a CSV row: wrong number of fields"},
		{"a quote", plainHeader + "a,5,\"3,1,1,9\n", `f:2: not a CSV row: extraneous or missing " in quoted-field`},
		{"part of the optional columns",
			"model,start_ns,duration_ns,batch,new_tokens,context_tokens,decodes\na,1,1,1,1,1,1\n",
			"f:1: has one of the columns decodes, decode_context_tokens and extend_work without another: wanted all " +
				"three or none"},
		{"more decodes than rows", full + "a,5,3,2,2,9,3,9,0\n",
			`f:2: column "decodes": found "3", wanted a whole number from 0 to 2`},
		{"decodes that feed more", full + "a,5,3,2,3,9,2,9,0\n",
			`f:2: column "decodes": found 2, all 2 rows, but the step feeds 3 tokens`},
		{"work of no extends", full + "a,5,3,2,2,9,2,9,1\n",
			`f:2: column "extend_work": found "1", wanted a whole number from 0 to 0`},
		{"context of no decodes", full + "a,5,3,1,2,9,0,1,4\n",
			`f:2: column "decode_context_tokens": found "1", wanted a whole number from 0 to 0`},
		{"a ninth model", plainHeader + "1,1,1,1,1,1\n2,1,1,1,1,1\n3,1,1,1,1,1\n4,1,1,1,1,1\n5,1,1,1,1,1\n" +
			"6,1,1,1,1,1\n7,1,1,1,1,1\n8,1,1,1,1,1\n9,1,1,1,1,1\n",
			`f:10: column "model": found "9", the ninth model, wanted at most 8`},
		{"JSON text for a number",
			`{"model":"a","start_ns":1,"duration_ns":1,"batch":"1","new_tokens":1,"context_tokens":1}`,
			`f:1: column "batch": found the string "1", wanted a whole number from 1 to 1048576`},
		{"JSON without a field",
			`{"model":"a","start_ns":1,"duration_ns":1,"batch":1,"new_tokens":1,"context_tokens":1}` + "\n" +
				`{"model":"a","start_ns":1,"duration_ns":1,"batch":1,"new_tokens":1}`,
			`f:2: column "context_tokens": missing, wanted context_tokens`},
		{"JSON with a field twice", `{"model":"a","model":"b"}`,
			`f:1: column "model": found it twice in one object, wanted it once`},
		{"JSON with two starts", `{"start_s":1,"start_ns":1}`,
			`f:1: column "start_ns": says the same as "start_s", wanted one of them`},
		{"JSON that ends", `[{"model":"a"`, "f:1: truncated: the text ends inside an object"},
		{"no JSON", "{\"model\":\n nope}", "f:2: not JSON: invalid character 'o' in literal null (expecting 'u')"},
		{"NaN in JSON", "{\"model\":\n NaN}", "f:2: not JSON: invalid character 'N' looking for beginning of value"},
		{"numbers in an array", "[1]", "f:1: found 1, wanted an object"},
		{"text behind an array",
			`[{"model":"a","start_ns":1,"duration_ns":1,"batch":1,"new_tokens":1,"context_tokens":1}] 2`,
			"f:1: found 2 behind the array, wanted nothing"},
	} {
		_, err := ReadSteps("f", strings.NewReader(c.text))
		var data *DataError
		if !errors.As(err, &data) || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
}

// What the simulator writes is what a reader finds, whatever the steps.
func TestStepLogRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"plain", `with "quotes", and commas`}
		var out bytes.Buffer
		w := NewStepWriter(&out, names)
		var want []Step
		now := clock.Instant(0)
		first := -1
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			b := &step.Batch{Model: step.ModelID(rapid.IntRange(0, 1).Draw(t, "model"))}
			if first < 0 {
				first = int(b.Model)
			}
			s := &b.Shape
			for range rapid.IntRange(1, 5).Draw(t, "rows") {
				k := rapid.Int64Range(0, 5000).Draw(t, "cached")
				n := rapid.Int64Range(1, 500).Draw(t, "fed")
				if k > 0 && rapid.Bool().Draw(t, "decode") {
					s.Decodes++
					s.DecodeContext += k + 1
					continue
				}
				if k > 0 {
					n++
				}
				s.Extends++
				s.ExtendTokens += n
				s.ExtendWork += n * (n + 2*k)
				s.ExtendContext += n + k
			}
			end := now.Add(time.Duration(rapid.Int64Range(1, 1e9).Draw(t, "ns")))
			w.Step(b, now, end)
			model := int(b.Model)
			if first == 1 {
				model = 1 - model
			}
			want = append(want, Step{Model: model, Start: now, Duration: end.Sub(now), Batch: s.Seqs(),
				NewTokens:     s.Tokens(),
				ContextTokens: s.DecodeContext + s.ExtendContext, Shape: *s, Split: true})
			now = end
		}
		if w.Err() != nil {
			t.Fatal(w.Err())
		}
		log, err := ReadSteps("f", &out)
		if err != nil {
			t.Fatal(err)
		}
		if log.Models[0] != names[first] {
			t.Fatalf("models %q", log.Models)
		}
		if d := cmp.Diff(want, log.Steps); d != "" {
			t.Fatal(d)
		}
	})
}

type broken struct{ after int }

func (b *broken) Write(p []byte) (int, error) {
	if b.after--; b.after < 0 {
		return 0, errors.New("no space")
	}
	return len(p), nil
}

func TestStepWriterErrors(t *testing.T) {
	batch := &step.Batch{Shape: step.Shape{Decodes: 1, DecodeContext: 2}}
	for after := range 3 {
		w := NewStepWriter(&broken{after}, []string{"a"})
		w.Step(batch, 0, 1)
		w.Step(batch, 1, 2)
		if w.Err() == nil {
			t.Errorf("after %d writes: no error", after)
		}
	}
	w := NewStepWriter(&bytes.Buffer{}, []string{"a"})
	w.Step(&step.Batch{Model: 3}, 0, 1)
	if err := w.Err(); err == nil || err.Error() != "step log: a step of model 3, of 1 named" {
		t.Error(err)
	}
}

func FuzzReadSteps(f *testing.F) {
	f.Add(plainHeader + "a,5,10,1,1,9\nb,1,10,1,3,9\n")
	f.Add(StepHeader + "\na,5,10,2,4,9,1,3,9\n")
	f.Add(`[{"model":"a","start_s":1.5,"duration_ms":0.25,"batch":1,"new_tokens":1,"context_tokens":1}]`)
	f.Add(`{"model":1,"start_us":-2,"duration_ns":1e3,"batch":1,"new_tokens":1,"context_tokens":1,"x":{"y":[null]}}`)
	f.Add("\ufeffmodel,\"start_ns\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		log, err := ReadSteps("f", strings.NewReader(text))
		if err != nil {
			var data *DataError
			if !errors.As(err, &data) {
				t.Fatalf("%T: %v", err, err)
			}
			return
		}
		last := map[int]clock.Instant{}
		for i, s := range log.Steps {
			if before, ok := last[s.Model]; ok && s.Start < before {
				t.Fatalf("step %d: the clock goes back", i)
			}
			last[s.Model] = s.Start
			if s.Duration < 1 || s.Batch < 1 || s.NewTokens < int64(s.Batch) || s.ContextTokens < s.NewTokens ||
				s.Model >= len(log.Models) {
				t.Fatalf("step %d: %+v", i, s)
			}
			if s.Split && (s.Shape.Seqs() != s.Batch || s.Shape.Tokens() != s.NewTokens ||
				s.Shape.DecodeContext+s.Shape.ExtendContext != s.ContextTokens || s.Shape.ExtendWork < 0) {
				t.Fatalf("step %d: %+v", i, s)
			}
		}
	})
}

func BenchmarkReadSteps(b *testing.B) {
	var text strings.Builder
	text.WriteString(StepHeader + "\n")
	for i := range 10000 {
		fmt.Fprintf(&text, "small,%d,6123456,4,4,%d,4,%d,0\n", i*7000000, 4000+4*i, 4000+4*i)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := ReadSteps("f", strings.NewReader(text.String())); err != nil {
			b.Fatal(err)
		}
	}
}
