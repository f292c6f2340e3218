package plot

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// An axis holds all values with air at its ends, its ticks ascend, and they are as few as there is room for.
func TestValueAxisHoldsTheValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		magnitude := math.Pow(10, rapid.Float64Range(-6, 9).Draw(t, "magnitude"))
		spread := rapid.SampledFrom([]float64{1, 3, 1000}).Draw(t, "spread")
		values := rapid.SliceOfN(rapid.Float64Range(magnitude, magnitude*spread), 1, 8).Draw(t, "values")
		room := labels(rapid.IntRange(2, 11).Draw(t, "room"))
		a := valueAxis("x", values, room)
		for _, v := range values {
			if at, ok := a.scale.place(v); !ok || at < a.min || at > a.max {
				t.Fatalf("%v at %v is outside %v to %v", v, at, a.min, a.max)
			}
		}
		top, _ := a.scale.place(slices.Max(values))
		from := a.min
		if a.scale == log10 { // a whole mark may lie below the least
			from, _ = a.scale.place(slices.Min(values))
		}
		if a.max-top < 0.9*air*(top-from) {
			t.Fatalf("the largest is at %v of %v to %v", top, a.min, a.max)
		}
		labelled := 0
		for i, tick := range a.ticks {
			if i > 0 && tick.Value <= a.ticks[i-1].Value {
				t.Fatalf("ticks %v", a.ticks)
			}
			if tick.Label != "" {
				labelled++
			}
		}
		// Decades are labelled in any case.
		if decades := int(a.max-a.min) + 2; a.scale == linear && labelled > min(6, int(room))+2 ||
			a.scale == log10 && labelled > max(int(room), decades) {
			t.Fatalf("%d labels where there is room for %d: %v", labelled, room, a.ticks)
		}
	})
}

func TestValueAxis(t *testing.T) {
	ticks := func(a axis) string {
		var found []string
		for _, tick := range a.ticks {
			found = append(found, tick.Label)
		}
		return strings.Join(found, " ")
	}
	for _, c := range []struct {
		name string
		axis axis
		want string
	}{
		{"linear", valueAxis("x", []float64{100, 838}, upright), "0 200 400 600 800 1,000"},
		{"little room", valueAxis("x", []float64{100, 838}, 2), "0 500 1,000"},
		{"no value at the edge", valueAxis("x", []float64{1000}, upright), "0 200 400 600 800 1,000 1,200"},
		{"log", valueAxis("x", []float64{17, 2837}, upright), "10 20 50 100 200 500 1,000 2,000 5,000"},
		{"decades", valueAxis("x", []float64{17, 2837}, 5), "10   100   1,000  "},
		{"large", valueAxis("x", []float64{2e4, 3e6}, upright), "10k 20k 50k 100k 200k 500k 1M 2M 5M"},
		{"nothing", valueAxis("x", []float64{math.NaN(), 0}, upright), "0"},
		{"counts", countAxis("n", []int{64, 4, 4, 0}), "4 64"},
		{"close counts", countAxis("n", []int{16, 17, 18, 32}), "16   32"},
		{"percent", percentAxis("%"), "0 25 50 75 100"},
	} {
		if got := ticks(c.axis); got != c.want {
			t.Errorf("%s: ticks %q, want %q", c.name, got, c.want)
		}
	}
}

func TestPlace(t *testing.T) {
	for _, c := range []struct {
		scale scale
		v     float64
		want  float64
		ok    bool
	}{
		{linear, 0, 0, true}, {linear, -3, -3, true}, {linear, math.NaN(), 0, false}, {linear, math.Inf(1), 0, false},
		{log2, 8, 3, true}, {log2, 0, 0, false}, {log10, 100, 2, true}, {log10, -1, 0, false},
	} {
		if got, ok := c.scale.place(c.v); got != c.want || ok != c.ok {
			t.Errorf("%v on scale %d: %v, %v", c.v, c.scale, got, ok)
		}
	}
}

func TestValueLabel(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.00", 6.018: "6.02", 97.62: "97.6", 254.2: "254", 1071.4: "1,071", 1234567: "1,234,567",
		-1234: "-1,234", -123: "-123",
	} {
		if got := valueLabel(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

// Up to as many systems as there are looks, each has its own; the usual ones always the same.
func TestLooks(t *testing.T) {
	usual := systemLooks[:]
	for _, systems := range [][]string{
		append(slices.Clone(usual), "mine"),
		{"a", "b", "c", "d", "e", "f", "g", "h"},
		{"tokenrouter", "mine", "yours", "large-only"},
	} {
		var seen []look
		for _, s := range systems {
			l := lookOf(s, systems)
			if slices.ContainsFunc(seen, func(o look) bool { return o.color == l.color || o.glyph == l.glyph }) {
				t.Errorf("%q: %s looks like another", systems, s)
			}
			seen = append(seen, l)
		}
	}
	for i, s := range usual {
		if got := lookOf(s, []string{"x", s}); got.color != looks[i].color {
			t.Errorf("%s changes its colour", s)
		}
	}
	lookOf("z", append(slices.Repeat([]string{"q"}, 20), "z")) // more than there are is no panic
}

// A fitted axis holds all values with air at its ends, spreads them over most of it, and labels no two ticks alike.
func TestFittedAxisHoldsTheValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		magnitude := math.Pow(10, rapid.Float64Range(-6, 9).Draw(t, "magnitude"))
		spread := rapid.SampledFrom([]float64{1, 1.0001, 1.1, 3, 1000}).Draw(t, "spread")
		values := rapid.SliceOfN(rapid.Float64Range(magnitude, magnitude*spread), 1, 8).Draw(t, "values")
		room := labels(rapid.IntRange(2, 11).Draw(t, "room"))
		a := fittedAxis("x", append(values, math.NaN()), room)
		for _, v := range values {
			if at, ok := a.scale.place(v); !ok || at <= a.min || at >= a.max {
				t.Fatalf("%v at %v is outside %v to %v", v, at, a.min, a.max)
			}
		}
		seen := map[string]bool{}
		for i, tick := range a.ticks {
			if i > 0 && tick.Value <= a.ticks[i-1].Value || tick.Value < a.min || tick.Value > a.max {
				t.Fatalf("ticks %v from %v to %v", a.ticks, a.min, a.max)
			}
			if tick.Label != "" && seen[tick.Label] {
				t.Fatalf("two ticks are %s: %v", tick.Label, a.ticks)
			}
			seen[tick.Label] = true
		}
		least, most := slices.Min(values), slices.Max(values)
		if a.scale == linear && a.min > 0 && most > 1.05*least && (most-least)/(a.max-a.min) < 0.8 {
			t.Fatalf("%v to %v take little of %v to %v", least, most, a.min, a.max)
		}
	})
}

func TestDelayAndCategoryAxes(t *testing.T) {
	ticks := func(a axis) string {
		var found []string
		for _, tick := range a.ticks {
			found = append(found, tick.Label)
		}
		return strings.Join(found, " ")
	}
	counts := func(from, to float64) []float64 {
		var found []float64
		for v := from; v <= to; v++ {
			found = append(found, v)
		}
		return found
	}
	for _, c := range []struct {
		name string
		axis axis
		want string
	}{
		{"few delays", delayAxis("d", counts(1, 4), 6), "1 2 3 4"},
		{"delays", delayAxis("d", append(counts(1, 16), 0.5), 6), "1 4 8 12 16"},
		{"not from 1", delayAxis("d", counts(4, 8), 6), "4 5 6 7 8"},
		{"doubling", delayAxis("d", []float64{0.5, 1, 2, 32}, 8), "0.5 1 2 4 8 16 32"},
		{"no delay", delayAxis("d", []float64{math.NaN(), 0}, 6), "0"},
		{"fitted", fittedAxis("x", []float64{184, 208}, upright), "185 190 195 200 205 210"},
		{"fitted from 0", fittedAxis("x", []float64{10, 90}, upright), "0 20 40 60 80"},
		{"fitted to one value", fittedAxis("x", []float64{100}, upright), "99.9 100 100.1"},
		{"fitted below 0", fittedAxis("x", []float64{-3, 3}, upright), "-2 0 2"},
		{"names", categoryAxis("x", []string{"64", "256", "1024"}, 4), "64 256 1024"},
		{"many names", categoryAxis("x", []string{"0.1", "0.2", "0.3", "0.4", "0.5"}, 3), "0.1  0.3  0.5"},
	} {
		if got := ticks(c.axis); got != c.want {
			t.Errorf("%s: ticks %q, want %q", c.name, got, c.want)
		}
	}
}
