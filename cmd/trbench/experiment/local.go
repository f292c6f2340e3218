package experiment

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/trbench/trbench/engine"
	"github.com/trbench/trbench/engine/backend/cpu"
	"github.com/trbench/trbench/engine/clock"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models"
	"github.com/trbench/trbench/models/demo"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/models/tokenizer"
	"github.com/trbench/trbench/models/weights"
	"github.com/trbench/trbench/sim"
	"github.com/trbench/trbench/workloads"
)

// Local is a pair of models with weights, loaded for the CPU backend.
type Local struct {
	Names     []string
	Configs   []weights.Config
	Tokenizer *tokenizer.Tokenizer
	Demo      bool // the embedded pair

	sequences *engine.Sequences
	backends  []*cpu.Model
	sampling  cpu.Sampling
	stops     bool // the models' own end tokens end a request
	score     signal.Source
}

// demoOutput is how many tokens an answer of the demo pair may have: its positions were trained up to 384.
const demoOutput = 160

// OpenLocal loads two models from folders of Hugging Face files; both folders empty is the embedded demo pair. The
// tokenizer is the large model's.
func OpenLocal(small, large string) (*Local, error) {
	l := &Local{stops: true}
	if small == "" && large == "" {
		l.Demo = true
		l.Names = []string{"gsm-s", "gsm-l"}
		var err error
		if l.Tokenizer, err = demo.Tokenizer(); err != nil {
			return nil, err
		}
		return l, l.load(func(i int) (*weights.Model, error) {
			if i == 0 {
				return weights.OpenFS(demo.Small(), ".")
			}
			return weights.OpenFS(demo.Large(), ".")
		})
	}
	dirs := []string{small, large}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, &Error{ExitTarget, fmt.Errorf("model folder %q: want a folder with config.json, *.safetensors and tokenizer.json", dir)}
		}
		l.Names = append(l.Names, filepath.Base(filepath.Clean(dir)))
	}
	var err error
	if l.Tokenizer, err = tokenizer.Open(large); err != nil {
		return nil, &Error{ExitTarget, err}
	}
	return l, l.load(func(i int) (*weights.Model, error) { return weights.Open(dirs[i]) })
}

// load packs the weights; the models share the cores.
func (l *Local) load(open func(int) (*weights.Model, error)) error {
	l.sequences = engine.NewSequences()
	proposals := cpu.NewProposals(route.MaxDraft)
	workers := max(1, runtime.GOMAXPROCS(0)/len(l.Names))
	for i := range l.Names {
		w, err := open(i)
		if err != nil {
			return &Error{ExitTarget, err}
		}
		o := cpu.Options{
			Tokens: l.sequences.Tokens, Proposals: proposals, Pool: cpu.NewPool(workers),
			Sampling: func(step.Handle) cpu.Sampling { return l.sampling },
			Score:    l.fill,
		}
		m, err := cpu.New(w, o)
		if err != nil {
			return usage(err)
		}
		l.Configs = append(l.Configs, w.Config)
		l.backends = append(l.backends, m)
		if err := w.Close(); err != nil {
			return err
		}
	}
	if a, b := l.Configs[0].Vocab, l.Configs[1].Vocab; a != b {
		return usagef("%s has %d tokens and %s %d: models that share requests need one vocabulary", l.Names[0], a, l.Names[1], b)
	}
	return nil
}

// fill gives a router that draws, such as me, its draws.
func (l *Local) fill(b *step.Batch, dst []float64) {
	if l.score != nil {
		l.score.Fill(b, dst)
	}
}

// positions is the longest sequence that both models take.
func (l *Local) positions() int {
	n := l.Configs[0].MaxPositions
	for _, c := range l.Configs {
		n = min(n, c.MaxPositions)
	}
	return n
}

// pair are the models' cards.
func (l *Local) pair() (models.Pair, error) {
	p := models.Pair{Name: strings.Join(l.Names, "+")}
	if l.Demo {
		p.Name = "demo"
	}
	for i, c := range l.Configs {
		p.Models = append(p.Models, c.Card(l.Names[i]))
	}
	return p, nil
}

// prompts are the demo pair's own workload: word problems of our own writing.
func (l *Local) prompts(o workloads.Options) *workloads.Set {
	set := &workloads.Set{
		Name: "demo", Source: "generated word problems, embedded", Sampler: "none",
		Notes: []string{fmt.Sprintf("demo: answers end at the model's end token, or after %d tokens", demoOutput)},
	}
	for i, text := range demo.Prompts(o.N+o.Warmup, o.Seed) {
		r := workloads.Request{Prompt: l.Tokenizer.Count(text), Output: demoOutput, Text: text}
		if i < o.N {
			set.Requests = append(set.Requests, r)
		} else {
			set.Warmup = append(set.Warmup, r)
		}
	}
	set.Total, set.Usable = len(set.Requests), len(set.Requests)
	return set
}

// ids are a request's prompt: its text's tokens, or random ones of its length where it has no text.
func (l *Local) ids(r workloads.Request, id int, seed uint64) []int32 {
	if r.Text != "" {
		return l.Tokenizer.Encode(r.Text, true)
	}
	rng := rand.New(rand.NewPCG(seed, uint64(id)))
	ids := make([]int32, r.Prompt)
	for i := range ids {
		ids[i] = int32(rng.IntN(l.Configs[0].Vocab))
	}
	return ids
}

// localEngine sets up the engine over the loaded models for one point.
func (p *Plan) localEngine(pt *Point, seed uint64, now func() clock.Instant) (*engine.Config, error) {
	l := p.local
	cfg := &engine.Config{Now: now, StepSync: pt.System.Topology == sim.StepSync, Sequences: l.sequences}
	l.sampling = cpu.Sampling{Temperature: p.Config.Temperature, TopK: p.Config.TopK, TopP: p.Config.TopP, Seed: seed}
	if !l.stops {
		l.sampling.Stop = []int32{}
	}
	add := func(i int) {
		cfg.Models = append(cfg.Models, engine.Model{Name: l.Names[i], Backend: l.backends[i], Policy: p.policy(pt, i), KVTokens: p.KVTokens})
	}
	if !pt.System.Routed() {
		i := pt.System.Only
		if i < 0 {
			i = len(l.Names) - 1
		}
		add(i)
		return cfg, nil
	}
	for i := range l.Names {
		add(i)
	}
	r, err := p.router(pt.Algorithm)
	if err != nil {
		return nil, err
	}
	cfg.Router = r
	ruled, ok := r.(route.Ruled)
	if !ok {
		return cfg, nil
	}
	var rules []signal.Rule
	for i := range l.Names {
		rules = append(rules, ruled.Rule(step.ModelID(i)))
	}
	l.score, err = signal.New(signal.Config{Seed: seed, Rules: rules, Rates: make([]float64, len(rules))})
	return cfg, err
}

// localRouter says whether an algorithm can run on models alone: without an external router's score.
func localRouter(name string, r route.Router) error {
	ruled, ok := r.(route.Ruled)
	if !ok {
		return nil
	}
	if rule := ruled.Rule(0); rule.Used() && !rule.Uniform && rule.Score == signal.External {
		return fmt.Errorf("algorithm %s reads an external router's score (%s), which --engine cpu does not have: "+
			"use one that reads the models' own, such as entropy, r-stitch, specdec, cascade", name, rule.Name)
	}
	return nil
}

// machine describes what the models run on.
func (l *Local) machine() *latency.Spec {
	f := cpu.Features()
	s := &latency.Spec{Name: "cpu", Source: fmt.Sprintf("this machine, %s kernels on %d cores", f.SIMD, f.Cores)}
	for _, name := range l.Names {
		s.Models = append(s.Models, latency.ModelSpec{Model: name, Kind: "real steps", Origin: latency.Measured, Detail: "of float32 sums"})
	}
	return s
}
