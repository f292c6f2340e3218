package calibrate

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/latency"
)

// testSteps are steps of all kinds, without times.
func testSteps(rng *rand.Rand, n int) []observation {
	out := make([]observation, n)
	for i := range out {
		s := &out[i].shape
		kind := rng.IntN(4)
		if kind < 3 {
			s.Decodes = 1 + rng.IntN(8)
			s.DecodeContext = int64(s.Decodes) * (50 + rng.Int64N(900))
		}
		if kind >= 2 {
			fed, cached := 2+rng.Int64N(600), rng.Int64N(2)*rng.Int64N(500)
			s.Extends, s.ExtendTokens, s.ExtendWork, s.ExtendContext = 1, fed, fed*(fed+2*cached), fed+cached
		}
	}
	return out
}

// logOf is a step log of one model: steps one after the other, of the times that a function gives.
func logOf(steps []observation, time func(i int, s *step.Shape) float64) *StepLog {
	log := &StepLog{File: "f", Models: []string{"m"}, Resolution: 1}
	now := clock.Instant(0)
	for i := range steps {
		s := steps[i].shape
		d := durationOf(time(i, &s))
		log.Steps = append(log.Steps, Step{Start: now, Duration: d, Batch: s.Seqs(), NewTokens: s.Tokens(),
			ContextTokens: s.DecodeContext + s.ExtendContext, Shape: s, Split: true})
		now = now.Add(d)
	}
	return log
}

func durationOf(ms float64) time.Duration { return time.Duration(math.Round(ms * 1e6)) }

func ms(a latency.Affine) func(int, *step.Shape) float64 {
	return func(_ int, s *step.Shape) float64 { return float64(a.StepTime(*s)) / 1e6 }
}

// Every form of the law's maxima is found again, exactly.
func TestFitAffineFindsTheLaw(t *testing.T) {
	for name, want := range map[string]latency.Affine{
		"p0 above c0":      {C0: 6, C1: .12, C2: 4e-4, P0: 9, P1: .021, P2: 3e-6},
		"p0 below c0":      {C0: 12, C1: .12, C2: 4e-4, P0: 6, P1: .021, P2: 3e-6},
		"no prefill base":  {C0: 12, C1: .2, C2: 1e-3, P0: 0, P1: .04, P2: 1e-6},
		"no quadratic":     {C0: 27, C1: .1, C2: 5e-5, P0: 16, P1: .16},
		"context for free": {C0: 27, C1: .1, P0: 16, P1: .16, P2: 1e-5},
	} {
		steps := testSteps(rand.New(rand.NewPCG(1, 1)), 800)
		r := mustFit(t, logOf(steps, ms(want)), Options{States: 1})
		got := coefficients(r.Models[0].affine)
		for k, w := range coefficients(want) {
			if math.Abs(got[k]-w) > 1e-5*math.Max(w, 1e-6) {
				t.Errorf("%s: %s is %g, want %g", name, termNames[k], got[k], w)
			}
		}
	}
}

// Twice as slow a machine has twice the law, and the same chain; a clock that began elsewhere changes nothing.
func TestScaleAndShift(t *testing.T) {
	steps := testSteps(rand.New(rand.NewPCG(2, 1)), 1500)
	rng := rand.New(rand.NewPCG(2, 2))
	var factor []float64
	slow := 1.0
	for range steps {
		if rng.Float64() < .05 {
			slow = 2.3 - slow // 1 or 1.3
		}
		factor = append(factor, slow*math.Exp(.02*rng.NormFloat64()))
	}
	base := ms(smallLaw)
	fit := func(scale float64, shift clock.Instant) *StepsReport {
		log := logOf(steps, func(i int, s *step.Shape) float64 { return scale * factor[i] * base(i, s) })
		for i := range log.Steps {
			log.Steps[i].Start = log.Steps[i].Start.Add(time.Duration(shift))
		}
		return mustFit(t, log, Options{})
	}
	one, two := fit(1, 0), fit(2, 5e12)
	for k, c := range one.Models[0].Coefficients {
		if got := two.Models[0].Coefficients[k].Value; math.Abs(got-2*c.Value) > 1e-3*c.Value+1e-9 {
			t.Errorf("%s: %g and %g", c.Name, c.Value, got)
		}
	}
	for i, s := range one.Modulation.States {
		o := two.Modulation.States[i]
		if math.Abs(s.Multiplier.Value-o.Multiplier.Value) > 1e-4 || math.Abs(s.Share-o.Share) > 1e-3 {
			t.Errorf("state %d: %+v and %+v", i, s, o)
		}
	}
}

func TestHostTimeIsSplitOff(t *testing.T) {
	steps := testSteps(rand.New(rand.NewPCG(3, 1)), 600)
	whole := ms(latency.Affine{C0: 10, C1: .1, C2: 1e-3, P0: 12, P1: .02})
	m := mustFit(t, logOf(steps, whole), Options{Host: 4 * time.Millisecond, States: 1}).Models[0]
	if math.Abs(m.HostMS-4) > 1e-12 || math.Abs(m.affine.C0-6) > 1e-4 || math.Abs(m.affine.P0-8) > 1e-3 {
		t.Errorf("host %g ms, law %+v", m.HostMS, m.affine)
	}
	_, err := FitSteps(context.Background(), logOf(steps, whole), Options{Host: 10 * time.Millisecond})
	if !errors.Is(err, ErrOptions) {
		t.Errorf("host time of a whole step: %v", err)
	}
	// Decodes that follow on, with 3 ms between them that the log leaves out.
	log := &StepLog{File: "f", Models: []string{"m"}, Resolution: 1}
	now := clock.Instant(0)
	for i := range 300 {
		context := int64(400 + 4*(i%100))
		log.Steps = append(log.Steps, Step{Start: now, Duration: durationOf(5 + float64(context)/1000), Batch: 4,
			NewTokens:     4,
			ContextTokens: context, Shape: step.Shape{Decodes: 4, DecodeContext: context}, Split: true})
		now = now.Add(log.Steps[i].Duration + 3*time.Millisecond)
	}
	m = mustFit(t, log, Options{HostGaps: true}).Models[0]
	if m.GapMS == nil || m.GapMS.Pairs != 297 || math.Abs(m.HostMS-3) > 1e-9 || math.Abs(m.affine.C0-5) > 1e-3 {
		t.Errorf("gap %+v, host %g ms, law %+v", m.GapMS, m.HostMS, m.affine)
	}
}

// A table gives back the times of a machine that no affine law fits, and the chain that was over them.
func TestTableLaw(t *testing.T) {
	machine, err := latency.Lookup("a100", "qwen3-0.6b", 1)
	if err != nil {
		t.Fatal(err)
	}
	steps := testSteps(rand.New(rand.NewPCG(4, 1)), 1500)
	model := latency.Jitter().Over(latency.WithHost(machine.New(), latency.SmallHost), 1, 0)
	log := logOf(steps, func(_ int, s *step.Shape) float64 { return float64(model.StepTime(*s)) / 1e6 })
	r := mustFit(t, log, Options{Law: latency.KindTable, Host: latency.SmallHost})
	m := r.Models[0]
	if m.Error.GivenState > .005 {
		t.Errorf("error %+v", m.Error)
	}
	slowest := m.Chain.States[len(m.Chain.States)-1]
	if math.Abs(slowest.Multiplier.Value-1.6) > .01 || math.Abs(slowest.Share-.03) > .015 {
		t.Errorf("stalls are %+v", slowest)
	}
	for _, s := range m.Chain.States[:len(m.Chain.States)-1] { // what the table can't tell, a per cent or so
		if math.Abs(s.Multiplier.Value-1) > .03 {
			t.Errorf("a state that isn't there: %+v", s)
		}
	}
	var file bytes.Buffer
	if err := latency.Write(&file, r.LatencyFile()); err != nil {
		t.Fatal(err)
	}
	back, err := latency.Read("latency.yaml", &file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := latency.NewProfile("back", *back.Models[0].Table)
	if err != nil {
		t.Fatal(err)
	}
	again := latency.WithHost(p.New(), durationOf(back.Models[0].HostMS))
	want := latency.WithHost(machine.New(), latency.SmallHost)
	off := 0.0
	for i := range steps {
		got, real := float64(again.StepTime(steps[i].shape)), float64(want.StepTime(steps[i].shape))
		off += math.Abs(got/real-1) / float64(len(steps))
	}
	if off > .01 {
		t.Errorf("the file's steps are off by %.2f %% on average", 100*off)
	}
	_, err = FitSteps(context.Background(), log, Options{Law: latency.KindTable, Host: time.Second})
	if !errors.Is(err, ErrOptions) {
		t.Errorf("host time of a second: %v", err)
	}
}

// Each assumption that fails is told.
func TestStepWarnings(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	all := testSteps(rng, 1200)
	only := func(keep func(*step.Shape) bool) []observation {
		var out []observation
		for _, o := range all {
			if keep(&o.shape) {
				out = append(out, o)
			}
		}
		return out
	}
	base := ms(smallLaw)
	for _, c := range []struct {
		name string
		log  func() *StepLog
		want []string
	}{
		{"fine", func() *StepLog { return logOf(all, base) }, nil},
		{"drift", func() *StepLog {
			return logOf(all, func(i int, s *step.Shape) float64 { return base(i, s) * (1 + .1*float64(i)/1200) })
		}, []string{"the residual drifts: at the end of the log a step of the same shape takes +"}},
		{"no extends", func() *StepLog { return logOf(only(func(s *step.Shape) bool { return s.Extends == 0 }), base) },
			[]string{"the log has no extends"}},
		{"no decodes", func() *StepLog { return logOf(only(func(s *step.Shape) bool { return s.Decodes == 0 }), base) },
			[]string{"the log has no decodes"}},
		{"one batch", func() *StepLog {
			return logOf(only(func(s *step.Shape) bool { return s.Decodes == 3 && s.Extends == 0 || s.Decodes == 0 }),
				base)
		}, []string{"c1_ms_per_seq is not told: the batch never changes"}},
		{"one prompt", func() *StepLog {
			steps := only(func(s *step.Shape) bool { return s.Extends == 0 || s.Decodes == 0 })
			for i := range steps {
				if s := &steps[i].shape; s.Extends > 0 {
					s.ExtendTokens, s.ExtendWork, s.ExtendContext = 512, 512*512, 512
				}
			}
			return logOf(steps, base)
		}, []string{"p0_ms is not told", "p2_ms_per_token2 is not told"}},
		{"resumes only", func() *StepLog {
			return logOf(only(func(s *step.Shape) bool { return s.Extends == 0 || s.ExtendContext > s.ExtendTokens }),
				base)
		}, []string{"no extend of the log starts from nothing"}},
		{"shapes unknown", func() *StepLog {
			log := logOf(all, base)
			for i := range log.Steps {
				s := &log.Steps[i]
				s.Shape, s.Split = guess(s)
			}
			return log
		}, []string{"mix extends with other rows"}},
		{"batch 1 is another law", func() *StepLog {
			return logOf(all, func(i int, s *step.Shape) float64 {
				if s.Decodes == 1 && s.Extends == 0 {
					return .8 * base(i, s)
				}
				return base(i, s)
			})
		}, []string{"the law doesn't hold for all shapes: decodes of batch 1 take"}},
		{"stays of one length", func() *StepLog {
			return logOf(all, func(i int, s *step.Shape) float64 {
				if i%20 >= 15 {
					return 1.5 * base(i, s)
				}
				return base(i, s)
			})
		}, []string{"are not geometric"}},
		{"a state that comes once", func() *StepLog {
			return logOf(all, func(i int, s *step.Shape) float64 {
				if i > 500 && i < 600 {
					return 1.5 * base(i, s)
				}
				return base(i, s)
			})
		}, []string{"the log enters state slow 1.0 times"}},
		{"another machine at the end", func() *StepLog {
			return logOf(all, func(i int, s *step.Shape) float64 {
				if i > 960 {
					return 1.5 * base(i, s)
				}
				return base(i, s)
			})
		}, []string{"enters state slow 1.0 times", "the residual drifts", "is off by -3", "in the long run the chain " +
			"makes steps +"}},
	} {
		r := mustFit(t, c.log(), Options{States: 2})
		got := r.Models[0].Warnings
		for _, want := range c.want {
			if !mentions(got, want) {
				t.Errorf("%s: no warning of %q in %q", c.name, want, got)
			}
		}
		if len(c.want) == 0 && len(got) > 0 {
			t.Errorf("%s: warnings %q", c.name, got)
		}
		if !mentions(r.Warnings, "the log has one model, m") {
			t.Errorf("%s: warnings of the log %q", c.name, r.Warnings)
		}
	}
}

// A step whose shape is unknown is passed over by the law and gone through by the chain.
func TestUnknownShapesDontHurt(t *testing.T) {
	steps := testSteps(rand.New(rand.NewPCG(7, 1)), 1500)
	log := logOf(steps, ms(smallLaw))
	for i := range log.Steps {
		if i%5 == 0 {
			log.Steps[i].Shape, log.Steps[i].Split = step.Shape{}, false
		}
	}
	m := mustFit(t, log, Options{States: 2}).Models[0]
	if m.Unknown != 300 || m.Steps != 1500 || m.Error.Mean > 1e-5 {
		t.Errorf("%d of %d unknown, error %+v", m.Unknown, m.Steps, m.Error)
	}
	for i := range log.Steps {
		log.Steps[i].Split = log.Steps[i].Split && i < 20
	}
	_, err := FitSteps(context.Background(), log, Options{})
	var data *DataError
	if !errors.As(err, &data) || !strings.Contains(err.Error(),
		"has 16 steps whose shape is known, wanted at least 20") {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	log := logOf(testSteps(rand.New(rand.NewPCG(8, 1)), 100), ms(smallLaw))
	for _, o := range []Options{
		{Law: "cubic"}, {States: 5}, {States: -1}, {Window: -1}, {Contention: -.1}, {Contention: math.NaN()},
		{Host: -1}, {Host: 1, HostGaps: true}, {HostGaps: true},
	} {
		if _, err := FitSteps(context.Background(), log, o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := FitSteps(ctx, log, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if _, err := FitSteps(context.Background(), &StepLog{File: "f"}, Options{}); err == nil {
		t.Error("no step, no error")
	}
}

func TestOverlaps(t *testing.T) {
	at := func(model int, start, end clock.Instant) Step {
		return Step{Model: model, Start: start, Duration: end.Sub(start)}
	}
	log := &StepLog{Models: []string{"a", "b", "c"}, Steps: []Step{
		at(0, 0, 10), at(1, 5, 20), at(2, 8, 9), at(0, 10, 12), at(0, 30, 40), at(1, 38, 50), at(2, 35, 39),
	}}
	want := []time.Duration{5, 7, 1, 2, 5, 2, 4}
	if got := overlaps(log); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := alone(30, 15, .5); got != 25 {
		t.Errorf("30 ns of which 15 at 1.5 times: %g of work", got)
	}
}

func BenchmarkFitSteps(b *testing.B) {
	steps := testSteps(rand.New(rand.NewPCG(9, 1)), 5000)
	model := latency.Jitter().Over(smallLaw, 1, 0)
	rng := rand.New(rand.NewPCG(9, 2))
	log := logOf(steps, func(_ int, s *step.Shape) float64 {
		return float64(model.StepTime(*s)) / 1e6 * math.Exp(.03*rng.NormFloat64())
	})
	for b.Loop() {
		mustFit(b, log, Options{})
	}
}

// Whatever the log, there is a report of finite numbers that can be written, read back and printed.
func TestAnyLogHasAReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var steps []observation
		n := rapid.IntRange(fewest, 60).Draw(t, "steps")
		for range n {
			var o observation
			s := &o.shape
			if rapid.IntRange(0, 3).Draw(t, "decodes?") > 0 {
				s.Decodes = rapid.IntRange(1, 300).Draw(t, "decodes")
				s.DecodeContext = int64(s.Decodes) * rapid.Int64Range(1, 100000).Draw(t, "context")
			}
			if s.Decodes == 0 || rapid.IntRange(0, 3).Draw(t, "extends?") == 0 {
				fed, cached := rapid.Int64Range(1, 20000).Draw(t, "fed"), rapid.Int64Range(0, 20000).Draw(t, "cached")
				s.Extends, s.ExtendTokens, s.ExtendWork, s.ExtendContext = 1, fed, fed*(fed+2*cached), fed+cached
			}
			steps = append(steps, o)
		}
		log := logOf(steps, func(int, *step.Shape) float64 { return rapid.Float64Range(1e-3, 1e3).Draw(t, "ms") })
		law := rapid.SampledFrom([]latency.Kind{latency.KindAffine, latency.KindAffine, latency.KindTable}).Draw(t, "law")
		r, err := FitSteps(context.Background(), log, Options{Law: law})
		if err != nil {
			t.Fatal(err)
		}
		var file, modulation, doc, text bytes.Buffer
		report := Report{Steps: r}
		err = errors.Join(latency.Write(&file, r.LatencyFile()), WriteModulation(&modulation, r.ModulationFile()),
			report.JSON(&doc), report.Text(&text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := latency.Read("f", &file); err != nil {
			t.Fatal(err)
		}
		if _, err := latency.ReadModulation("f", &modulation); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(text.String(), "\n") {
			if runes(line) > width || strings.Contains(line, "NaN") || strings.Contains(line, "Inf") {
				t.Fatalf("%d columns: %s", runes(line), line)
			}
		}
	})
}
