package core

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
)

// chaos is a router that does whatever the protocol allows: it hops, drops, drafts and accepts at random.
type chaos struct {
	route.CommitAll
	rng    *rand.Rand
	models int
	drafts bool
	ends   bool
	limit  int
	held   map[step.Handle]int // drafts held
	drop   map[step.Handle]int32
	plan   map[step.Handle]plan
}

type plan struct {
	accept int32
	draft  bool
	end    error
	to     step.ModelID
}

var errGivenUp = errors.New("given up")

func (c *chaos) Drafts() bool { return c.drafts }

func (c *chaos) Route(m step.ModelID, b *step.Batch, res *step.Result, mv *route.Moves) {
	for i, h := range b.Handle {
		if !b.Sample[i] {
			continue
		}
		p := plan{to: m}
		if c.rng.IntN(3) == 0 {
			p.to = step.ModelID(c.rng.IntN(c.models))
		}
		held := c.held[h]
		if c.drafts {
			if b.Verify[i] > 0 {
				p.accept = int32(c.rng.IntN(int(b.Verify[i]) + 1))
				held = 0
			}
			p.draft = held+1 < c.limit && c.rng.IntN(3) == 0
			mv.Accept[i], mv.Draft[i] = p.accept, p.draft
			if c.ends && c.rng.IntN(25) == 0 {
				p.end, p.to, p.draft = route.ErrEnd, m, false
				if c.rng.IntN(2) == 0 {
					p.end = errGivenUp
				}
				mv.End[i], mv.Draft[i] = p.end, false
			}
		}
		c.held[h] = 0
		if p.draft {
			c.held[h] = held + 1
		}
		mv.To[i] = p.to
		c.plan[h] = p
		c.drop[h] = 0
		if c.drafts && p.to == m {
			mv.Drop[i] = c.Send(b, i, m)
		}
	}
}

func (c *chaos) Send(b *step.Batch, row int, to step.ModelID) int32 {
	h := b.Handle[row]
	c.drop[h] = int32(c.rng.IntN(3))
	if c.rng.IntN(4) > 0 {
		c.drop[h] = min(c.drop[h], 1)
	}
	c.held[h] = max(0, c.held[h]-int(c.drop[h]))
	return c.drop[h]
}

// world checks the core against what it stands for: real sequences of tokens, and what each model has in KV.
type world struct {
	t                           *rapid.T
	subs                        []*Subserver
	router                      *chaos
	rng                         *rand.Rand
	batches                     []*step.Batch
	truth                       map[step.Handle][]int   // the sequence
	done                        map[step.Handle]int     // committed tokens, prompt included
	end                         map[step.Handle]int     // target
	kv                          []map[step.Handle][]int // by model
	token                       int
	now                         clock.Instant
	ended                       map[step.Handle]int
	sampled, committed, dropped int
}

func (w *world) active() int { return len(w.end) - len(w.ended) }

func (w *world) setActive() {
	for _, s := range w.subs {
		s.Active(w.now, w.active())
	}
}

func (w *world) valid() {
	for _, s := range w.subs {
		if err := s.Valid(); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) decide() {
	for i, s := range w.subs {
		if w.batches[i] != nil {
			continue
		}
		b, _, ok := s.Next(w.now)
		if !ok {
			continue
		}
		w.batches[i] = b
		tokens := 0
		for r, h := range b.Handle {
			start := int(b.Pos[r] - b.Feed[r])
			seq, have := w.truth[h], w.kv[i][h]
			if start > len(have) || !slices.Equal(have[:start], seq[:start]) {
				w.t.Fatalf("model %d request %d feeds from %d over KV %v, sequence %v", i, h, start, have, seq)
			}
			if int(b.Pos[r]) > len(seq) || b.Sample[r] != (int(b.Pos[r]) == len(seq)) {
				w.t.Fatalf("model %d request %d: feeds up to %d of %d, sample %v", i, h, b.Pos[r], len(seq), b.Sample[r])
			}
			if b.Verify != nil && b.Verify[r] > 0 && start > w.done[h]-1 {
				w.t.Fatalf("request %d verifies %d drafts from %d: the token before them is not fed", h, b.Verify[r], start)
			}
			w.kv[i][h] = slices.Clone(seq[:b.Pos[r]])
			tokens += int(b.Feed[r])
		}
		if got := b.Shape.Tokens(); got != int64(tokens) {
			w.t.Fatalf("shape says %d tokens, batch %d", got, tokens)
		}
	}
}

func (w *world) complete(i int) {
	b := w.batches[i]
	w.batches[i] = nil
	e, err := w.subs[i].Complete(w.now, &step.Result{})
	if err != nil {
		w.t.Fatal(err)
	}
	commits := map[step.Handle]int{}
	for _, c := range e.Commit {
		if c.Own > c.Tokens {
			w.t.Fatalf("own %d of %d", c.Own, c.Tokens)
		}
		commits[c.Handle] += int(c.Tokens)
	}
	gone := map[step.Handle]Status{}
	for _, d := range e.Done {
		gone[d.Handle] = d.Status
	}
	for r, h := range b.Handle {
		st, ended := gone[h]
		if ended && st == Cancelled || !b.Sample[r] {
			continue
		}
		p := w.router.plan[h]
		seq, before := w.truth[h], len(w.truth[h])
		if ended && st == Failed {
			w.sampled++
			w.dropped += before + 1 - w.done[h]
			if p.end != errGivenUp {
				w.t.Fatalf("request %d failed", h)
			}
			continue
		}
		if b.Verify != nil && b.Verify[r] > 0 {
			seq = seq[:w.done[h]+int(p.accept)]
		}
		w.token++
		w.sampled++
		seq = append(slices.Clone(seq), w.token)
		seq = seq[:max(w.done[h], len(seq)-int(w.router.drop[h]))]
		if !p.draft {
			target := min(len(seq), w.end[h])
			seq = seq[:target]
			if got := commits[h]; got != target-w.done[h] {
				w.t.Fatalf("request %d: committed %d, want %d", h, got, target-w.done[h])
			}
			w.committed += target - w.done[h]
			w.done[h] = target
		}
		w.dropped += before + 1 - len(seq)
		w.truth[h] = seq
	}
	sends := slices.Clone(e.Send)
	for h, st := range gone {
		w.ended[h]++
		if w.ended[h] > 1 {
			w.t.Fatalf("request %d ended twice", h)
		}
		if st == Completed && w.done[h] != w.end[h] && w.router.plan[h].end == nil {
			w.t.Fatalf("request %d complete at %d of %d", h, w.done[h], w.end[h])
		}
		if st == Cancelled {
			w.dropped += len(w.truth[h]) - w.done[h]
		}
	}
	for _, m := range sends {
		if err := w.subs[m.To].Receive(w.now, &m); err != nil {
			w.t.Fatal(err)
		}
	}
	w.setActive()
}

func (w *world) cancel(h step.Handle) {
	for _, s := range w.subs {
		e := s.Cancel(w.now, h)
		for _, m := range slices.Clone(e.Send) {
			if err := w.subs[m.To].Receive(w.now, &m); err != nil {
				w.t.Fatal(err)
			}
		}
		for _, d := range e.Done {
			w.ended[d.Handle]++
			w.dropped += len(w.truth[h]) - w.done[h]
		}
	}
	w.setActive()
}

// Tokens in = tokens out + dropped; every request ends exactly once; KV is conserved and always holds a prefix of the
// sequence; nothing strands: under random routing with drafts and rollbacks, KV pressure, chunks and cancellation.
func TestRandomRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		models := rapid.IntRange(1, 4).Draw(t, "models")
		seed := rapid.Uint64().Draw(t, "seed")
		rng := rand.New(rand.NewPCG(seed, 1))
		w := &world{
			t: t, rng: rng, truth: map[step.Handle][]int{}, done: map[step.Handle]int{}, end: map[step.Handle]int{},
			ended: map[step.Handle]int{}, batches: make([]*step.Batch, models),
		}
		w.router = &chaos{
			rng: rng, models: models, drafts: rapid.Bool().Draw(t, "drafts"), ends: rapid.Bool().Draw(t, "ends"), limit: rapid.IntRange(2, 5).Draw(t, "limit"),
			held: map[step.Handle]int{}, drop: map[step.Handle]int32{}, plan: map[step.Handle]plan{},
		}
		n := rapid.IntRange(1, 12).Draw(t, "requests")
		vector := make([]int, models)
		for i := range vector {
			vector[i] = rapid.IntRange(1, 4).Draw(t, "threshold")
		}
		table := Table{vector}.Lowered()
		blockTokens := int32(rapid.IntRange(1, 8).Draw(t, "block"))
		blocks := int32(0)
		if rapid.Bool().Draw(t, "pressure") {
			blocks = (20+20+8+blockTokens-1)/blockTokens + int32(rapid.IntRange(0, 20).Draw(t, "spare"))
		}
		policy := Policy{
			MaxBatch:    rapid.IntRange(1, 8).Draw(t, "max batch"),
			TokenBudget: rapid.IntRange(1, 40).Draw(t, "budget"),
			Gate:        rapid.IntRange(0, 3).Draw(t, "gate"),
		}
		for i := range models {
			policy.Threshold = table.Column(i)
			w.subs = append(w.subs, New(Config{
				Model: step.ModelID(i), Policy: policy, KVBlocks: blocks, BlockTokens: blockTokens, Router: w.router, DraftTokens: 8,
			}))
			w.kv = append(w.kv, map[step.Handle][]int{})
		}
		cancels := rapid.Bool().Draw(t, "cancels")
		next := 0
		for steps := 0; len(w.ended) < n; steps++ {
			if steps > 200000 {
				t.Fatal("does not end")
			}
			w.now++
			var inflight []int
			for i, b := range w.batches {
				if b != nil {
					inflight = append(inflight, i)
				}
			}
			switch {
			case next < n && (rng.IntN(3) == 0 || len(inflight) == 0):
				h := step.Handle(next)
				prompt, out := 1+rng.IntN(20), 1+rng.IntN(20)
				for range prompt {
					w.token++
					w.truth[h] = append(w.truth[h], w.token)
				}
				w.done[h], w.end[h] = prompt, prompt+out
				w.setActive()
				if err := w.subs[0].Submit(w.now, Request{Handle: h, ID: step.RequestID(next), Prompt: int32(prompt), Max: int32(out)}); err != nil {
					t.Fatal(err)
				}
				next++
			case cancels && rng.IntN(20) == 0 && next > 0:
				if h := step.Handle(rng.IntN(next)); w.ended[h] == 0 {
					w.cancel(h)
				}
			case len(inflight) > 0:
				w.complete(inflight[rng.IntN(len(inflight))])
			default:
				t.Fatalf("stranded with %d active", w.active())
			}
			w.valid()
			w.decide()
			w.valid()
		}
		for i, b := range w.batches {
			if b != nil { // rows cancelled in flight
				w.complete(i)
			}
		}
		for _, s := range w.subs {
			if err := s.Idle(); err != nil {
				t.Fatal(err)
			}
		}
		held := 0
		if w.sampled != w.committed+w.dropped+held {
			t.Fatalf("sampled %d, committed %d, dropped %d", w.sampled, w.committed, w.dropped)
		}
	})
}

func TestLowered(t *testing.T) {
	for _, c := range []struct {
		in   Table
		want string
	}{
		{Table{{1, 3}}, "[[1 1] [1 2] [1 3]]"},
		{Table{{2, 2}}, "[[1 1] [2 1] [2 2]]"},
		{Table{{1, 1}, {1, 2}}, "[[1 1] [1 2]]"},
		{Table{{3, 3}}, "[[1 1] [2 1] [2 2] [3 2] [3 3]]"},
		{nil, "[]"},
	} {
		got := c.in.Lowered()
		if s := fmt.Sprint(got); s != c.want {
			t.Errorf("%v: %s, want %s", c.in, s, c.want)
		}
		for n, b := range got {
			if err := CheckFeasible(b, n+1); err != nil {
				t.Error(err)
			}
		}
	}
	if err := CheckFeasible([]int{2, 3}, 3); err == nil {
		t.Error("[2 3] at 3: want an error")
	}
}
