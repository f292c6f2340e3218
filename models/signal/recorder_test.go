package signal

import (
	"slices"
	"testing"

	"github.com/trbench/trbench/engine/step"
)

// A replay says of each request, step by step, what was recorded, however the steps of different requests fall.
func TestRecorder(t *testing.T) {
	batch := func(m step.ModelID, verify int32, ids ...step.RequestID) *step.Batch {
		b := &step.Batch{Model: m, ID: ids, Want: step.Entropy | step.Top | step.Drafts, TopK: 2}
		for i := range ids {
			b.Handle, b.Pos, b.Feed = append(b.Handle, step.Handle(i)), append(b.Pos, 10), append(b.Feed, 1)
			b.Sample, b.Verify = append(b.Sample, true), append(b.Verify, verify)
		}
		return b
	}
	var rec Recorder
	take := func(b *step.Batch, x float64, stop bool) {
		res := &step.Result{}
		n := b.Len()
		res.Reset(b.Want, n, b.TopK, b.Drafted())
		for i := range n {
			res.Signal, res.Accept, res.Token = append(res.Signal, x), append(res.Accept, int32(x)), append(res.Token, int32(x))
			res.Stop = append(res.Stop, stop)
			res.Entropy[i] = x
			res.Top[i*2].Probability = x
		}
		for i := range res.Drafts {
			res.Drafts[i].Loss = x + float64(i)
		}
		rec.Take(b, res)
	}
	take(batch(0, 0, 1, 2), 1, false) // both requests, in one step
	take(batch(1, 3, 1), 2, false)
	take(batch(1, 3, 2), 3, true)
	chunk := batch(0, 0, 1)
	chunk.Sample[0] = false // a prefill that goes on says nothing
	take(chunk, 9, true)
	if rec.Rows() != 4 {
		t.Errorf("%d rows, want 4", rec.Rows())
	}

	s := rec.Replay()
	results := NewResults(s, 4)
	for _, c := range []struct {
		b     *step.Batch
		x     float64
		stop  bool
		first float64 // loss of the first draft
	}{
		{batch(0, 0, 2), 1, false, 0}, {batch(1, 3, 2), 3, true, 3}, {batch(0, 0, 1), 1, false, 0}, {batch(1, 3, 1), 2, false, 2},
	} {
		r := results.Of(c.b)
		if r.Signal[0] != c.x || r.Entropy[0] != c.x || r.Stop[0] != c.stop || r.Token[0] != int32(c.x) || r.Accept[0] != int32(c.x) || r.Top[0].Probability != c.x {
			t.Errorf("request %d on model %d: %+v, want %g, %v", c.b.ID[0], c.b.Model, r, c.x, c.stop)
		}
		if c.b.Drafted() > 0 && !slices.EqualFunc(r.Drafts, []float64{c.first, c.first + 1, c.first + 2}, func(d step.DraftScore, x float64) bool { return d.Loss == x }) {
			t.Errorf("request %d: drafts %+v, want losses from %g", c.b.ID[0], r.Drafts, c.first)
		}
	}
	if s.Strayed() != 0 {
		t.Errorf("%d rows strayed", s.Strayed())
	}
	results.Of(batch(0, 0, 1)) // beyond the recording's end
	if s.Strayed() != 1 {
		t.Errorf("%d rows strayed, want 1", s.Strayed())
	}
	// A router that reads no column is told of ends all the same.
	plain := batch(0, 0, 2)
	plain.Want = 0
	if r := NewResults(rec.Replay(), 1).Of(plain); r.Stop == nil || r.Signal[0] != 1 {
		t.Errorf("without columns: %+v", r)
	}
}
