package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results"
)

// constants are whole steps, one a model.
func constants(times ...time.Duration) []Model {
	var m []Model
	for i, t := range times {
		m = append(m, Model{Name: fmt.Sprint("model", i), Latency: latency.Constant(t)})
	}
	return m
}

func equal(n int, prompt, output int32) []Request {
	r := make([]Request, n)
	for i := range r {
		r[i] = Request{prompt, output}
	}
	return r
}

// routed sets up algorithm with rates under seed.
func routed(t testing.TB, c *Config, algorithm string, seed uint64, correlation float64, rates ...float64) {
	t.Helper()
	r, err := route.New(algorithm, route.Options{Models: len(c.Models)})
	if err != nil {
		t.Fatal(err)
	}
	var rules []signal.Rule
	for i := range c.Models {
		rules = append(rules, r.(route.Ruled).Rule(step.ModelID(i)))
	}
	for len(rates) < len(rules) {
		rates = append(rates, 0)
	}
	c.Router = r
	c.Signal, err = signal.New(signal.Config{Seed: seed, Rules: rules, Rates: rates, Correlation: correlation})
	if err != nil {
		t.Fatal(err)
	}
}

// threshold sets B on every model.
func threshold(c *Config, b ...int) {
	table := core.Table{b}.Lowered()
	for i := range c.Models {
		c.Models[i].Policy.Threshold = table.Column(i)
	}
}

func mustRun(t testing.TB, c *Config) *Outcome {
	t.Helper()
	o, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func tokensPerSecond(o *Outcome) float64 {
	return o.Summarise(results.Point{}).SteadyTokS.Or(math.NaN())
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
		t.Errorf("%s: got %.10g, want %.10g: off by %+.4f %%, allowed %.4f %%", what, got, want, 100*(got/want-1), 100*tolerance)
	}
}

const (
	small = 6 * time.Millisecond
	large = 27900 * time.Microsecond
)

// N = 1: the time is the sum of the steps, to the nanosecond, for the draws that were made.
func TestOneRequestAtATime(t *testing.T) {
	c := &Config{Models: constants(small, large), Requests: equal(20, 100, 500), Clients: 1, Check: true}
	routed(t, c, "r2r", 7, 0, .35)
	o := mustRun(t, c)
	n0, n1 := o.Models[0].Steps, o.Models[1].Steps
	if want := time.Duration(n0)*small + time.Duration(n1)*large; time.Duration(o.End) != want {
		t.Errorf("end at %v, want %v", o.End, want)
	}
	// The closed form 1 / (L0 + p L1) with the p that was drawn: the share of small steps that left.
	p := float64(n1) / float64(n0)
	want := 1 / (small.Seconds() + p*large.Seconds())
	got := 20 * 500 / o.End.Seconds()
	near(t, "N = 1", got, want, 1e-9)
	near(t, "p", p, .35, .03)
}

// Every N requests run in lockstep when both steps cost the same: T = N / (L (1 + p)) (paper, appendix D; reference's
// closed form for L_0 = L_1, B = (1,1)). The tie rule is what makes it so.
func TestEqualSteps(t *testing.T) {
	long(t)
	c := &Config{Models: constants(small, small), Requests: equal(40, 100, 20000), Clients: 4}
	routed(t, c, "r2r", 1, 0, .35)
	near(t, "N = 4, 6/6 ms", tokensPerSecond(mustRun(t, c)), 4/(.006*1.35), .005)
	near(t, "N = 4, 6/6 ms, published", tokensPerSecond(mustRun(t, c)), 493.8, .005)
}

// Gather-all B = (1, N): T = (N/p) / (L0 E[max of N geometric(p)] + L1).
func TestGatherAll(t *testing.T) {
	long(t)
	const p = .35
	for _, n := range []int{2, 4, 8} {
		c := &Config{Models: constants(small, large), Requests: equal(2*n, 100, 60000), Clients: n}
		routed(t, c, "r2r", 3, 0, p)
		threshold(c, 1, n)
		longest := 0.
		for k := 0; k < 400; k++ {
			longest += 1 - math.Pow(1-math.Pow(1-p, float64(k)), float64(n))
		}
		want := float64(n) / p / (small.Seconds()*longest + large.Seconds())
		near(t, fmt.Sprint("gather-all N = ", n), tokensPerSecond(mustRun(t, c)), want, .006)
	}
}

// Step-Sync: T = N / (L0 + (1 - (1-p)^N) L1): 138 / 242 tok/s at N = 4 / 8.
func TestStepSync(t *testing.T) {
	for n, published := range map[int]float64{4: 138, 8: 242} {
		c := &Config{Topology: StepSync, Models: constants(small, large), Requests: equal(2*n, 100, 40000), Clients: n}
		routed(t, c, "r2r", 5, 0, .35)
		got := tokensPerSecond(mustRun(t, c))
		want := float64(n) / (small.Seconds() + (1-math.Pow(.65, float64(n)))*large.Seconds())
		near(t, fmt.Sprint("step-sync N = ", n), got, want, .005)
		near(t, fmt.Sprint("step-sync published N = ", n), got, published, .005)
	}
}

// The nine golden values of the paper's chain (tok/s to four decimals: ours), by simulation within 0.5 %.
func TestGoldenChain(t *testing.T) {
	long(t)
	golden := map[int][]float64{
		2: {98.9569, 110.3227},
		3: {142.3388, 158.1171, 151.8913},
		4: {187.1897, 195.4391, 207.9540, 190.7422},
	}
	for n, row := range golden {
		for b, want := range row {
			c := &Config{Models: constants(small, large), Requests: equal(2*n, 100, 100000), Clients: n}
			routed(t, c, "r2r", 11, 0, .35)
			threshold(c, 1, b+1)
			near(t, fmt.Sprintf("N = %d, B = (1,%d)", n, b+1), tokensPerSecond(mustRun(t, c)), want, .005)
		}
	}
}

// profile is an embedded latency table.
func profile(t testing.TB, gpu, model string, tp int) latency.Model {
	t.Helper()
	p, err := latency.Lookup(gpu, model, tp)
	if err != nil {
		t.Fatal(err)
	}
	return p.New()
}

// poisson draws n arrivals at rate a second.
func poisson(n int, rate float64, seed uint64) []clock.Instant {
	rng := rand.New(rand.NewPCG(seed, 1))
	at := make([]clock.Instant, n)
	var now clock.Instant
	for i := range at {
		now = now.Add(time.Duration(rng.ExpFloat64() / rate * 1e9))
		at[i] = now
	}
	return at
}

// long leaves a test out of -short: one that averages over many tokens, and shows nothing more under the race detector.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("averages over many tokens")
	}
}
