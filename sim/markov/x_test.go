package markov

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"
)

func TestX(t *testing.T) {
	ms := time.Millisecond
	run := func(name string, m Model, n int, B []int, q time.Duration) {
		t0 := time.Now()
		g, err := m.grid(n, q)
		if err != nil {
			t.Fatal(err)
		}
		c, err := build(context.Background(), g, m.Routing, B, n, 8<<30)
		if err != nil {
			fmt.Println(name, err)
			return
		}
		t1 := time.Now()
		e, ok, _ := c.stationary(context.Background(), 5000)
		t2 := time.Now()
		b, ok2, _ := c.bounds(context.Background(), e.rate, 1e-10, 5000)
		t3 := time.Now()
		s := g.quantum.Seconds()
		fmt.Printf("%s N=%d B=%v q=%v states=%d edges=%d heads=%d bound/states %.2f T=%.6f %v sw=%d res=%.1e | [%.6f %.6f] w=%.1e %v sw=%d | build %v stat %v bnd %v\n", name, n, B, g.quantum, c.states(), len(c.to), len(c.heads), stateBound(g, B, n)/float64(c.states()), e.rate/s, ok, e.sweeps, e.residual, b.lower/s, b.upper/s, (b.upper-b.lower)/e.rate, ok2, b.sweeps, t1.Sub(t0), t2.Sub(t1), t3.Sub(t2))
		if len(c.heads) < 1500 {
			t4 := time.Now()
			d, err := c.direct(context.Background())
			fmt.Printf("   direct %.6f res %.1e %v rel %.1e %v\n", d.rate/s, d.residual, err, math.Abs(d.rate/e.rate-1), time.Since(t4))
		}
		if c.states() < 800 {
			d, err := c.dense()
			fmt.Printf("   dense %.9f %v\n", d/s, err)
		}
	}
	r := func(p float64, l0, l1 float64) Model {
		return Model{R2R(p), Fixed(time.Duration(l0*1e6), time.Duration(l1*1e6))}
	}
	_ = ms
	for n := 2; n <= 4; n++ {
		for b := 1; b <= n; b++ {
			run("gold", r(.35, 6, 27.9), n, []int{1, b}, 0)
		}
	}
	run("g16", r(.35, 6, 27.9), 16, []int{1, 1}, 0)
	run("g64", r(.35, 6, 27.9), 64, []int{1, 1}, 0)
	run("g64", r(.35, 6, 27.9), 64, []int{1, 4}, 0)
	run("g64", r(.35, 6, 27.9), 64, []int{1, 16}, 0)
	run("g64", r(.35, 6, 27.9), 64, []int{1, 32}, 0)
	for _, x := range []struct {
		n, b    int
		p, a, c float64
	}{{4, 1, .35, 60, 279}, {3, 1, .948, 6, 14}, {7, 1, .817, 3, 20}, {6, 2, .679, 4, 40}, {9, 1, .855, 12, 60}, {3, 1, .374, 2, 41}, {10, 3, .938, 10, 54}, {4, 1, .9, 60, 279}, {5, 1, .35, 22, 244}, {16, 1, .9, 60, 279}, {64, 1, .9, 60, 279}, {32, 1, .95, 7, 90}} {
		run("meta", r(x.p, x.a, x.c), x.n, []int{1, x.b}, 0)
	}
	m3 := Model{ME(.5, .3, .2), Fixed(6*ms, 11300*time.Microsecond, 27900*time.Microsecond)}
	run("m3", m3, 4, []int{1, 1, 1}, 0)
	run("m3", m3, 8, []int{1, 1, 1}, ms)
	bd := func(n int, p float64) Model {
		m := Model{Routing: R2R(p), Step: make([][]time.Duration, 2)}
		for b := 1; b <= n; b++ {
			m.Step[0] = append(m.Step[0], 6*ms+time.Duration(b)*ms/10)
			m.Step[1] = append(m.Step[1], 27900*time.Microsecond+time.Duration(b)*4*ms/10)
		}
		return m
	}
	run("bd16", bd(16, .35), 16, []int{1, 1}, 0)
	run("bd64", bd(64, .35), 64, []int{1, 1}, 0)
	run("bd4 .9", bd(4, .9), 4, []int{1, 1}, 0)
	run("bd8 .9", bd(8, .9), 8, []int{1, 1}, 0)
	run("bd8 .95", bd(8, .95), 8, []int{1, 2}, 0)
	run("bd16 .9", bd(16, .9), 16, []int{1, 1}, 0)
	m3.Routing = ME(.05, .05, .9)
	run("m3 meta", m3, 4, []int{1, 1, 1}, ms/2)
	m3.Routing = Routing{P: [][]float64{{.05, .9, .05}, {.05, .05, .9}, {.9, .05, .05}}, C: ME(1, 1, 1).C}
	run("m3 cyc", m3, 4, []int{1, 1, 1}, ms/2)
	m3.Routing = Routing{P: [][]float64{{.01, .98, .01}, {.01, .01, .98}, {.98, .01, .01}}, C: ME(1, 1, 1).C}
	run("m3 cyc", m3, 4, []int{1, 1, 1}, ms/2)
	m3.Routing = Routing{P: [][]float64{{.001, .998, .001}, {.001, .001, .998}, {.998, .001, .001}}, C: ME(1, 1, 1).C}
	run("m3 cyc", m3, 6, []int{1, 1, 1}, ms)

}
