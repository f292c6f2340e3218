package latency

import (
	"testing"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/step"
)

// steps are like a simulation's: batches that change a little, contexts that grow.
func steps(mixed bool) []step.Shape {
	var out []step.Shape
	for i := range 1024 {
		s := decodes(1+i%64, 100+3*i)
		if mixed {
			s = plus(s, extend(1+i%16, 100+3*i))
		}
		out = append(out, s)
	}
	return out
}

func BenchmarkStepTime(b *testing.B) {
	p, err := Lookup("a100", "llama3-70b", 4)
	if err != nil {
		b.Fatal(err)
	}
	affine := Affine{C0: 27.6, C1: .098, C2: 5.7e-5, P0: 16.4, P1: .159, P2: 4.5e-7}
	for _, c := range []struct {
		name  string
		m     Model
		mixed bool
	}{
		{"constant", Constant(12 * time.Millisecond), false},
		{"affine", affine, true},
		{"table/decodes", p.New(), false},
		{"table/mixed", p.New(), true},
		{"table/mixed+host+jitter", Jitter().Over(WithHost(p.New(), LargeHost), 1, 0), true},
	} {
		b.Run(c.name, func(b *testing.B) {
			shapes := steps(c.mixed)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				c.m.StepTime(shapes[i%len(shapes)])
				i++
			}
		})
	}
}

func BenchmarkParseProfiles(b *testing.B) {
	decode, prefill := mustRead("a100.decode.csv"), mustRead("a100.prefill.csv")
	for b.Loop() {
		if _, err := parseProfiles("a100", decode, prefill); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkContention(b *testing.B) {
	c := NewContention(FittedContention, 2)
	var now clock.Instant
	c.Start(now, 0, 1000)
	c.Start(now, 1, 300)
	for b.Loop() {
		i := 0
		if c.End(1) < c.End(0) {
			i = 1
		}
		now = c.End(i)
		c.Finish(now, i)
		c.Start(now, i, 1000)
	}
}

func TestStepTimeDoesNotAllocate(t *testing.T) {
	p, err := Lookup("a100", "llama3-70b", 4)
	if err != nil {
		t.Fatal(err)
	}
	m := Jitter().Over(WithHost(p.New(), LargeHost), 1, 0)
	shapes := append(steps(true), decodes(500, 9000), extend(9000, 0))
	i := 0
	if n := testing.AllocsPerRun(2000, func() {
		m.StepTime(shapes[i%len(shapes)])
		i++
	}); n != 0 {
		t.Errorf("%v allocations a step", n)
	}
}
