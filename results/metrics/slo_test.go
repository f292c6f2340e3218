package metrics

import (
	"testing"
	"time"

	"github.com/trbench/trbench/results"
)

func TestParseSLO(t *testing.T) {
	for text, want := range map[string]SLO{
		"":                                {},
		"ttft=500ms":                      {TTFT: 500 * time.Millisecond},
		" E2E=10s, tpot=30ms ":            {E2E: 10 * time.Second, TPOT: 30 * time.Millisecond},
		"ttft=1s,tpot=2s,itl=3s,e2e=4m2s": {time.Second, 2 * time.Second, 3 * time.Second, 242 * time.Second},
	} {
		got, err := ParseSLO(text)
		if err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
		if again, err := ParseSLO(got.String()); err != nil || again != got {
			t.Errorf("%q read again: %v, %v", got.String(), again, err)
		}
		if got.IsZero() != (text == "") {
			t.Errorf("%q: IsZero is %v", text, got.IsZero())
		}
	}
	for text, want := range map[string]string{
		"ttft":           `slo "ttft": "ttft": want KEY=TIME with KEY one of ttft, tpot, itl, e2e`,
		"tps=3s":         `slo "tps=3s": "tps=3s": want KEY=TIME with KEY one of ttft, tpot, itl, e2e`,
		"ttft=1s,":       `slo "ttft=1s,": "": want KEY=TIME with KEY one of ttft, tpot, itl, e2e`,
		"ttft=500":       `slo "ttft=500": ttft: found "500", want a time above 0 with its unit, such as 500ms`,
		"ttft=-1s":       `slo "ttft=-1s": ttft: found "-1s", want a time above 0 with its unit, such as 500ms`,
		"itl=1s,ITL=2s":  `slo "itl=1s,ITL=2s": itl is there twice`,
		"tpot=3s e2e=1s": `slo "tpot=3s e2e=1s": tpot: found "3s e2e=1s", want a time above 0 with its unit, such as 500ms`,
	} {
		if _, err := ParseSLO(text); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestSLOMet(t *testing.T) {
	// TTFT 10 ms, TPOT 5 ms, longest gap 8 ms, E2E 30 ms.
	r := results.Request{First: 10e6, Last: 30e6, OutputTokens: 5, MaxITL: 8 * time.Millisecond}
	single := results.Request{First: 10e6, Last: 10e6, OutputTokens: 1}
	none := results.Request{}
	failed := r
	failed.Status = results.Failed
	const ms = time.Millisecond
	for _, c := range []struct {
		name string
		slo  SLO
		r    results.Request
		want bool
	}{
		{"all kept, each at its limit", SLO{10 * ms, 5 * ms, 8 * ms, 30 * ms}, r, true},
		{"ttft", SLO{TTFT: 10*ms - 1}, r, false},
		{"tpot", SLO{TPOT: 5*ms - 1}, r, false},
		{"itl", SLO{ITL: 8*ms - 1}, r, false},
		{"e2e", SLO{E2E: 30*ms - 1}, r, false},
		{"one of two broken", SLO{TTFT: 10 * ms, E2E: 1}, r, false},
		{"one token has no TPOT and no gap", SLO{TPOT: 1, ITL: 1}, single, true},
		{"no token, no TTFT", SLO{TTFT: time.Hour}, none, false},
		{"no token, no E2E", SLO{E2E: time.Hour}, none, false},
		{"failed", SLO{TTFT: time.Hour}, failed, false},
	} {
		if got := c.slo.Met(&c.r); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

func FuzzParseSLO(f *testing.F) {
	f.Add("ttft=500ms,tpot=30ms,itl=1s,e2e=10s")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSLO(text)
		if err != nil {
			return
		}
		if again, err := ParseSLO(s.String()); err != nil || again != s {
			t.Fatalf("%q gives %q, which gives %v, %v", text, s, again, err)
		}
	})
}
