package metrics

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/results"
	"pgregory.net/rapid"
)

const ms = clock.Instant(time.Millisecond)

// request finishes with n tokens, the first at first and the rest evenly up to last.
func request(arrival, first, last clock.Instant, n int32) *results.Request {
	return &results.Request{Arrival: arrival, Sent: arrival, First: first, Last: last, OutputTokens: n}
}

// Two workers, four requests; everything can be done in the head.
func TestSummariseByHand(t *testing.T) {
	c := NewCollector(Config{Concurrency: 2, SLO: SLO{E2E: 100 * time.Millisecond}, Percentiles: []float64{95}})
	add := func(r *results.Request, large, hops int32) {
		r.LargeTokens, r.Hops = large, hops
		c.Add(r)
	}
	// Worker 1: 0-100, 100-250; worker 2: 0-150 and 150-200 ms.
	add(request(0, 20*ms, 100*ms, 9), 3, 4)        // TTFT 20, TPOT 10, E2E 100
	add(request(0, 30*ms, 150*ms, 7), 0, 0)        // TTFT 30, TPOT 20, E2E 150
	add(request(150*ms, 200*ms, 200*ms, 1), 1, 1)  // TTFT 50, no TPOT, E2E 50
	add(request(100*ms, 150*ms, 250*ms, 11), 3, 1) // TTFT 50, TPOT 10, E2E 150
	c.Commit(10*time.Millisecond, 3)               // gaps 10, 0, 0; chunk gap 10
	c.CommitFirst(2)                               // gap 0
	c.CommitN(20*time.Millisecond, 2)              // gaps 20, 20; chunk gaps 20, 20
	c.Switch(Enqueue, 2*time.Microsecond)          //
	c.Switch(Wait, 3*time.Millisecond)             //
	got := c.Summarise(results.Point{System: "s", Concurrency: 2})
	want := results.Point{
		System: "s", Concurrency: 2, Requests: 4, OutputTokens: 28,
		DurationS: results.F(0.25), OutputTokS: results.F(28 / 0.25), RequestRate: results.F(4 / 0.25),
		// Both busy from 0 to 200 ms: 9 + 7 + 1 and of the last 1 + 5 up to 200.
		SteadyTokS:  results.F(23 / 0.2),
		GoodputReqS: results.F(2 / 0.25), SLOAttainment: results.F(0.5),
		LargeShare: results.F(7.0 / 28), Hops: results.F(6.0 / 4),
		TTFT: Describe([]float64{20, 30, 50, 50}, []float64{95}),
		TPOT: Describe([]float64{10, 20, 10}, []float64{95}),
		E2E:  Describe([]float64{100, 150, 50, 150}, []float64{95}),
		Note: "P99 of ttft and e2e over 4 requests: fewer than 368, its 95 % interval has no upper bound; " +
			"P99 of tpot over 3 requests: fewer than 368, its 95 % interval has no upper bound",
	}
	want.TTFTFromSend = want.TTFT
	for _, d := range []struct {
		name      string
		got       *results.Dist
		mean, p50 float64
	}{
		{"itl", got.ITL, 50.0 / 6, 5},
		{"icl", got.ICL, 50.0 / 3, 20},
		{"enqueue", got.Switch.Enqueue, 2, 2},
		{"wait", got.Switch.Wait, 3000, 3000},
	} {
		if p50 := d.got.Percentile(50).Or(-1); !near(d.got.Mean, d.mean) || p50 < d.p50*0.999 || p50 > d.p50*1.001 {
			t.Errorf("%s: mean %v, p50 %v, want %v, %v", d.name, d.got.Mean, p50, d.mean, d.p50)
		}
	}
	if got.Switch.Transport != nil || got.Switch.Extend != nil {
		t.Error("parts of a switch that were not recorded are not null")
	}
	got.ITL, got.ICL, got.Switch = nil, nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// Whatever happens to warm-up, failed, rejected and cancelled requests, the figures of the others stay.
func TestOnlyFinishedMeasuredRequestsEnterTheFigures(t *testing.T) {
	measured := func(c *Collector) {
		c.Add(request(10*ms, 20*ms, 100*ms, 9))
		c.Add(request(10*ms, 30*ms, 150*ms, 7))
	}
	plain, mixed := NewCollector(Config{SLO: SLO{TTFT: 1}}), NewCollector(Config{SLO: SLO{TTFT: 1}})
	measured(plain)
	warm := request(0, 5*ms, 500*ms, 100)
	warm.Warmup = true
	mixed.Add(warm)
	measured(mixed)
	for i, status := range []results.Status{results.Failed, results.Rejected, results.Cancelled, results.Cancelled} {
		r := request(20*ms, 40*ms, 900*ms, 50*int32(i%2))
		r.Status = status
		mixed.Add(r)
	}
	want, got := plain.Summarise(results.Point{}), mixed.Summarise(results.Point{})
	if got.Requests != 6 || got.Failed != 2 || got.Cancelled != 2 {
		t.Errorf("%d requests, %d failed, %d cancelled, want 6, 2, 2", got.Requests, got.Failed, got.Cancelled)
	}
	got.Requests, got.Failed, got.Cancelled = want.Requests, 0, 0
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// A client that fell behind: TTFT counts from the schedule, its variant from the sending.
func TestLateClient(t *testing.T) {
	c := NewCollector(Config{})
	r := request(10*ms, 50*ms, 50*ms, 1)
	r.Sent = 35 * ms
	c.Add(r)
	p := c.Summarise(results.Point{})
	if p.TTFT.Mean != 40 || p.TTFTFromSend.Mean != 15 {
		t.Errorf("TTFT %v, from send %v, want 40 and 15", p.TTFT.Mean, p.TTFTFromSend.Mean)
	}
}

func TestSummariseOfNothing(t *testing.T) {
	got := NewCollector(Config{Concurrency: 4, SLO: SLO{TTFT: 1}}).Summarise(results.Point{System: "s"})
	if want := (results.Point{System: "s"}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want nothing filled in", got)
	}
	failed := NewCollector(Config{SLO: SLO{TTFT: 1}})
	failed.Add(&results.Request{Status: results.Failed})
	got = failed.Summarise(results.Point{})
	want := results.Point{Requests: 1, Failed: 1, SLOAttainment: results.F(0)}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("of one that failed: got %+v, want %+v", got, want)
	}
}

func TestSteadyWindow(t *testing.T) {
	warm := func(r *results.Request) *results.Request {
		r.Warmup = true
		return r
	}
	for _, c := range []struct {
		name     string
		n        int
		requests []*results.Request
		want     Window
		ok       bool
	}{
		{"one worker is always busy", 1, []*results.Request{
			request(0, 10*ms, 20*ms, 2), request(20*ms, 30*ms, 50*ms, 3),
		}, Window{0, 50 * ms, 5}, true},
		{"the tail of the other worker is out", 2, []*results.Request{
			request(0, 10*ms, 20*ms, 2), request(0, 10*ms, 110*ms, 11),
		}, Window{0, 20 * ms, 2 + 2}, true},
		{"warm-up is out", 2, []*results.Request{
			warm(request(0, 10*ms, 30*ms, 3)), request(0, 10*ms, 110*ms, 11), request(30*ms, 50*ms, 60*ms, 2),
		}, Window{30 * ms, 60 * ms, 3 + 2}, true},
		{"never all busy", 3, []*results.Request{
			request(0, 10*ms, 20*ms, 2), request(0, 10*ms, 110*ms, 11),
		}, Window{}, false},
		{"open loop", 0, []*results.Request{request(0, 10*ms, 20*ms, 2)}, Window{}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			collector := NewCollector(Config{Concurrency: c.n})
			for _, r := range c.requests {
				collector.Add(r)
			}
			if got, ok := collector.window(); ok != c.ok || ok && got != c.want {
				t.Errorf("got %+v, %v, want %+v, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

func TestSteadyAsStated(t *testing.T) {
	c := NewCollector(Config{Concurrency: 9})
	c.Add(request(0, 10*ms, 20*ms, 2))
	c.Steady(Window{From: 10 * ms, To: 510 * ms, Tokens: 70})
	if got := c.Summarise(results.Point{}).SteadyTokS; got != results.F(140) {
		t.Errorf("got %+v, want 140", got)
	}
	c.Steady(Window{From: 10 * ms, To: 10 * ms, Tokens: 70})
	if got := c.Summarise(results.Point{}).SteadyTokS; !got.IsNull() {
		t.Errorf("over no time: got %+v, want null", got)
	}
}

// closedLoop draws a list of requests that n workers share, each arrival the completion before.
func closedLoop(t *rapid.T, n int) []*results.Request {
	free := make([]clock.Instant, n)
	var list []*results.Request
	for range rapid.IntRange(1, 40).Draw(t, "requests") {
		worker := 0
		for w := range free {
			if free[w] < free[worker] {
				worker = w
			}
		}
		tokens := rapid.Int32Range(1, 20).Draw(t, "tokens")
		first := free[worker] + clock.Instant(rapid.Int64Range(1, 1e8).Draw(t, "ttft"))
		last := first
		if tokens > 1 {
			last += clock.Instant(rapid.Int64Range(1, 1e9).Draw(t, "rest"))
		}
		list = append(list, request(free[worker], first, last, tokens))
		free[worker] = last
	}
	return list
}

func summarise(config Config, list []*results.Request) results.Point {
	c := NewCollector(config)
	for _, r := range list {
		c.Add(r)
		c.Commit(r.Last.Sub(r.First), int(r.OutputTokens))
		c.Switch(Extend, r.First.Sub(r.Arrival))
	}
	return c.Summarise(results.Point{})
}

func TestCollectorProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "n")
		config := Config{Concurrency: n, SLO: SLO{E2E: 200 * time.Millisecond}}
		list := closedLoop(t, n)
		base := summarise(config, list)

		// The order of completions does not matter, to the last bit.
		shuffled := append([]*results.Request{}, list...)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		if got := summarise(config, shuffled); !reflect.DeepEqual(got, base) {
			t.Fatalf("shuffled: got %+v, want %+v", got, base)
		}

		// The origin of time does not matter.
		moved := make([]*results.Request, len(list))
		for i, r := range list {
			m := *r
			m.Arrival, m.Sent, m.First, m.Last = m.Arrival+77, m.Sent+77, m.First+77, m.Last+77
			moved[i] = &m
		}
		if got := summarise(config, moved); !reflect.DeepEqual(got, base) {
			t.Fatalf("moved: got %+v, want %+v", got, base)
		}

		// Twice the time is half the rate and twice the latency.
		slow := make([]*results.Request, len(list))
		for i, r := range list {
			m := *r
			m.Arrival, m.Sent, m.First, m.Last = 2*m.Arrival, 2*m.Sent, 2*m.First, 2*m.Last
			slow[i] = &m
		}
		got := summarise(Config{Concurrency: n, SLO: SLO{E2E: 400 * time.Millisecond}}, slow)
		if got.SLOAttainment != base.SLOAttainment || 2*got.OutputTokS.Or(0) != base.OutputTokS.Or(0) ||
			!near(got.TTFT.Mean, 2*base.TTFT.Mean) || 2*got.SteadyTokS.Or(0) != base.SteadyTokS.Or(0) {
			t.Fatalf("at half speed: got %+v, base %+v", got, base)
		}

		// Goodput is part of the rate.
		if good, all := base.GoodputReqS.Or(0), base.RequestRate.Or(0); good > all {
			t.Fatalf("goodput %v of %v requests a second", good, all)
		}
	})
}

func TestDoubts(t *testing.T) {
	points := []results.Point{{Note: "b"}, {}, {Note: "a"}, {Note: "b"}}
	want := []string{"b (2 of 4 points)", "a (1 of 4 points)"}
	if got := Doubts(points); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func BenchmarkCollectorAdd(b *testing.B) {
	c := NewCollector(Config{Expect: 1 << 20})
	r := request(0, 20*ms, 100*ms, 9)
	for b.Loop() {
		if len(c.done) == 1<<20 {
			c.done = c.done[:0]
		}
		c.Add(r)
	}
}

func BenchmarkSummarise(b *testing.B) {
	c := NewCollector(Config{Concurrency: 16})
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		a := clock.Instant(r.Int64N(1e12))
		f := a + clock.Instant(r.Int64N(1e9))
		c.Add(request(a, f, f+clock.Instant(r.Int64N(1e10)), 100))
	}
	for b.Loop() {
		c.Summarise(results.Point{})
	}
}
