package latency

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trbench/trbench/engine/step"
)

func twoStates(a, b float64) ModulationConfig {
	return ModulationConfig{
		Schema:     ModulationSchema,
		States:     []ModulationState{{"quiet", 1}, {"busy", 3}},
		Transition: [][]float64{{1 - a, a}, {b, 1 - b}},
	}
}

func mustModulation(t testing.TB, c ModulationConfig) *Modulation {
	t.Helper()
	m, err := NewModulation("test", c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A chain that always moves alternates, from its first state on.
func TestModulatedMovesOnceAStep(t *testing.T) {
	m := mustModulation(t, twoStates(1, 1)).Over(Constant(10*time.Millisecond), 1, 0)
	for i := range 10 {
		want := 10 * time.Millisecond
		if i%2 == 1 {
			want = 30 * time.Millisecond
		}
		if got := m.StepTime(decodes(1, 1)); got != want {
			t.Fatalf("step %d takes %v, want %v", i, got, want)
		}
	}
}

func TestModulatedRepeats(t *testing.T) {
	mod := mustModulation(t, twoStates(.3, .4))
	run := func(seed uint64, subserver step.ModelID) (out [200]bool) {
		m := mod.Over(Constant(1000), seed, subserver)
		for i := range out {
			out[i] = m.StepTime(step.Shape{}) > 1000
		}
		return out
	}
	if first, second := run(1, 0), run(1, 0); first != second {
		t.Error("the same seed gives other steps")
	}
	if run(1, 0) == run(1, 1) || run(1, 0) == run(2, 0) || run(1, 1) == run(2, 0) {
		t.Error("seeds or subservers share their draws")
	}
}

// In the long run the chain spends its stationary shares, a/(a+b) of the steps busy, in spells of 1/b.
func TestModulatedIsAMarkovChain(t *testing.T) {
	const a, b, n = .05, .2, 200_000
	mod := mustModulation(t, twoStates(a, b))
	m := mod.Over(Constant(1000), 7, 3)
	busy, spells, was := 0.0, 0.0, false
	for range n {
		is := m.StepTime(step.Shape{}) == 3000
		if is {
			busy++
			if !was {
				spells++
			}
		}
		was = is
	}
	if share := busy / n; math.Abs(share-a/(a+b)) > .01 {
		t.Errorf("busy in %.3f of the steps, want %.3f", share, a/(a+b))
	}
	if length := busy / spells; math.Abs(length-1/b) > .2 {
		t.Errorf("spells of %.2f steps, want %.2f", length, 1/b)
	}
	if mean, ok := mod.Mean(); !ok || math.Abs(mean-(1+2*a/(a+b))) > 1e-12 {
		t.Errorf("mean multiplier %v, %v, want %v", mean, ok, 1+2*a/(a+b))
	}
}

func TestNormalise(t *testing.T) {
	c := twoStates(.25, .75) // a quarter of the steps busy: mean 1.5
	c.Normalise = true
	mod := mustModulation(t, c)
	if mean, ok := mod.Mean(); !ok || mean != 1 {
		t.Errorf("mean %v, %v, want 1", mean, ok)
	}
	m := mod.Over(Constant(1500), 1, 0)
	if got := m.StepTime(step.Shape{}); got != 1000 {
		t.Errorf("a quiet step takes %v, want 1µs", got)
	}

	c.Transition = [][]float64{{1, 0}, {0, 1}}
	if _, err := NewModulation("test", c); err == nil ||
		!strings.HasPrefix(err.Error(), "normalise is true, but the chain has more than one set of states") {
		t.Errorf("a chain of two islands is normalised: %v", err)
	}
	c.Normalise = false
	if _, ok := mustModulation(t, c).Mean(); ok {
		t.Error("a chain of two islands has one mean")
	}

	c.Transition = [][]float64{{.5, .5}, {0, 1}} // it ends up busy
	if mean, ok := mustModulation(t, c).Mean(); !ok || mean != 3 {
		t.Errorf("mean %v, %v, want 3", mean, ok)
	}
}

func TestStationaryBalances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "states")
		rows := make([][]float64, n)
		for i := range rows {
			total := 0.0
			for range n {
				w := rapid.Float64Range(.001, 1).Draw(t, "weight")
				rows[i] = append(rows[i], w)
				total += w
			}
			for j := range rows[i] {
				rows[i][j] /= total
			}
		}
		pi, ok := stationary(rows)
		if !ok {
			t.Fatal("a chain that reaches every state has no stationary distribution")
		}
		for j := range n {
			flow := 0.0
			for i := range n {
				flow += pi[i] * rows[i][j]
			}
			if math.Abs(flow-pi[j]) > 1e-12 {
				t.Fatalf("state %d: %v flows in, %v is there", j, flow, pi[j])
			}
		}
	})
}

func TestModulationPresets(t *testing.T) {
	for _, name := range append(ModulationNames(), "", "Jitter") {
		m, err := ParseModulation(name)
		if err != nil {
			t.Fatal(err)
		}
		if name != "" && m.Name() != strings.ToLower(name) {
			t.Errorf("%q is called %q", name, m.Name())
		}
	}
	if base := Constant(5); None().Over(base, 1, 0) != Model(base) {
		t.Error("none wraps the model")
	}
	j := Jitter()
	if mean, _ := j.Mean(); math.Abs(mean-(.97+.03*1.6)) > 1e-12 {
		t.Errorf("jitter's mean is %v, want 1.018", mean)
	}
	if want := "assumed: jitter, 3 % of steps take 1.6 times as long, in stalls of 3 steps"; j.Label() != want {
		t.Errorf("%q, want %q", j.Label(), want)
	}
	want := `unknown modulation "jiter": did you mean jitter? (none, jitter, cpu-demo or a YAML file)`
	if _, err := ParseModulation("jiter"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	want = `unknown modulation "earthquake" (none, jitter, cpu-demo or a YAML file)`
	if _, err := ParseModulation("earthquake"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	want = "modulation file: open missing.yaml"
	if _, err := ParseModulation("missing.yaml"); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestModulatedPassesWarningsOn(t *testing.T) {
	m := Jitter().Over(WithHost(mustProfile(t, grid()).New(), 1), 1, 0)
	m.StepTime(decodes(9, 100))
	if got := Extrapolated(m); len(got) != 1 {
		t.Errorf("%q, want one warning", got)
	}
}

const goodModulation = `schema: trbench.modulation/1
source: a noisy neighbour
origin: fitted
normalise: true
states:
  - {name: quiet, multiplier: 1}
  - {multiplier: 1.8}
transition:
  - [0.99, 0.01]
  - [0.2, 0.8]
`

func TestReadModulation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mod.yaml")
	if err := os.WriteFile(path, []byte(goodModulation), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := ParseModulation(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := "fitted: file mod.yaml, a noisy neighbour"; m.Label() != want {
		t.Errorf("%q, want %q", m.Label(), want)
	}
	swap := func(old, new string) string { return strings.Replace(goodModulation, old, new, 1) }
	for _, c := range []struct{ text, want string }{
		{swap("modulation/1", "latency/1"), `m:1: schema is "trbench.latency/1", wanted trbench.modulation/1`},
		{swap("0.01", "0.02"), "m:9: transition[0] sums to 1.01, wanted 1 (within 1e-09)"},
		{swap("0.99, 0.01", "0.98, 0.01"), "m:9: transition[0] sums to 0.99, wanted 1 (within 1e-09)"},
		{swap("0.99, 0.01", "1"), "m:9: transition[0] has 1 values, wanted 2, one for each state"},
		{swap("0.99, 0.01", "1.01, -0.01"), "m:9: transition[0][0] is 1.01, wanted a probability"},
		{swap("0.99, 0.01", ".nan, 0.01"), "m:9: transition[0][0] is NaN, wanted a probability"},
		{swap("  - [0.2, 0.8]\n", ""), "m:9: transition has 1 rows, wanted 2, one for each state"},
		{swap("multiplier: 1.8", "multiplier: 0"), "m:7: states[1].multiplier is 0, wanted above 0 and at most 1e+06"},
		{swap("multiplier: 1.8", "multiplier: .inf"), "m:7: states[1].multiplier is +Inf"},
		{swap("origin: fitted", "origin: felt"), `m:3: origin is "felt", wanted measured, fitted,`},
		{swap("source", "sauce"), `m:2: unknown field "sauce"`},
		{"schema: trbench.modulation/1\n", "m: states has 0 states, wanted 1 to 64"},
		{"", "m: empty"},
	} {
		if _, err := ReadModulation("m", strings.NewReader(c.text)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// Whatever the text: an error, or a modulation that runs.
func FuzzReadModulation(f *testing.F) {
	f.Add(goodModulation)
	f.Add("schema: trbench.modulation/1\nstates: [{multiplier: 1e-300}]\ntransition: [[1]]")
	f.Add("schema: trbench.modulation/1\nstates: [{multiplier: 2}, {multiplier: 1}]\n" +
		"transition: [[0.9999999999, 0], [1, 0]]")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ReadModulation("m", strings.NewReader(text))
		if err != nil {
			return
		}
		model := m.Over(Constant(longest/2), 1, 0)
		for range 20 {
			if d := model.StepTime(step.Shape{}); d < 1 || d > longest {
				t.Fatalf("a step of %v", d)
			}
		}
	})
}
