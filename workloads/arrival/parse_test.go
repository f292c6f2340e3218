package arrival

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Spec
		name string // canonical; empty where it is in
	}{
		{"closed", Spec{Kind: Closed}, ""},
		{" Closed ", Spec{Kind: Closed}, "closed"},
		{"poisson:8", Spec{Kind: Poisson, Rate: 8}, ""},
		{"POISSON: 0.50", Spec{Kind: Poisson, Rate: .5}, "poisson:0.5"},
		{"gamma:8,cv=2", Spec{Kind: Gamma, Rate: 8, CV: 2}, ""},
		{"gamma:8, CV = .25", Spec{Kind: Gamma, Rate: 8, CV: .25}, "gamma:8,cv=0.25"},
		{"constant:1e9", Spec{Kind: Constant, Rate: 1e9}, "constant:1e+09"},
		{"ramp:1..8,60s", Spec{Kind: Ramp, From: 1, To: 8, Over: time.Minute}, ""},
		{"ramp:0..0.5,1m0.5s", Spec{Kind: Ramp, To: .5, Over: 60500 * time.Millisecond}, "ramp:0..0.5,60.5s"},
		{"ramp:8.5..1,1ns", Spec{Kind: Ramp, From: 8.5, To: 1, Over: 1}, "ramp:8.5..1,0.000000001s"},
		{"ramp:-0..1,1s", Spec{Kind: Ramp, To: 1, Over: time.Second}, "ramp:0..1,1s"},
		{"trace", Spec{Kind: Trace, Scale: 1}, ""},
		{"trace:1", Spec{Kind: Trace, Scale: 1}, "trace"},
		{"Trace:2", Spec{Kind: Trace, Scale: 2}, "trace:2"},
	} {
		got, err := Parse(c.in)
		if err != nil || got != c.want {
			t.Errorf("%q: %+v, %v; want %+v", c.in, got, err, c.want)
			continue
		}
		name := c.name
		if name == "" {
			name = c.in
		}
		if got.String() != name {
			t.Errorf("%q: canonical %q, want %q", c.in, got, name)
		}
	}
}

func TestParseErrors(t *testing.T) {
	const (
		rates    = "wanted more than 0 and at most 1e+09 requests per second"
		poisson  = "poisson:RATE (for example poisson:8)"
		gamma    = "gamma:RATE,cv=C (for example gamma:8,cv=2)"
		constant = "constant:RATE (for example constant:8)"
		ramp     = "ramp:LO..HI,DURATION (for example ramp:1..8,60s)"
		replay   = "trace[:scale] (for example trace:2, twice as fast)"
		kinds    = "wanted one of closed, poisson:RATE, gamma:RATE,cv=C, constant:RATE, ramp:LO..HI,DURATION, " +
			"trace[:scale]"
	)
	for _, c := range []struct{ in, what, wanted string }{
		{"", `unknown kind "";`, kinds},
		{"burst:3", `unknown kind "burst";`, kinds},
		{"poison:8", `unknown kind "poison"; did you mean poisson (for example poisson:8)?`, kinds},
		{"poisson", "found no rate:", poisson},
		{"poisson:", "found no rate:", poisson},
		{"poisson:x", `found the rate "x", wanted a number:`, poisson},
		{"poisson:0", "found 0 as the rate, " + rates + ":", poisson},
		{"poisson:-1", "found -1 as the rate, " + rates + ":", poisson},
		{"poisson:NaN", "found NaN as the rate, " + rates + ":", poisson},
		{"constant:Inf", "found +Inf as the rate, " + rates + ":", constant},
		{"constant:1e999", "found +Inf as the rate, " + rates + ":", constant},
		{"closed:4", "found a colon, wanted none:", "closed (for example closed)"},
		{"gamma:8", `found "" behind the rate, wanted ",cv=C":`, gamma},
		{"gamma:8,2", `found ",2" behind the rate, wanted ",cv=C":`, gamma},
		{"gamma:8,cv=0", "found 0 as the cv, wanted 1e-06 to 100:", gamma},
		{"gamma:0,cv=1", "found 0 as the rate, " + rates + ":", gamma},
		{"ramp:1..8", `found no duration in "1..8":`, ramp},
		{"ramp:1,60s", `found "1", wanted two rates with .. between them:`, ramp},
		{"ramp:1..8,60", `found the duration "60", wanted a number with a unit:`, ramp},
		{"ramp:1..8,0s", "found 0s as the duration, wanted more than 0s:", ramp},
		{"ramp:1..0,1s", "found 0 as the end rate, " + rates + ":", ramp},
		{"ramp:-1..2,1s", "found -1 as the start rate, " + rates + ":", ramp},
		{"trace:0", "found 0 as the scale, wanted 1e-09 to 1e+09:", replay},
		{"trace:", "found no scale:", replay},
		{"trace:fast", `found the scale "fast", wanted a number:`, replay},
	} {
		want := fmt.Sprintf("arrival %q: %s %s", c.in, c.what, c.wanted)
		if _, err := Parse(c.in); err == nil || err.Error() != want {
			t.Errorf("%q:\n     %v\nwant %s", c.in, err, want)
		}
	}
}

// A canonical name reads back as the same process, in text and in JSON.
func TestCanonical(t *testing.T) {
	positive := rapid.Float64Range(1e-6, 1e6)
	rapid.Check(t, func(t *rapid.T) {
		s := Spec{Kind: rapid.SampledFrom(Kinds()).Draw(t, "kind")}
		switch s.Kind {
		case Poisson, Constant:
			s.Rate = positive.Draw(t, "rate")
		case Gamma:
			s.Rate, s.CV = positive.Draw(t, "rate"), rapid.Float64Range(MinCV, MaxCV).Draw(t, "cv")
		case Ramp:
			s.From, s.To = positive.Draw(t, "from"), positive.Draw(t, "to")
			s.Over = time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "over"))
		case Trace:
			s.Scale = positive.Draw(t, "scale")
		}
		if got, err := Parse(s.String()); err != nil || got != s {
			t.Fatalf("%+v: %q reads back as %+v, %v", s, s, got, err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back Spec
		if err := json.Unmarshal(text, &back); err != nil || back != s {
			t.Fatalf("%s reads back as %+v, %v", text, back, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"closed", "poisson:8", "gamma:8,cv=2", "constant:.1", "ramp:1..8,60s", "trace:2", "trace", "gamma:8,cv=1e-9",
		"ramp:0..1e9,1ns", "poisson:0x1p4", "ramp:1...2,1s", "constant:1e-300",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			if s != (Spec{}) || !strings.HasPrefix(err.Error(), "arrival ") {
				t.Fatalf("%q: %+v with error %v", text, s, err)
			}
			return
		}
		if again, err := Parse(s.String()); err != nil || again != s {
			t.Fatalf("%q is %+v; its name %q reads back as %+v, %v", text, s, s, again, err)
		}
		if s.Closed() {
			return
		}
		p, err := s.Start(1, []time.Duration{0, 5, time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		last, ok := p.Next()
		for range 20 {
			if !ok {
				break
			}
			at, more := p.Next()
			if last < 0 || more && at < last {
				t.Fatalf("%s: arrival %v behind %v", s, at, last)
			}
			last, ok = at, more
		}
	})
}
