package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/backend/cpu"
	"github.com/trbench/trbench/engine/core"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/demo"
	"github.com/trbench/trbench/models/weights"
)

// written is what the demo pair writes for each prompt, all prompts at once, and what the scheduler did for it.
type written struct {
	tokens  [][]int32
	large   int // tokens that the large model sampled
	lost    int64
	hops    int
	verdict []core.Stats
}

// write runs prompts through the engine with real models. algorithm "" is the large model alone.
func write(t *testing.T, prompts [][]int32, algorithm string, o route.Options, policy func(i int) core.Policy, kvTokens int) written {
	t.Helper()
	seqs := engine.NewSequences()
	proposals := cpu.NewProposals(route.MaxDraft)
	c := engine.Config{Sequences: seqs}
	sources := []func() (*weights.Model, error){
		func() (*weights.Model, error) { return weights.OpenFS(demo.Small(), ".") },
		func() (*weights.Model, error) { return weights.OpenFS(demo.Large(), ".") },
	}
	if algorithm == "" {
		sources = sources[1:]
	} else {
		o.Models = 2
		r, err := route.New(algorithm, o)
		if err != nil {
			t.Fatal(err)
		}
		c.Router = r
	}
	for i, open := range sources {
		w, err := open()
		if err != nil {
			t.Fatal(err)
		}
		m, err := cpu.New(w, cpu.Options{Tokens: seqs.Tokens, Proposals: proposals})
		if err != nil {
			t.Fatal(err)
		}
		c.Models = append(c.Models, engine.Model{Name: "model", Backend: m, Policy: policy(i), KVTokens: kvTokens})
	}
	e, err := engine.New(c)
	if err != nil {
		t.Fatal(err)
	}
	out := written{tokens: make([][]int32, len(prompts))}
	var mu sync.Mutex
	var clients sync.WaitGroup
	for i, p := range prompts {
		s, err := e.Submit(context.Background(), engine.Request{ID: step.RequestID(i), Prompt: len(p), Max: 60, Tokens: p})
		if err != nil {
			t.Fatal(err)
		}
		clients.Go(func() {
			large := 0
			for {
				c, ok := s.Next(context.Background())
				if !ok {
					break
				}
				if len(c.IDs) != c.Tokens {
					t.Errorf("%d ids for %d tokens", len(c.IDs), c.Tokens)
				}
				out.tokens[i] = append(out.tokens[i], c.IDs...)
				if int(c.Model) == len(sources)-1 {
					large += c.Own
				}
			}
			mu.Lock()
			defer mu.Unlock()
			out.large += large
			out.hops += s.Hops()
			if s.Err() != nil {
				t.Errorf("request %d: %v", i, s.Err())
			}
		})
	}
	clients.Wait()
	out.verdict = e.Stats()
	for _, st := range out.verdict {
		out.lost += st.Recompute
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func demoPrompts(t *testing.T, n int) [][]int32 {
	t.Helper()
	tok, err := demo.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	var prompts [][]int32
	for _, text := range demo.Prompts(n, 3) {
		prompts = append(prompts, tok.Encode(text, true))
	}
	return prompts
}

func sameText(t *testing.T, what string, a, b written) {
	t.Helper()
	for i := range a.tokens {
		if !slices.Equal(a.tokens[i], b.tokens[i]) {
			t.Errorf("%s: request %d wrote\n%v\nand\n%v", what, i, a.tokens[i], b.tokens[i])
			return
		}
	}
}

// Greedy speculative decoding writes what the large model alone writes, token for token: drafts, verification in one
// pass and rollback leave no trace but time.
func TestSpeculativeIsLargeAlone(t *testing.T) {
	prompts := demoPrompts(t, 12)
	eager := func(int) core.Policy { return core.Policy{} }
	alone := write(t, prompts, "", route.Options{}, eager, 0)
	for _, draft := range []int{1, 4, 7} {
		spec := write(t, prompts, "specdec", route.Options{Draft: draft, Greedy: true}, eager, 0)
		sameText(t, "specdec", alone, spec)
		tokens := 0
		for _, x := range spec.tokens {
			tokens += len(x)
		}
		if spec.large >= tokens {
			t.Errorf("draft %d: the large model sampled all %d tokens: nothing was accepted", draft, tokens)
		}
	}
}

// What is written does not depend on how it is scheduled: handoff-resume with resident KV, delayed batches, chunked
// prefills, and a pool so small that KV is dropped and recomputed all the time give the same text.
func TestTextDoesNotDependOnSchedule(t *testing.T) {
	prompts := demoPrompts(t, 12)
	eager := func(int) core.Policy { return core.Policy{} }
	for _, algorithm := range []string{"entropy", "cascade", "specdec"} {
		want := write(t, prompts, algorithm, route.Options{}, eager, 0)
		if want.hops == 0 {
			t.Errorf("%s: no request changed its model", algorithm)
		}
		table := core.Table{{1, 4}}.Lowered()
		batched := write(t, prompts, algorithm, route.Options{}, func(i int) core.Policy {
			return core.Policy{Threshold: table.Column(i), TokenBudget: 24, MaxBatch: 5}
		}, 0)
		sameText(t, algorithm+", batched in chunks", want, batched)
		short := write(t, prompts, algorithm, route.Options{}, func(int) core.Policy { return core.Policy{TokenBudget: 40} }, 256)
		sameText(t, algorithm+", short of KV", want, short)
		if short.lost == 0 {
			t.Errorf("%s: KV was never short", algorithm)
		}
	}
}
