package latency

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trbench/trbench/engine/clock"
)

// Cases worked out by hand, kappa .5: overlapping steps take 1.5 times as long.
func TestContention(t *testing.T) {
	t.Run("alone", func(t *testing.T) {
		c := NewContention(.5, 2)
		c.Start(100, 0, 1000)
		wantEnd(t, c, 0, 1100)
		wantEnd(t, c, 1, clock.Never)
		c.Finish(1100, 0)
		wantEnd(t, c, 0, clock.Never)
	})
	t.Run("a peer begins and ends within", func(t *testing.T) {
		c := NewContention(.5, 2)
		c.Start(0, 0, 1000)
		c.Start(400, 1, 200) // 600 of 0's work left: 900 at half pace
		wantEnd(t, c, 0, 1300)
		wantEnd(t, c, 1, 700)
		c.Finish(700, 1) // 300 ran at 2/3: 400 left
		wantEnd(t, c, 0, 1100)
	})
	t.Run("a peer outlasts it", func(t *testing.T) {
		c := NewContention(.5, 2)
		c.Start(0, 0, 300)
		c.Start(0, 1, 1000) // both begin at once
		wantEnd(t, c, 0, 450)
		wantEnd(t, c, 1, 1500)
		c.Finish(450, 0)
		wantEnd(t, c, 1, 450+700)
	})
	t.Run("a peer's steps follow each other", func(t *testing.T) {
		c := NewContention(.5, 2)
		c.Start(0, 0, 1000)
		c.Start(0, 1, 100)
		c.Finish(150, 1)
		wantEnd(t, c, 0, 150+900) // as it looks between the two calls
		c.Start(150, 1, 100)
		wantEnd(t, c, 0, 1500)
		c.Finish(300, 1)
		c.Start(600, 1, 100) // 1000 - 300/1.5 - 300 = 500 left at 600
		wantEnd(t, c, 0, 600+750)
		c.Finish(750, 1)
		wantEnd(t, c, 0, 750+400)
	})
	t.Run("a third changes nothing for the two", func(t *testing.T) {
		c := NewContention(.5, 3)
		c.Start(0, 0, 1000)
		c.Start(100, 1, 1000)
		c.Start(333, 2, 100)
		wantEnd(t, c, 0, 100+1350)
		wantEnd(t, c, 1, 100+1500)
		wantEnd(t, c, 2, 333+150)
		c.Finish(400, 2) // before its time
		wantEnd(t, c, 0, 100+1350)
		c.Finish(400, 1)
		wantEnd(t, c, 0, 400+700)
	})
	t.Run("an empty step", func(t *testing.T) {
		c := NewContention(.5, 2)
		c.Start(5, 0, 0)
		wantEnd(t, c, 0, 5)
		c.Start(5, 1, 7)
		c.Finish(5, 0)
		wantEnd(t, c, 1, 12)
	})
}

func wantEnd(t *testing.T, c *Contention, i int, want clock.Instant) {
	t.Helper()
	if got := c.End(i); got != want {
		t.Errorf("model %d ends at %d, want %d", i, got, want)
	}
}

// A peer that comes and goes within one Instant, or that ends one step and begins the next, is as if nothing had
// happened: not even rounding shows.
func TestContentionOfNoLength(t *testing.T) {
	kappa, work := rapid.Float64Range(0, 2), rapid.Int64Range(1, 1e8)
	rapid.Check(t, func(t *rapid.T) {
		k := kappa.Draw(t, "kappa")
		plain, fussy := NewContention(k, 3), NewContention(k, 3)
		w, offset := time.Duration(work.Draw(t, "work")), clock.Instant(work.Draw(t, "offset"))
		peer := rapid.Bool().Draw(t, "beside a long step")
		for _, c := range []*Contention{plain, fussy} {
			c.Start(0, 0, w)
			if peer {
				c.Start(offset/3, 1, time.Hour)
			}
		}
		plain.Start(offset, 2, time.Hour)
		for range rapid.IntRange(1, 3).Draw(t, "times") {
			fussy.Start(offset, 2, time.Minute)
			fussy.Finish(offset, 2)
			if peer {
				fussy.Finish(offset, 1)
				fussy.Start(offset, 1, time.Hour)
				if d := fussy.End(1).Sub(offset); d < time.Hour {
					t.Fatalf("an hour takes %v", d)
				}
			}
		}
		fussy.Start(offset, 2, time.Hour)
		if plain.End(0) != fussy.End(0) {
			t.Fatalf("%d with one call, %d with many", plain.End(0), fussy.End(0))
		}
	})
}

// Without a slowdown every end is exact, whatever overlaps; with one, a step takes from work to (1 + kappa) work, its
// work is done when it ends, and asking changes nothing.
func TestContentionKeepsWork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 3
		kappa := rapid.SampledFrom([]float64{0, .2, .47, 1}).Draw(t, "kappa")
		c := NewContention(kappa, n)
		var now clock.Instant
		var start [n]clock.Instant
		var work [n]time.Duration
		var shared [n]time.Duration // time that overlapped
		busy := func() (k int) {
			for _, w := range work {
				if w > 0 {
					k++
				}
			}
			return k
		}
		for range 60 {
			i := rapid.IntRange(0, n-1).Draw(t, "model")
			next := now
			if work[i] == 0 {
				next += clock.Instant(rapid.IntRange(0, 2000).Draw(t, "gap"))
			} else {
				next = c.End(i)
			}
			for j := range n { // no one may be passed
				next = min(next, c.End(j))
			}
			if busy() > 1 {
				for j := range n {
					if work[j] > 0 {
						shared[j] += next.Sub(now)
					}
				}
			}
			now = next
			for j := range n {
				if work[j] == 0 || c.End(j) > now {
					continue
				}
				took := now.Sub(start[j])
				if kappa == 0 && took != work[j] {
					t.Fatalf("%d of work took %d without contention", work[j], took)
				}
				done := float64(took-shared[j]) + float64(shared[j])/(1+kappa)
				if math.Abs(done-float64(work[j])) > 1 {
					t.Fatalf("%d of work: %.2f done", work[j], done)
				}
				c.Finish(now, j)
				work[j] = 0
			}
			if work[i] == 0 {
				start[i], shared[i] = now, 0
				work[i] = time.Duration(rapid.IntRange(1, 5000).Draw(t, "work"))
				c.Start(now, i, work[i])
			}
		}
	})
}

func TestContentionMisused(t *testing.T) {
	for name, misuse := range map[string]func(){
		"a negative slowdown": func() { NewContention(-.1, 2) },
		"no number":           func() { NewContention(math.NaN(), 2) },
		"two steps at once": func() {
			c := NewContention(0, 2)
			c.Start(0, 1, 5)
			c.Start(1, 1, 5)
		},
		"a finish of nothing": func() { NewContention(0, 2).Finish(0, 1) },
		"time going back": func() {
			c := NewContention(0, 2)
			c.Start(5, 1, 5)
			c.Finish(4, 1)
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s goes unnoticed", name)
				}
			}()
			misuse()
		}()
	}
}
