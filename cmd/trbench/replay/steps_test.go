package replay

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/trbench/trbench/models/latency/kernels"
)

// A run that never preempts tells how many steps lie between two tokens: a request of n tokens has n - 1 steps from its
// first token to its last, and tokens of the same step bear the same time. So wherever a chain of requests joins two
// times, the steps between them are known exactly; and once the last prompt is in, so is what was in each of them.

// stretch is a part of a run of which the steps are known.
type stretch struct {
	from, to float64 // s, the server's clock
	steps    int
}

// stretches finds those after the last first token, of 20 to 200 steps.
func stretches(records []record) []stretch {
	type edge struct {
		to    float64
		steps int
	}
	edges := map[float64][]edge{}
	last := math.Inf(-1)
	for i := range records {
		a, b, n := *records[i].First, *records[i].Last, int(*records[i].Output)-1
		edges[a], edges[b] = append(edges[a], edge{b, n}), append(edges[b], edge{a, -n})
		last = max(last, a)
	}
	var found []stretch
	seen := map[float64]bool{}
	for _, start := range slices.Sorted(maps.Keys(edges)) {
		if seen[start] {
			continue
		}
		step := map[float64]int{start: 0} // of each time in the chain
		seen[start] = true
		for open := []float64{start}; len(open) > 0; {
			at := open[len(open)-1]
			open = open[:len(open)-1]
			for _, e := range edges[at] {
				if !seen[e.to] {
					seen[e.to], step[e.to] = true, step[at]+e.steps
					open = append(open, e.to)
				}
			}
		}
		times := slices.Sorted(maps.Keys(step))
		for i := 1; i < len(times); i++ {
			a, b := times[i-1], times[i]
			if n := step[b] - step[a]; a >= last && n >= 20 && n <= 200 {
				found = append(found, stretch{a, b, n})
			}
		}
	}
	slices.SortFunc(found, func(a, b stretch) int { return int(math.Copysign(1, a.from-b.from)) })
	return found
}

// TestDecodeSteps prices measured steps of decodes with what was in them, the scheduler left out.
func TestDecodeSteps(t *testing.T) {
	for _, dir := range measuredRuns(t) {
		r, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if r.Settings.KVBlocks != nil {
			continue // it preempts: a preempted request has fewer tokens than steps
		}
		records, err := readRecords(filepath.Join(dir, RequestsFile))
		if err != nil {
			t.Fatal(err)
		}
		found := stretches(records)
		if len(found) < 5 {
			t.Fatalf("%s: %d stretches of known steps", dir, len(found))
		}
		for _, s := range found {
			const samples = 20
			predicted, decodes := 0.0, 0
			for k := range samples {
				at := s.from + (s.to-s.from)*(float64(k)+.5)/samples
				var shape kernels.Shape
				for i := range records {
					q := &records[i]
					if *q.First >= at || at > *q.Last {
						continue
					}
					done := (at - *q.First) / (*q.Last - *q.First)
					context := int(float64(*q.Input) + done*float64(*q.Output-1))
					shape.Decodes++
					shape.DecodeContext += int64(context)
					shape.DecodeLongest = max(shape.DecodeLongest, context)
					shape.DecodeSquares += float64(context) * float64(context)
				}
				predicted += r.model.Time(shape).Seconds() * 1e3 / samples
				decodes += shape.Decodes
			}
			real := (s.to - s.from) / float64(s.steps) * 1e3
			off := predicted/real - 1
			t.Logf("%3d steps of %5.1f decodes: %.2f ms, predicted %.2f ms (%+.1f %%)", s.steps,
				float64(decodes)/samples, real, predicted, 100*off)
			if math.Abs(off) > .1 {
				t.Errorf("%s: %d steps off by %+.1f %%, want 10 %% at most", dir, s.steps, 100*off)
			}
		}
	}
}
