package byhand_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/rpc/byhand"
	"github.com/trbench/trbench/engine/step"
)

const (
	requests = 6
	output   = 40
)

func prompt(id int) []int32 {
	var p []int32
	for i := range 3 + id%5 {
		p = append(p, int32((7*id+3*i)%end))
	}
	return p
}

// engineWrites is what the engine writes with a built-in algorithm and the toy models.
func engineWrites(t *testing.T, c *twin, temperature float64) [][]int32 {
	t.Helper()
	r, err := route.New(c.name, c.options)
	if err != nil {
		t.Fatal(err)
	}
	seqs := engine.NewSequences()
	cfg := engine.Config{Router: r, Sequences: seqs}
	cfg.Admit = func(_ step.Handle, id step.RequestID, _ int32) float64 { return score(prompt(int(id))) }
	for i := range c.options.Models {
		m := c.model(i)
		cfg.Models = append(cfg.Models, engine.Model{Name: fmt.Sprint(m), Backend: &toyBackend{
			m: m, drafter: c.model(0), tokens: seqs.Tokens, temperature: temperature, signal: c.signal,
		}})
	}
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	out := make([][]int32, requests)
	var clients sync.WaitGroup
	for id := range requests {
		p := prompt(id)
		s, err := e.Submit(context.Background(), engine.Request{ID: step.RequestID(id), Prompt: len(p), Max: output, Tokens: p})
		if err != nil {
			t.Fatal(err)
		}
		clients.Go(func() {
			for c, ok := s.Next(context.Background()); ok; c, ok = s.Next(context.Background()) {
				out[id] = append(out[id], c.IDs...)
			}
			if s.Err() != nil {
				t.Errorf("request %d: %v", id, s.Err())
			}
		})
	}
	clients.Wait()
	return out
}

// handWrites is what the code by hand writes with the same models behind servers, all requests at once.
func handWrites(t *testing.T, c *twin, temperature float64, faulty bool) [][]int32 {
	t.Helper()
	var servers []*byhand.Server
	toys := []*toyServer{{faulty: faulty}}
	for i := range c.options.Models {
		toys = append(toys, &toyServer{m: c.model(i), faulty: faulty})
		servers = append(servers, serve(t, toys[i+1]))
	}
	router := serve(t, toys[0])
	algorithm := c.byHand(servers, &byhand.Scorer{Endpoint: router.Endpoint})
	out := make([][]int32, requests)
	var clients sync.WaitGroup
	for id := range requests {
		clients.Go(func() {
			a := byhand.NewAnswer(prompt(id), output, func(tokens []byhand.Token) {
				for _, x := range tokens {
					out[id] = append(out[id], x.ID)
				}
			})
			a.Seed, a.Temperature = request(step.RequestID(id), 0).Seed, temperature
			if err := algorithm.Answer(context.Background(), a); err != nil {
				t.Errorf("request %d: %v", id, err)
			}
		})
	}
	clients.Wait()
	failed := int64(0)
	for _, s := range toys {
		failed += s.failed.Load()
	}
	if (failed > 0) != faulty {
		t.Errorf("%s: %d calls failed", c.name, failed)
	}
	return out
}

// twin is an algorithm in both forms, with the same settings.
type twin struct {
	name    string
	options route.Options
	signal  func(a *byhand.Answer, m int, tokens []int32, id int32) float64
	byHand  func(m []*byhand.Server, r *byhand.Scorer) byhand.Algorithm
}

// model is the toy model in place i of the deployment: the last one is the largest.
func (c *twin) model(i int) int {
	return i + largest + 1 - c.options.Models
}

func routed(_ *byhand.Answer, _ int, tokens []int32, id int32) float64 {
	return score(append(slices.Clone(tokens), id))
}

func twins() []twin {
	type servers = []*byhand.Server
	two := func(threshold float64) route.Options { return route.Options{Models: 2, Threshold: threshold} }
	three := func(threshold float64) route.Options { return route.Options{Models: 3, Threshold: threshold} }
	list := []twin{
		{"entropy", two(1.6), nil, func(m servers, _ *byhand.Scorer) byhand.Algorithm {
			return &byhand.Entropy{Small: m[0], Large: m[1], Threshold: 1.6}
		}},
		{"citer", two(.3), routed, func(m servers, r *byhand.Scorer) byhand.Algorithm {
			return &byhand.CITER{Small: m[0], Large: m[1], Router: r, Threshold: .3}
		}},
		{"r2r", two(.7), routed, func(m servers, r *byhand.Scorer) byhand.Algorithm {
			return &byhand.R2R{Small: m[0], Large: m[1], Router: r, Threshold: .7}
		}},
		{"co-llm", two(.6), routed, func(m servers, r *byhand.Scorer) byhand.Algorithm {
			return &byhand.CoLLM{Small: m[0], Large: m[1], Router: r, Threshold: .6}
		}},
		{"r-stitch", two(.6), nil, func(m servers, _ *byhand.Scorer) byhand.Algorithm {
			return &byhand.RStitch{Small: m[0], Large: m[1], Threshold: .6, Vocabulary: vocabulary}
		}},
		{"cascade", three(.4), nil, func(m servers, _ *byhand.Scorer) byhand.Algorithm {
			return &byhand.Cascade{Models: m, Threshold: .4}
		}},
		{"frugalgpt", three(.6), routed, func(m servers, r *byhand.Scorer) byhand.Algorithm {
			return &byhand.FrugalGPT{Models: m, Router: r, Threshold: .6}
		}},
		{"automix", three(.05), func(_ *byhand.Answer, m int, tokens []int32, _ int32) float64 { return sureness(m, tokens) },
			func(m servers, _ *byhand.Scorer) byhand.Algorithm {
				return &byhand.AutoMix{Models: m, Question: question, Yes: yes, Threshold: .05}
			}},
		{"query", two(.5), nil, func(m servers, r *byhand.Scorer) byhand.Algorithm {
			return &byhand.Query{Small: m[0], Large: m[1], Router: r, Threshold: .5}
		}},
		{"me", three(0), func(a *byhand.Answer, _ int, tokens []int32, _ int32) float64 { return a.Draw(len(tokens), 0) },
			func(m servers, _ *byhand.Scorer) byhand.Algorithm {
				return &byhand.ME{Models: m, Weights: []float64{.5, .3, .2}}
			}},
		{"specreason", route.Options{Models: 2, Threshold: 5, Step: 9, Delimiter: delimiter},
			func(_ *byhand.Answer, m int, tokens []int32, _ int32) float64 { return utility(m, tokens) },
			func(m servers, _ *byhand.Scorer) byhand.Algorithm {
				return &byhand.SpecReason{
					Small: m[0], Large: m[1], Question: question, Digits: digits, Threshold: 5, Step: 9, Delimiter: delimiter,
				}
			}},
		{"glimprouter", route.Options{Models: 2, Threshold: 1.6, Step: 9, Delimiter: delimiter}, nil,
			func(m servers, _ *byhand.Scorer) byhand.Algorithm {
				return &byhand.GlimpRouter{Small: m[0], Large: m[1], Threshold: 1.6, Step: 9, Delimiter: delimiter}
			}},
		{"bild", route.Options{Models: 2, Threshold: .35, Rollback: 2}, nil, func(m servers, _ *byhand.Scorer) byhand.Algorithm {
			return &byhand.BiLD{Small: m[0], Large: m[1], Fallback: .35, Rollback: 2, Draft: 10}
		}},
	}
	for _, o := range []route.Options{{}, {Draft: 3, Adaptive: true}, {Greedy: true}} {
		o.Models = 2
		list = append(list, twin{"specdec", o, nil, func(m servers, _ *byhand.Scorer) byhand.Algorithm {
			k := o.Draft
			if k == 0 {
				k = 4
			}
			return &byhand.SpecDec{Small: m[0], Large: m[1], Draft: k, Adaptive: o.Adaptive, Greedy: o.Greedy}
		}})
	}
	for rule, threshold := range map[string]float64{"chow": .4, "diff": .1, "opt": .5} {
		list = append(list, twin{"spec-cascade", route.Options{Models: 2, Defer: rule, Threshold: threshold}, nil,
			func(m servers, _ *byhand.Scorer) byhand.Algorithm {
				return &byhand.SpecCascade{Small: m[0], Large: m[1], Draft: 4, Rule: rule, Threshold: threshold}
			}})
	}
	return list
}

// The code by hand, over HTTP, writes what the engine writes with the built-in algorithm: greedy and sampled, on servers
// that work and on some that fail one call in seven.
func TestWritesWhatTheEngineWrites(t *testing.T) {
	covered := map[string]bool{}
	early := 0
	for _, c := range twins() {
		covered[c.name] = true
		for _, temperature := range []float64{0, 1} {
			want := engineWrites(t, &c, temperature)
			for _, faulty := range []bool{false, true} {
				got := handWrites(t, &c, temperature, faulty)
				for id := range want {
					if len(want[id]) < output {
						early++
					}
					if !slices.Equal(got[id], want[id]) {
						t.Errorf("%s %+v, temperature %g, faulty %t: request %d:\nby hand %v\nengine  %v", c.name, c.options, temperature,
							faulty, id, got[id], want[id])
						break
					}
				}
			}
		}
	}
	if early == 0 {
		t.Error("no answer ends before its limit")
	}
	for _, name := range route.Names() {
		if !covered[name] {
			t.Errorf("%s is not written by hand", name)
		}
	}
}
