package calibrate

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/sim"
)

// The generating parameters of the simulated logs.
var (
	smallLaw = latency.Affine{C0: 6, C1: .12, C2: 4e-4, P0: 7.5, P1: .021, P2: 3e-6}
	largeLaw = latency.Affine{C0: 27.5, C1: .31, C2: 9e-4, P0: 16, P1: .16, P2: 5e-6} // short extends lie on the floor

	quietOrBusy = latency.ModulationConfig{
		Schema:     latency.ModulationSchema,
		States:     []latency.ModulationState{{Name: "quiet", Multiplier: 1}, {Name: "busy", Multiplier: 1.6}},
		Transition: [][]float64{{.96, .04}, {.15, .85}},
	}
	steady = latency.ModulationConfig{
		Schema: latency.ModulationSchema, States: []latency.ModulationState{{Multiplier: 1}},
		Transition: [][]float64{{1}},
	}
)

var simulatedModels = []string{"qwen3-0.6b", "qwen3-8b", "qwen3-32b"}

// noisy multiplies steps by log-normal noise of mean 1.
type noisy struct {
	latency.Model
	sigma float64
	rng   *rand.Rand
}

func (n *noisy) StepTime(s step.Shape) time.Duration {
	factor := math.Exp(n.sigma*n.rng.NormFloat64() - n.sigma*n.sigma/2)
	return time.Duration(float64(n.Model.StepTime(s)) * factor)
}

// simulation is a run that writes logs; the zero value of a field is left out of it.
type simulation struct {
	algorithm   string
	rates       []float64
	weights     []float64
	correlation float64
	noise       float64
	contention  float64
	requests    int
	seed        uint64
	modulation  latency.ModulationConfig
	laws        []latency.Affine
}

// simulated is what a run logs.
type simulated struct {
	steps, tokens bytes.Buffer
}

func (c simulation) run(t testing.TB) *simulated {
	t.Helper()
	rng := rand.New(rand.NewPCG(c.seed, 7))
	router, err := route.New(c.algorithm, route.Options{Models: len(c.laws), Weights: c.weights})
	if err != nil {
		t.Fatal(err)
	}
	var rules []signal.Rule
	rates := make([]float64, len(c.laws))
	for i := range c.laws {
		rules = append(rules, router.(route.Ruled).Rule(step.ModelID(i)))
	}
	copy(rates, c.rates)
	source, err := signal.New(signal.Config{Seed: c.seed, Rules: rules, Rates: rates, Correlation: c.correlation})
	if err != nil {
		t.Fatal(err)
	}
	modulation, err := latency.NewModulation("test", c.modulation)
	if err != nil {
		t.Fatal(err)
	}
	names := simulatedModels[:len(c.laws)]
	config := &sim.Config{Router: router, Signal: source, Clients: 12, Contention: c.contention}
	for i, law := range c.laws {
		var m latency.Model = law
		if c.noise > 0 {
			m = &noisy{m, c.noise, rng}
		}
		config.Models = append(config.Models, sim.Model{Name: names[i],
			Latency: modulation.Over(m, c.seed, step.ModelID(i))})
	}
	for range c.requests {
		config.Requests = append(config.Requests, sim.Request{Prompt: 20 + rng.Int32N(900), Output: 20 +
			rng.Int32N(400)})
	}
	var out simulated
	steps := NewStepWriter(&out.steps, names)
	tokens := NewTokenWriter(names)
	config.Stepped = func(b *step.Batch, start, end clock.Instant) {
		steps.Step(b, start, end)
		tokens.Step(b, start, end)
	}
	if _, err := sim.Run(context.Background(), config); err != nil {
		t.Fatal(err)
	}
	if err := steps.Err(); err != nil {
		t.Fatal(err)
	}
	if err := tokens.Write(&out.tokens); err != nil {
		t.Fatal(err)
	}
	return &out
}

func mustFit(t testing.TB, log *StepLog, o Options) *StepsReport {
	t.Helper()
	r, err := FitSteps(context.Background(), log, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func coefficients(a latency.Affine) []float64 { return []float64{a.C0, a.C1, a.C2, a.P0, a.P1, a.P2} }

// A log that the simulator wrote gives back the law and the multipliers that made it, to many digits, and the chain to
// what so many steps tell.
func TestSimulatedStepLogGivesBackItsParameters(t *testing.T) {
	c := simulation{algorithm: "r2r", rates: []float64{.2}, requests: 60, seed: 1, modulation: quietOrBusy,
		laws: []latency.Affine{smallLaw, largeLaw}}
	r := mustFit(t, mustSteps(t, c.run(t).steps.String()), Options{})
	for i, m := range r.Models {
		for k, want := range coefficients(c.laws[i]) {
			got := m.Coefficients[k]
			if !got.Told || !got.Contains(want) || math.Abs(got.Value/want-1) > 1e-4 {
				t.Errorf("%s: %s is %.9g in [%.9g, %.9g], want %g", m.Model, got.Name, got.Value, got.Low.Or(-1),
					got.High.Or(-1), want)
			}
		}
		if m.Error.GivenState > 1e-5 || len(m.Warnings) > 0 {
			t.Errorf("%s: error %g given the state, warnings %q", m.Model, m.Error.GivenState, m.Warnings)
		}
		checkChain(t, m.Model, m.Chain)
	}
	checkChain(t, "all models", r.Modulation)
	if len(r.Warnings) > 0 {
		t.Errorf("warnings %q", r.Warnings)
	}
}

// checkChain wants quietOrBusy.
func checkChain(t *testing.T, name string, c *ChainReport) {
	t.Helper()
	if len(c.States) != 2 {
		t.Fatalf("%s: %d states, want 2", name, len(c.States))
	}
	for i, s := range c.States {
		if want := quietOrBusy.States[i].Multiplier; !s.Multiplier.Contains(want) ||
			math.Abs(s.Multiplier.Value-want) > 1e-4 {
			t.Errorf("%s: state %s has multiplier %+v, want %g", name, s.Name, s.Multiplier, want)
		}
		for k, want := range quietOrBusy.Transition[i] {
			if got := c.Transition[i][k]; !got.Contains(want) {
				t.Errorf("%s: from state %d to %d: %+v, want %g", name, i, k, got, want)
			}
		}
	}
}

// redrawn is a log with other step times for the same shapes.
func redrawn(log *StepLog, laws []latency.Affine, modulation *latency.Modulation, noise float64, seed uint64) *StepLog {
	out := *log
	out.Steps = append([]Step(nil), log.Steps...)
	now := make([]clock.Instant, len(laws))
	var m []latency.Model
	for i, law := range laws {
		m = append(m, modulation.Over(&noisy{law, noise, rand.New(rand.NewPCG(seed, uint64(i)))}, seed,
			step.ModelID(i)))
	}
	for i := range out.Steps {
		s := &out.Steps[i]
		s.Duration = m[s.Model].StepTime(s.Shape)
		s.Start = now[s.Model]
		now[s.Model] = now[s.Model].Add(s.Duration)
	}
	return &out
}

// With noise in the steps, 95 % intervals hold the parameters 95 times in a hundred: of the law, of the spread, of the
// multipliers and of the moves, over many redraws of one log.
func TestIntervalsCoverTheParameters(t *testing.T) {
	c := simulation{algorithm: "r2r", rates: []float64{.2}, requests: 40, seed: 1, modulation: quietOrBusy,
		laws: []latency.Affine{smallLaw, largeLaw}}
	log := mustSteps(t, c.run(t).steps.String())
	modulation, err := latency.NewModulation("test", quietOrBusy)
	if err != nil {
		t.Fatal(err)
	}
	const noise = .05
	hit, all := map[string]int{}, map[string]int{}
	seeds := 24
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		r := mustFit(t, redrawn(log, c.laws, modulation, noise, uint64(seed)), Options{States: 2})
		check := func(what string, e Estimate, want float64) {
			for _, name := range []string{what, "all"} {
				all[name]++
				if e.Contains(want) {
					hit[name]++
				}
			}
		}
		for i, m := range r.Models {
			for k, want := range coefficients(c.laws[i]) {
				check("law", m.Coefficients[k].Estimate, want)
			}
			check("spread", m.Chain.Spread, noise)
			check("multiplier", m.Chain.States[1].Multiplier, 1.6)
			check("moves", m.Chain.Transition[0][1], .04)
			check("moves", m.Chain.Transition[1][0], .15)
		}
	}
	t.Log(hit, all)
	for name, least := range map[string]float64{"all": .92, "law": .9, "spread": .83, "multiplier": .83, "moves": .87} {
		if share := float64(hit[name]) / float64(all[name]); share < least {
			t.Errorf("%s: %d of %d intervals hold the parameter", name, hit[name], all[name])
		}
	}
}

// Without modulation there is one state, whatever the noise.
func TestNoiseAloneIsOneState(t *testing.T) {
	c := simulation{algorithm: "r2r", rates: []float64{.2}, requests: 30, seed: 2, modulation: steady, noise: .08,
		laws: []latency.Affine{smallLaw, largeLaw}}
	r := mustFit(t, mustSteps(t, c.run(t).steps.String()), Options{})
	for _, m := range r.Models {
		if len(m.Chain.States) != 1 || !m.Chain.Spread.Contains(.08) {
			t.Errorf("%s: %d states, spread %+v", m.Model, len(m.Chain.States), m.Chain.Spread)
		}
		if bias := m.Error.Bias; math.Abs(bias) > .01 { // the mean, not the median, is predicted
			t.Errorf("%s: bias %g", m.Model, bias)
		}
	}
}

// Models on the same GPUs slow each other: a warning says so, and taking it out gives the law back.
func TestContentionIsTakenOut(t *testing.T) {
	const kappa = .47
	c := simulation{algorithm: "r2r", rates: []float64{.2}, requests: 30, seed: 3, modulation: steady,
		contention: kappa,
		laws:       []latency.Affine{smallLaw, largeLaw}}
	log := mustSteps(t, c.run(t).steps.String())
	r := mustFit(t, log, Options{Contention: kappa})
	for i, m := range r.Models {
		for k, want := range coefficients(c.laws[i]) {
			if got := m.Coefficients[k]; !got.Contains(want) {
				t.Errorf("%s: %s is %+v, want %g", m.Model, got.Name, got.Estimate, want)
			}
		}
		if len(m.Chain.States) != 1 || m.Overlap == 0 || len(m.Warnings) > 0 {
			t.Errorf("%s: %d states, overlap %g, warnings %q", m.Model, len(m.Chain.States), m.Overlap, m.Warnings)
		}
	}
	if r := mustFit(t, log, Options{States: 1}); !mentions(r.Models[0].Warnings, "contention on the same GPUs") {
		t.Errorf("warnings %q", r.Models[0].Warnings)
	}
}

// A token log gives back the rate and the correlation of a bursty signal, and the weights of an ensemble.
func TestSimulatedTokenLogGivesBackItsParameters(t *testing.T) {
	hit, all := 0, 0
	check := func(what string, e Estimate, want float64) {
		t.Helper()
		all++
		if e.Contains(want) {
			hit++
		} else if math.Abs(e.Value-want) > 2*math.Max(e.High.Or(0)-want, want-e.Low.Or(0)) {
			t.Errorf("%s: %+v, want %g", what, e, want)
		}
	}
	for seed := range uint64(4) {
		const rate, correlation = .15, .3
		c := simulation{algorithm: "r2r", rates: []float64{rate}, correlation: correlation, requests: 40, seed: seed,
			modulation: steady,
			laws:       []latency.Affine{smallLaw, largeLaw}}
		r := mustTokens(t, c.run(t).tokens.String(), Options{})
		check("large fraction", r.Routing.LargeFraction, rate)
		check("P(0->1)", r.Routing.ToLarge, rate*(1-correlation))
		check("P(1->1)", r.Routing.StayLarge, rate+correlation*(1-rate))
		check("correlation", r.Routing.Correlation, correlation)
		if len(r.Warnings) > 0 {
			t.Errorf("seed %d: warnings %q", seed, r.Warnings)
		}

		weights := []float64{.5, .3, .2}
		e := simulation{algorithm: "me", weights: weights, requests: 20, seed: seed, modulation: steady,
			laws: []latency.Affine{smallLaw, smallLaw, largeLaw}}
		r = mustTokens(t, e.run(t).tokens.String(), Options{})
		for i := range weights {
			check("share", r.Share[i], weights[i])
			for k, want := range weights {
				check("P", r.Transition[i][k], want)
			}
		}
	}
	if float64(hit) < .9*float64(all) {
		t.Errorf("%d of %d intervals hold the parameter", hit, all)
	}
}

func mentions(warnings []string, text string) bool {
	for _, w := range warnings {
		if bytes.Contains([]byte(w), []byte(text)) {
			return true
		}
	}
	return false
}
