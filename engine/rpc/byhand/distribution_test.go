package byhand_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
)

// What the engine writes by speculative decoding under sampling has the large model's own distribution: chi-square over
// the pairs that second and third token make, at the 99.9 % level. The code by hand writes the same tokens.
func TestSpeculationKeepsTheDistribution(t *testing.T) {
	if testing.Short() {
		t.Skip("100,000 requests")
	}
	const n, small, large = 100000, endless, endless + largest
	r, err := route.New("specdec", route.Options{Models: 2, Draft: 2})
	if err != nil {
		t.Fatal(err)
	}
	seqs := engine.NewSequences()
	cfg := engine.Config{Router: r, Sequences: seqs}
	for _, m := range []int{small, large} {
		cfg.Models = append(cfg.Models, engine.Model{Name: fmt.Sprint(m), Backend: &toyBackend{
			m: m, drafter: small, tokens: seqs.Tokens, temperature: 1,
		}})
	}
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	start := []int32{1, 2, 3}
	var seen [vocabulary][vocabulary]float64
	drafted := 0
	var mu sync.Mutex
	var clients sync.WaitGroup
	for worker := range 16 {
		clients.Go(func() {
			for id := worker; id < n; id += 16 {
				s, err := e.Submit(context.Background(), engine.Request{ID: step.RequestID(id), Prompt: len(start), Max: 3, Tokens: start})
				if err != nil {
					t.Error(err)
					return
				}
				var text []int32
				kept := 0
				for c, ok := s.Next(context.Background()); ok; c, ok = s.Next(context.Background()) {
					text = append(text, c.IDs...)
					kept += c.Tokens - c.Own
				}
				mu.Lock()
				seen[text[1]][text[2]]++
				drafted += kept
				mu.Unlock()
			}
		})
	}
	clients.Wait()

	var want [vocabulary][vocabulary]float64
	for a, p := range next(large, start) {
		first := append(start[:3:3], int32(a))
		for b, q := range next(large, first) {
			for c, r := range next(large, append(first[:4:4], int32(b))) {
				want[b][c] += n * p * q * r
			}
		}
	}
	chi, cells, rare, rareWant := 0., 0, 0., 0.
	add := func(got, want float64) {
		chi += (got - want) * (got - want) / want
		cells++
	}
	for b := range want {
		for c := range want[b] {
			if want[b][c] < 5 { // too few for chi-square on their own
				rare, rareWant = rare+seen[b][c], rareWant+want[b][c]
				continue
			}
			add(seen[b][c], want[b][c])
		}
	}
	add(rare, rareWant)
	// Wilson and Hilferty's quantile of chi-square.
	df := float64(cells - 1)
	h := 2 / (9 * df)
	limit := df * math.Pow(1-h+3.0902*math.Sqrt(h), 3)
	t.Logf("chi-square %.1f of at most %.1f, %.0f degrees of freedom; %.2f drafts kept a request", chi, limit, df, float64(drafted)/n)
	if chi > limit {
		t.Errorf("chi-square %.1f with %.0f degrees of freedom, want at most %.1f", chi, df, limit)
	}
	if drafted < n/2 {
		t.Errorf("%d drafts kept in %d requests", drafted, n)
	}
}
