package results

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// byStandard is the oracle: encoding/json without HTML escaping.
func byStandard(t interface{ Fatal(...any) }, v any) string {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
}

func TestStringIsAsInEncodingJSON(t *testing.T) {
	for _, s := range []string{
		"", "plain", `quote " and \ back`, "\b\f\n\r\t\x00\x1f\x7f", "naïve 東京 🙂", "\u2028 and \u2029", "a<b>&c",
		"\xff", "cut \xe2\x82", "\xed\xa0\x80", "\ufffd itself",
	} {
		if got, want := string(appendString(nil, s)), byStandard(t, s); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

func TestFloatIsAsInEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{
			0, math.Copysign(0, -1), 1e-6, 9.999999e-7, 1e-9, 1e-10, 1e20, 1e21, -1e21, 5e-324, math.MaxFloat64, 0.1,
		})).Draw(t, "x")
		if math.IsNaN(x) || math.IsInf(x, 0) {
			t.Skip()
		}
		if got, want := string(appendFloat(nil, x)), byStandard(t, x); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

// The shortcut for spans writes what the general way would.
func TestMillisIsTheShortestDecimal(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, d time.Duration) {
		got, want := string(appendMillis(nil, d)), string(appendFloat(nil, float64(d)/1e6))
		if got != want {
			t.Fatalf("%d ns: got %s, want %s", int64(d), got, want)
		}
	}
	for _, d := range []time.Duration{
		0, 1, 10, 999_999, 1e6, 1e6 + 1, 123_456_789, exactNanos - 1, exactNanos, exactNanos + 1, -1, math.MaxInt64,
	} {
		check(t, d)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, time.Duration(rapid.Int64Range(0, 1<<rapid.IntRange(1, 62).Draw(t, "bits")).Draw(t, "ns")))
	})
}
